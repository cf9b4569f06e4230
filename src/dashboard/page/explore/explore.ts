// Ask the warehouse in SQL, draw the answer, take it away. The hash of the URL holds the query.

import type { QueryAnswer, ScreenValue } from "../../../model/answers/query.ts";
import { watchTheme } from "../shared/layout.ts";
import {
  byId,
  describeError,
  element,
  fact,
  fetchJson,
  RETRY_SECONDS,
  setText,
} from "../shared/page-base.ts";
import { read, startReading } from "../shared/reading.ts";
import { count } from "../shared/text-format.ts";
import { timePicker } from "../shared/time-picker.ts";
import { findParameters } from "./cookbook.ts";
import { languages } from "./copy-as.ts";
import { QueryError, readLines, toError } from "./query-answer.ts";
import { queryTabs } from "./query-tabs.ts";
import { type ChartKind, canDrawCandles, resultChart } from "./result-chart.ts";
import { resultGrid } from "./result-grid.ts";
import {
  questions,
  rememberQuery,
  showHistory,
  showQuestions,
  showRelations,
  wasRun,
  wireTabs,
} from "./side-panel.ts";
import { sqlEditor } from "./sql-editor.ts";

const views: Readonly<Record<ChartKind | "grid", string>> = {
  grid: "Grid",
  lines: "Lines",
  candles: "Candles",
  bars: "Bars",
  scatter: "Scatter",
};
const isView = (text: string): text is keyof typeof views => Object.hasOwn(views, text);
const asked = new URLSearchParams(location.hash.slice(1));

/** One row of so many columns is shown as large figures. */
const MAX_FIGURES = 6;
/** For so long the page tells a download in place of the result. */
const DOWNLOAD_TOLD_MS = 4_000;
let running: AbortController | undefined;
let result: QueryAnswer | undefined;
const askedView = asked.get("view") ?? "";
let view = isView(askedView) ? askedView : "grid";
const viewTabs = byId("views");
const values = new Map(
  [...asked].filter(([name]) => name.startsWith("p.")).map(([name, value]) => [name.slice(2), value]),
);

const editor = sqlEditor(byId("editor"), { onRun: () => void run(), onChange: showParameters });
const statements = queryTabs(byId("statements"), {
  text: editor.text,
  onSelect: (sql) => {
    editor.setText(sql);
    editor.focus();
    if (sql.trim() !== "") void run();
  },
  wasRun,
});
const grid = resultGrid(byId("grid"));
const chart = resultChart(byId("canvas"), byId("axes"));
const picker = timePicker(byId("picker"), {
  params: asked,
  fallback: "1d",
  now: () => Date.now() / 1000,
  onChange: () => void run(),
});

// ---- the query

/** A link holds the SQL, or the number of a question of the cookbook. */
function linkedQuery(hash: URLSearchParams): string | undefined {
  return hash.get("sql") ?? questions[Number(hash.get("question")) - 1]?.sql;
}

/** Runs what the person ran before, or what a page of this daemon links to; any other link waits for a click. */
function begin(sql: string, isOwnLink: boolean): void {
  editor.setText(sql);
  showParameters();
  if (isOwnLink || wasRun(sql)) void run();
  else if (linkedQuery(asked) === undefined) setText("summary", "Nothing has been run yet.");
  else setText("summary", "This statement came with a link. Read it, then run it.");
}

function setQuery(sql: string): void {
  editor.setText(sql);
  editor.focus();
  void run();
}

/** An input for each parameter; `:from` and `:to` come from the time picker. */
function showParameters(): void {
  const names = findParameters(editor.text());
  byId("picker").hidden = !names.some((name) => name === "from" || name === "to");
  const others = names.filter((name) => name !== "from" && name !== "to");
  if (byId("params").dataset.names === others.join()) return;
  byId("params").dataset.names = others.join();
  byId("params").replaceChildren(
    ...others.map((name) => {
      const value = values.get(name) ?? "";
      values.set(name, value);
      const input = element("input", {
        type: "text",
        id: `param-${name}`,
        value,
        spellcheck: "false",
        autocomplete: "off",
      });
      input.title = "A number, @TIME (such as @-1d, @now or @2026-03-01), or text";
      input.addEventListener("input", () => values.set(name, input.value));
      return element(
        "div",
        { className: "box" },
        element("label", { for: `param-${name}` }, `:${name}`),
        input,
      );
    }),
  );
}

function parameters(): Record<string, string> {
  const iso = (seconds: number) => `@${new Date(Math.floor(seconds) * 1000).toISOString()}`;
  const range = picker.range();
  const times: Readonly<Record<string, string>> = {
    from: iso(range.from),
    to: range.to === undefined ? "@now" : iso(range.to),
  };
  return Object.fromEntries(
    findParameters(editor.text()).map((name) => [name, times[name] ?? values.get(name) ?? ""]),
  );
}

function saveToUrl(): void {
  const hash = new URLSearchParams({ sql: editor.text() });
  if (view !== "grid") hash.set("view", view);
  if (!byId("picker").hidden)
    for (const [name, value] of Object.entries(picker.params())) hash.set(name, value);
  for (const name of findParameters(editor.text())) {
    const value = values.get(name);
    if (value !== undefined) hash.set(`p.${name}`, value);
  }
  history.replaceState(null, "", `#${hash}`);
}

/** Sends the query; what is already running is cancelled, because its connection closes. */
async function ask<T>(format: string, take: (response: Response) => Promise<T>): Promise<T> {
  running?.abort();
  const controller = new AbortController();
  running = controller;
  byId("cancel").hidden = false;
  byId("error").hidden = true;
  document.body.toggleAttribute("data-busy", true);
  try {
    const response = await fetch("/api/query", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ sql: editor.text(), params: parameters(), format }),
      signal: controller.signal,
    });
    if (!response.ok) throw await toError(response);
    return await take(response);
  } finally {
    if (running === controller) {
      running = undefined;
      byId("cancel").hidden = true;
      document.body.toggleAttribute("data-busy", false);
    }
  }
}

async function run(): Promise<void> {
  if (editor.text().trim() === "") return;
  saveToUrl();
  statements.save();
  const sql = editor.text();
  editor.markError("");
  // What is shown belongs to another statement until there is an answer.
  const startedAt = performance.now();
  showEarlier(result !== undefined);
  setText("summary", "Running …");
  let read = "";
  const tell = () =>
    setText("summary", `Running … ${((performance.now() - startedAt) / 1000).toFixed(0)} s${read}`);
  const telling = setInterval(tell, 1_000);
  try {
    const answer = await ask("rows", (response) =>
      readLines(response, (rows) => {
        read = `, ${rowsText(rows)}`;
        tell();
      }),
    );
    result = answer;
    showEarlier(false);
    showWarnings(answer.warnings);
    showResult(answer);
    rememberQuery(sql, `${rowsText(answer.count)}, ${answer.ms} ms`);
    showHistory(setQuery);
  } catch (error) {
    clearInterval(telling);
    showError(error);
  } finally {
    clearInterval(telling);
  }
}

// ---- the answer

/** The result of an earlier statement would look like that of this one: it is dimmed, and called what it is. */
function showEarlier(isEarlier: boolean): void {
  byId("earlier").hidden = !isEarlier;
  byId("result").toggleAttribute("data-earlier", isEarlier);
  if (isEarlier) byId("downloads").hidden = true;
}

function showError(error: unknown): void {
  if (error instanceof Error && error.name === "AbortError") {
    // A newer query has replaced this one.
    if (!running) setText("summary", "Cancelled.");
    return;
  }
  setText("summary", "");
  byId("error").hidden = false;
  setText("error", describeError(error));
  editor.markError(describeError(error));
  showWarnings(error instanceof QueryError ? error.warnings : []);
}

function showWarnings(warnings: readonly string[]): void {
  byId("warnings").hidden = warnings.length === 0;
  byId("warnings").replaceChildren(
    ...warnings.map((warning) =>
      element("li", {}, ...warning.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part))),
    ),
  );
}

const rowsText = (rows: number) => `${count(rows)} ${rows === 1 ? "row" : "rows"}`;

const tabs = () => [...viewTabs.querySelectorAll("button")];

function summarize({ count: rows, ms, is_cut: isCut }: QueryAnswer): string {
  const [cut, rest] = isCut ? ["the first ", "; a download has all of them"] : ["", ""];
  return `${cut}${rowsText(rows)} in ${count(ms)} ms${rest}`;
}

function showResult(answer: QueryAnswer): void {
  const { count: rows } = answer;
  setText("summary", summarize(answer));
  byId("downloads").hidden = false;
  for (const tab of tabs())
    tab.hidden =
      rows < 2 ? tab.dataset.view !== "grid" : tab.dataset.view === "candles" && !canDrawCandles(answer);
  if (tabs().some((tab) => tab.dataset.view === view && tab.hidden)) view = "grid";
  showView();
}

function showView(): void {
  for (const tab of tabs()) {
    tab.setAttribute("aria-selected", String(tab.dataset.view === view));
    tab.tabIndex = tab.dataset.view === view ? 0 : -1;
  }
  if (!result) return;
  const { columns, rows } = result;
  const isFigure = rows.length === 1 && columns.length <= MAX_FIGURES;
  byId("figures").hidden = !isFigure;
  byId("figures").replaceChildren(
    ...(isFigure ? columns : []).map((name, at) =>
      fact(name, element("b", {}, figureText(rows[0]?.[at] ?? null))),
    ),
  );
  byId("grid").hidden = view !== "grid" || isFigure;
  byId("plot").hidden = view === "grid";
  if (view === "grid") {
    chart.clear();
    if (!isFigure) grid.show(result);
  } else chart.show(result, view);
}

/** A number as it is, with its thousands apart. */
const figureText = (value: ScreenValue) =>
  typeof value === "number"
    ? value.toLocaleString("en", { maximumFractionDigits: 12 })
    : value === null
      ? "NULL"
      : value;

async function download(format: string): Promise<void> {
  setText("summary", `Preparing ${format} …`);
  try {
    const blob = await ask(format, (response) => response.blob());
    const link = element("a", { href: URL.createObjectURL(blob), download: `mds-sync-query.${format}` });
    link.click();
    // The browser has the file's content by now, or holds it itself.
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    const told = `${count(blob.size)} bytes of ${format}`;
    setText("summary", told);
    setTimeout(() => {
      if (result && byId("summary").textContent === told) setText("summary", summarize(result));
    }, DOWNLOAD_TOLD_MS);
  } catch (error) {
    showError(error);
  }
}

// ---- controls

byId("ask").addEventListener("submit", () => void run());
byId("cancel").addEventListener("click", () => running?.abort());
byId("downloads").addEventListener("click", ({ target }) => {
  if (target instanceof HTMLElement && target.dataset.format) void download(target.dataset.format);
});
/** A click copies a text, which the button says for a moment. */
function copyOnClick(button: HTMLElement, text: () => string | Promise<string>): void {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard?.writeText(await text()).catch(() => {});
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = label;
    }, 1_500);
  });
}

copyOnClick(byId("copy-link"), () => {
  saveToUrl();
  return location.href;
});
viewTabs.append(
  ...Object.entries(views).map(([name, label]) =>
    element(
      "button",
      {
        type: "button",
        role: "tab",
        "data-view": name,
        "aria-selected": "false",
        "aria-controls": name === "grid" ? "grid" : "plot",
      },
      label,
    ),
  ),
);
wireTabs(viewTabs, ({ dataset: { view: chosen = "" } }) => {
  if (!isView(chosen)) return;
  view = chosen;
  saveToUrl();
  showView();
});
byId("copies").append(
  ...Object.entries(languages).map(([language, write]) => {
    const button = element("button", { type: "button", className: "plain" }, language);
    copyOnClick(button, async () => {
      const { warehouse } = await fetchJson("status").catch(() => ({ warehouse: "data/mds.sqlite" }));
      return write({ sql: editor.text(), params: parameters(), origin: location.origin, warehouse });
    });
    return button;
  }),
);
const panels = ["relations", "questions", "history"];
wireTabs(byId("starting-points"), (tab) => {
  for (const panel of panels) byId(panel).hidden = tab.getAttribute("aria-controls") !== panel;
});
if (/Mac|iPhone|iPad/.test(navigator.platform)) setText("run-key", "⌘ ⏎");
watchTheme(() => chart.redraw());
/** A link of our own that was clicked on this page: another page that holds this window can change the hash too. */
let clickedLink = "";
document.addEventListener("click", ({ target }) => {
  clickedLink = (target instanceof Element && target.closest("a")?.href) || "";
});
window.addEventListener("hashchange", () => {
  const sql = linkedQuery(new URLSearchParams(location.hash.slice(1)));
  if (sql && sql !== editor.text()) begin(sql, location.href === clickedLink);
});

showQuestions(setQuery);
const earlier = showHistory(setQuery);
showView();
begin(
  statements.begin(linkedQuery(asked)) ?? earlier[0]?.sql ?? questions[0]?.sql ?? "",
  document.referrer.startsWith(`${location.origin}/`),
);

const schemaReading = startReading("schema", "the relations");
async function readRelations(): Promise<void> {
  try {
    const groups = await read(schemaReading, "schema");
    editor.setRelations(groups.flatMap(({ relations }) => relations));
    showRelations(groups, { onSelect: setQuery, onInsert: editor.insert });
  } catch {
    setTimeout(readRelations, RETRY_SECONDS * 1000);
  }
}
void readRelations();
