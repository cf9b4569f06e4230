// The SQL editor: CodeMirror, in a shadow root. There it adds its styles to the document's style sheets instead of inserting a
// <style>, which the content security policy forbids.

import {
  autocompletion,
  type Completion,
  type CompletionSource,
  closeBrackets,
  closeCompletion,
  completionKeymap,
  currentCompletions,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect, type SQLNamespace, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, Prec, StateEffect, StateField } from "@codemirror/state";
import { Decoration, drawSelection, EditorView, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Relation } from "./side-panel.tsx";

/** The words of SQLite that a statement which only reads can use. */
const sqlite = SQLDialect.define({
  keywords:
    "all and as asc between by case cast collate cross current_date current_time current_timestamp desc distinct else end escape except exclude exists explain filter first following from full glob group having in inner intersect is isnull join last left like limit materialized natural not notnull null nulls offset on or order outer over partition plan preceding query range recursive regexp right row rows select then ties to unbounded union using values when where window with",
  types: "blob integer numeric real text",
  builtin:
    "abs avg char coalesce concat count cume_dist date datetime dense_rank exp first_value floor format group_concat hex ifnull iif instr json_array json_each json_extract json_group_array json_group_object json_object julianday lag last_value lead length ln log lower ltrim max min nth_value ntile nullif percent_rank pow printf quote rank replace round row_number rtrim sign sqrt strftime substr sum time total trim typeof unixepoch upper",
  operatorChars: "*+-%<>!=&|/~",
  identifierQuotes: '`"',
  specialVar: "@:?$",
});

type DecorationSet = ReturnType<typeof Decoration.set>;

/** The word that an error is about: SQLite names it. */
function findErrorPlace(text: string, error: string): DecorationSet {
  const word = /near "([^"]+)"|no such (?:column|table|function):? (?:\w+\.)?(\w+)/.exec(error);
  const named = word?.[1] ?? word?.[2];
  if (!named) return Decoration.none;
  const escaped = named.replaceAll(/[^\w]/g, "\\$&");
  const at = new RegExp(/^\w+$/.test(named) ? `\\b${escaped}\\b` : escaped, "i").exec(text);
  if (!at) return Decoration.none;
  const mark = Decoration.mark({ class: "cm-error-place" });
  return Decoration.set(mark.range(at.index, at.index + named.length));
}

const setErrorPlace = StateEffect.define<DecorationSet>();
/** Underlined until the text changes there, or the next statement runs. */
const errorPlace = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (marks, transaction) =>
    transaction.effects.reduce(
      (last, effect) => (effect.is(setErrorPlace) ? effect.value : last),
      transaction.docChanged ? Decoration.none : marks,
    ),
  provide: (field) => EditorView.decorations.from(field),
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--line-1)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--text-up)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--line-2)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--soft)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--line-3)" },
]);

const selected = { backgroundColor: "light-dark(#cfe6da, #2b4a3d) !important" };
const active = { backgroundColor: "var(--accent)", color: "var(--on-accent)" };
const theme = EditorView.theme({
  "&": { color: "var(--ink)", fontSize: "13.5px", minHeight: "150px", maxHeight: "46vh" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", minHeight: "150px", overflow: "auto" },
  ".cm-content": { caretColor: "var(--ink)", padding: "10px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--soft)", border: "none" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground, ::selection": selected,
  ".cm-matchingBracket": { backgroundColor: "var(--hover)", outline: "1px solid var(--line)" },
  ".cm-error-place": { textDecoration: "underline wavy var(--lost)" },
  ".cm-placeholder": { color: "var(--soft)" },
  ".cm-tooltip": {
    ...{ border: "1px solid var(--line)", borderRadius: "10px", overflow: "hidden" },
    ...{ backgroundColor: "var(--card)", color: "var(--ink)", boxShadow: "0 8px 24px rgb(0 0 0 / 18%)" },
  },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16em" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": active,
  ".cm-completionDetail": { color: "var(--soft)", fontStyle: "normal", marginLeft: "10px" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-completionInfo": { padding: "8px 12px", maxWidth: "26em", font: "13px / 1.5 var(--sans)" },
});

const toOption = ({ name, type, meaning }: Relation["columns"][number]): Completion => ({
  ...{ label: name, type: "property", detail: type, info: meaning, boost: 2 },
});

function toNamespace(relations: readonly Relation[]): SQLNamespace {
  return Object.fromEntries(
    relations.map(({ name, summary, columns }) => {
      const self = { label: name, type: "type", detail: "relation", info: summary, boost: 1 };
      return [name, { self, children: columns.map(toOption) }];
    }),
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

export function sqlEditor(host: HTMLElement, { onRun, onChange }: Record<"onRun" | "onChange", () => void>) {
  const root = host.attachShadow({ mode: "open" });
  const language = new Compartment();
  const dialect = (relations: readonly Relation[]) => [
    sql({
      dialect: sqlite,
      schema: toNamespace(relations),
      upperCaseKeywords: true,
      keywordCompletion: (label, type) => ({ label, type, boost: -1 }),
    }),
    sqlite.language.data.of({ autocomplete: columnSource(relations) }),
  ];
  const run = () => {
    closeCompletion(view);
    onRun();
    return true;
  };
  /** Nothing is left to complete: the list would only hide the text below it. */
  const closeIfComplete = () => {
    const [only, ...others] = currentCompletions(view.state);
    const before = view.state.sliceDoc(0, view.state.selection.main.head);
    const typed = /\w+$/.exec(before)?.[0].toLowerCase();
    if (only && others.length === 0 && only.label.toLowerCase() === typed) closeCompletion(view);
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      extensions: [
        Prec.highest(keymap.of(["Mod-Enter", "Ctrl-Enter"].map((key) => ({ key, run })))),
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
        errorPlace,
        EditorView.contentAttributes.of({ "aria-label": "SQL" }),
        // Chromium would keep the colours of what is typed over, as styles that the policy forbids.
        EditorView.domEventHandlers({
          beforeinput: ({ inputType, data }, { state, dispatch }) => {
            // A bracket or a quote encloses what is selected.
            const isTypedOver = inputType === "insertText" && data && !/^[([{'"]$/.test(data);
            if (!isTypedOver || state.selection.main.empty) return false;
            dispatch(state.replaceSelection(data), { userEvent: "input.type" });
            return true;
          },
        }),
        placeholder("SELECT name, price FROM latest_index_ticks"),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange();
          // After the update: the view must not change within.
          setTimeout(closeIfComplete);
        }),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    setText(text: string): void {
      const changes = { from: 0, to: view.state.doc.length, insert: text };
      view.dispatch({ changes, selection: { anchor: 0 } });
    },
    insert(text: string): void {
      view.dispatch(view.state.replaceSelection(text));
      view.focus();
    },
    setRelations(relations: readonly Relation[]): void {
      view.dispatch({ effects: language.reconfigure(dialect(relations)) });
    },
    /** Underlines what an error names; empty: nothing. */
    markError(error: string): void {
      view.dispatch({ effects: setErrorPlace.of(findErrorPlace(view.state.doc.toString(), error)) });
    },
    focus: () => view.focus(),
  };
}
