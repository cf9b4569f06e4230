// The SQL editor: CodeMirror, in a shadow root. There it adds its styles to the document's style sheets instead of inserting a
// <style>, which the content security policy forbids.

import {
  autocompletion,
  type Completion,
  type CompletionSource,
  closeBrackets,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLite, type SQLNamespace, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Relation } from "./side-panel.ts";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--line-1)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--text-up)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--line-2)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--line-3)" },
]);

const theme = EditorView.theme({
  "&": {
    color: "var(--ink)",
    backgroundColor: "transparent",
    fontSize: "13.5px",
    minHeight: "150px",
    maxHeight: "46vh",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", minHeight: "150px", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--soft)", border: "none" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground, ::selection": {
    backgroundColor: "light-dark(#cfe6da, #2b4a3d) !important",
  },
  ".cm-matchingBracket": { backgroundColor: "var(--hover)", outline: "1px solid var(--line)" },
  ".cm-placeholder": { color: "var(--soft)" },
  ".cm-tooltip": {
    border: "1px solid var(--line)",
    borderRadius: "10px",
    overflow: "hidden",
    backgroundColor: "var(--raised)",
    color: "var(--ink)",
    boxShadow: "0 8px 24px rgb(0 0 0 / 18%)",
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16em" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
  },
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal", marginLeft: "10px" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionInfo": {
    padding: "8px 12px",
    maxWidth: "26em",
    fontFamily: "system-ui, sans-serif",
    fontSize: "13px",
  },
});

/** A column for the completion, with what the dictionary says about it. */
const toOption = ({ name, type, meaning }: Relation["columns"][number]): Completion => ({
  label: name,
  type: "property",
  detail: type,
  info: meaning,
});

/** Relations and columns for the completion after a dot. */
function toNamespace(relations: readonly Relation[]): SQLNamespace {
  return Object.fromEntries(
    relations.map(({ name, summary, columns }) => [
      name,
      {
        self: { label: name, type: "type", detail: "relation", info: summary },
        children: columns.map(toOption),
      },
    ]),
  );
}

/** Completes a bare word with the columns of every relation that the statement names. */
function columnSource(relations: readonly Relation[]): CompletionSource {
  return (context) => {
    const word = context.matchBefore(/\w+/);
    if (!word || context.matchBefore(/\.\w*/)) return null;
    const words = new Set(context.state.doc.toString().toLowerCase().match(/\w+/g));
    const columns = new Map(
      relations
        .filter(({ name }) => words.has(name))
        .flatMap((relation) => relation.columns.map((one) => [one.name, one] as const)),
    );
    return { from: word.from, options: [...columns.values()].map(toOption), validFor: /^\w*$/ };
  };
}

interface SqlEditorOptions {
  /** Ctrl-Enter or Cmd-Enter was pressed. */
  readonly onRun: () => void;
  readonly onChange: () => void;
}

/** Creates the editor in `host`. */
export function sqlEditor(host: HTMLElement, { onRun, onChange }: SqlEditorOptions) {
  const root = host.attachShadow({ mode: "open" });
  const language = new Compartment();
  const dialect = (relations: readonly Relation[]) => [
    sql({ dialect: SQLite, schema: toNamespace(relations), upperCaseKeywords: true }),
    SQLite.language.data.of({ autocomplete: columnSource(relations) }),
  ];
  const run = () => {
    onRun();
    return true;
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      extensions: [
        Prec.highest(
          keymap.of([
            { key: "Mod-Enter", run },
            { key: "Ctrl-Enter", run },
          ]),
        ),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        lineNumbers(),
        history(),
        drawSelection(),
        bracketMatching(),
        closeBrackets(),
        autocompletion(),
        language.of(dialect([])),
        syntaxHighlighting(colours),
        theme,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "SQL" }),
        placeholder("SELECT name, price FROM latest_index_ticks"),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange();
        }),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    setText(text: string): void {
      view.dispatch({
        changes: { from: 0, to: view.state.doc.length, insert: text },
        selection: { anchor: 0 },
      });
    },
    insert(text: string): void {
      view.dispatch(view.state.replaceSelection(text));
      view.focus();
    },
    setRelations(relations: readonly Relation[]): void {
      view.dispatch({ effects: language.reconfigure(dialect(relations)) });
    },
    focus: () => view.focus(),
  };
}
