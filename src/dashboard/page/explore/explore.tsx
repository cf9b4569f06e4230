// Ask the warehouse in SQL, draw the answer, take it away.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ScreenValue } from "../../../model/answers/query.ts";
import { Field } from "../shared/combobox.tsx";
import { useLivePoll } from "../shared/live.tsx";
import { Facts, mountPage, TabList } from "../shared/page.tsx";
import { useRedraw } from "../shared/page-base.ts";
import { TimePicker } from "../shared/time-picker.tsx";
import { QueryState, viewNames } from "./query-state.ts";
import { QueryTabs } from "./query-tabs.tsx";
import { ResultChart } from "./result-chart.tsx";
import { ResultGrid } from "./result-grid.tsx";
import { SidePanel } from "./side-panel.tsx";
import { languages } from "./statements.ts";

/** One row of so many columns is shown as large figures. */
const MAX_FIGURES = 6;
const COPIED_MS = 1_500;

type CopyButtonProps = { label: string; text: () => Promise<string> | string; id?: string };

function CopyButton({ label, text, id }: CopyButtonProps) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard?.writeText(await text()).catch(() => {});
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return <button type="button" id={id} onClick={copy} children={isCopied ? "Copied" : label} />;
}

function QueryForm({ state }: { state: QueryState }) {
  const { names } = state;
  const isTimed = (name: string) => name === "from" || name === "to";
  return (
    <form class="controls row" id="ask" onSubmit={() => void state.run()}>
      <button type="submit" class="primary" id="run" data-busy={state.isRunning || undefined}>
        {"Run "}
        <kbd>{/Mac|iPhone|iPad/.test(navigator.platform) ? "⌘ ⏎" : "Ctrl ⏎"}</kbd>
      </button>
      {state.isRunning && <button type="button" id="cancel" onClick={state.cancel} children="Cancel" />}
      {names.some(isTimed) && (
        <TimePicker picked={state.picked} now={state.now()} onPick={(picked) => state.setPicked(picked)} />
      )}
      <div class="row" id="params">
        {names.map(
          (name) =>
            !isTimed(name) && (
              <Field key={name} id={`param-${name}`} label={`:${name}`}>
                <input
                  {...{ type: "text", id: `param-${name}`, spellcheck: false, autocomplete: "off" }}
                  title="A number, @TIME (such as @-1d, @now or @2026-03-01), or text"
                  value={state.values[name] ?? ""}
                  onInput={({ currentTarget }) => {
                    state.values[name] = currentTarget.value;
                  }}
                />
              </Field>
            ),
        )}
      </div>
      <div class="row">
        <span class="soft">Copy as</span>{" "}
        <span class="row" id="copies">
          {(Object.keys(languages) as (keyof typeof languages)[]).map((language) => (
            <CopyButton key={language} label={language} text={() => state.copyAs(language)} />
          ))}
        </span>{" "}
        <CopyButton id="copy-link" label="Copy link" text={() => state.link()} />
      </div>
    </form>
  );
}

const figureText = (value: ScreenValue) =>
  typeof value === "number" ? value.toLocaleString("en", { maximumFractionDigits: 12 }) : (value ?? "NULL");

function Answer({ state }: { state: QueryState }) {
  const { answer, view } = state;
  if (!answer) return null;
  const { columns, rows } = answer;
  if (view !== "grid") return <ResultChart key={answer} answer={answer} kind={view} />;
  if (rows.length !== 1 || columns.length > MAX_FIGURES) return <ResultGrid key={answer} {...answer} />;
  const figures = columns.map((label, at) => ({
    label,
    figure: <span class="big">{figureText(rows[0]?.[at] ?? null)}</span>,
  }));
  return <Facts id="figures" of={figures} />;
}

function Result({ state }: { state: QueryState }) {
  const { isEarlier, error, warnings } = state;
  return (
    <section class="card" id="result" aria-label="Result" data-earlier={isEarlier || undefined}>
      <div class="card-head row">
        <h2>Result</h2>
        <p class="soft" id="summary" role="status" aria-live="polite" children={state.summary} />
        <TabList
          {...{ id: "views", label: "Show the result as", names: viewNames, value: state.view }}
          controls="answer"
          isHidden={(view) => state.isHidden(view)}
          onChoose={(view) => state.setView(view)}
        />
        {state.answer && !isEarlier && (
          <div class="row" id="downloads">
            <span class="soft">Download</span>
            {Object.entries({ csv: "CSV", json: "JSON", parquet: "Parquet" }).map(([format, label]) => (
              <button
                key={format}
                {...{ type: "button", "data-format": format }}
                onClick={() => void state.download(format)}
              >
                {label}
              </button>
            ))}
          </div>
        )}
      </div>
      {error && <p id="error" role="alert" children={error} />}
      {warnings.length > 0 && (
        <ul class="alert" id="warnings">
          {warnings.map((text) => (
            <li key={text}>
              ⚠ {text.split("`").map((part, at) => (at % 2 ? <code key={part}>{part}</code> : part))}
            </li>
          ))}
        </ul>
      )}
      {isEarlier && <p class="soft" id="earlier" children="Result of the earlier statement:" />}
      <div id="answer" role="tabpanel" aria-labelledby={`tab-${state.view}`}>
        <Answer state={state} />
      </div>
    </section>
  );
}

function Explore() {
  const redraw = useRedraw();
  const [state] = useState(() => new QueryState(redraw));
  const editor = useRef<HTMLDivElement>(null);
  const schema = useLivePoll("schema", {}, { what: "the relations", seconds: 3_600 });
  useLayoutEffect(() => {
    if (editor.current) state.start(editor.current);
  }, []);
  useLayoutEffect(() => {
    if (schema.value) state.editor?.setRelations(schema.value.flatMap(({ relations }) => relations));
  }, [schema.value]);
  return (
    <>
      <h1 class="visually-hidden">Explore the warehouse with SQL</h1>
      <div class="explore">
        <SidePanel
          schema={schema}
          onSelect={(sql) => state.setQuery(sql)}
          onInsert={(text) => state.editor?.insert(text)}
        />
        <div class="work">
          <section class="card" aria-label="Query">
            <QueryTabs tabs={state.tabs} onOpen={(tabs) => state.openTabs(tabs)} />
            <div id="editor" ref={editor} />
            <QueryForm state={state} />
          </section>
          <Result state={state} />
        </div>
      </div>
    </>
  );
}

mountPage(<Explore />);
