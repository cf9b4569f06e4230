// Ask the warehouse in SQL, draw the answer, take it away. The hash of the URL holds the query.

import { watchTheme } from "../shared/layout.js";
import { byId, describeError, element, RETRY_SECONDS, setText } from "../shared/page-base.js";
import { read, startReading } from "../shared/reading.js";
import { count } from "../shared/text-format.js";
import { timePicker } from "../shared/time-picker.js";
import { findParameters } from "./cookbook.js";
import { canDrawCandles, resultChart } from "./result-chart.js";
import { resultGrid } from "./result-grid.js";
import {
  questions,
  rememberQuery,
  showHistory,
  showQuestions,
  showRelations,
  wireTabs,
} from "./side-panel.js";
import { sqlEditor } from "./sql-editor.js";

const views = { grid: "Grid", lines: "Lines", candles: "Candles", bars: "Bars", scatter: "Scatter" };
/** Times that the cookbook's questions ask for, relative to now. */
const defaults = { t: "@-1h", known: "@now" };
const asked = new URLSearchParams(location.hash.slice(1));

let running;
let result;
let view = asked.get("view") in views ? asked.get("view") : "grid";
const values = new Map(
  [...asked].filter(([name]) => name.startsWith("p.")).map(([name, value]) => [name.slice(2), value]),
);

const editor = sqlEditor(byId("editor"), { onRun: () => void run(), onChange: showParameters });
const grid = resultGrid(byId("grid"));
const chart = resultChart(byId("canvas"), byId("axes"));
const picker = timePicker(byId("picker"), {
  params: asked,
  fallback: "1d",
  now: () => Date.now() / 1000,
  onChange: () => void run(),
});

// ---- the query

function setQuery(sql) {
  editor.setText(sql);
  editor.focus();
  void run();
}

/** An input for each parameter; `:from` and `:to` come from the time picker. */
function showParameters() {
  const names = findParameters(editor.text());
  byId("picker").hidden = !names.some((name) => name === "from" || name === "to");
  const others = names.filter((name) => name !== "from" && name !== "to");
  if (byId("params").dataset.names === others.join()) return;
  byId("params").dataset.names = others.join();
  byId("params").replaceChildren(
    ...others.map((name) => {
      const value = values.get(name) ?? defaults[name] ?? "";
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

function parameters() {
  const iso = (seconds) => `@${new Date(Math.floor(seconds) * 1000).toISOString()}`;
  const range = picker.range();
  const times = { from: iso(range.from), to: range.to === undefined ? "@now" : iso(range.to) };
  return Object.fromEntries(
    findParameters(editor.text()).map((name) => [name, times[name] ?? values.get(name) ?? ""]),
  );
}

function saveToUrl() {
  const hash = new URLSearchParams({ sql: editor.text() });
  if (view !== "grid") hash.set("view", view);
  if (!byId("picker").hidden)
    for (const [name, value] of Object.entries(picker.params())) hash.set(name, value);
  for (const name of findParameters(editor.text()))
    if (values.has(name)) hash.set(`p.${name}`, values.get(name));
  history.replaceState(null, "", `#${hash}`);
}

/** Sends the query; what is already running is cancelled, because its connection closes. */
async function ask(format) {
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
    return format === "rows" ? await response.json() : await response.blob();
  } finally {
    if (running === controller) {
      running = undefined;
      byId("cancel").hidden = true;
      document.body.toggleAttribute("data-busy", false);
    }
  }
}

async function toError(response) {
  const text = await response.text();
  try {
    const { error, remedy, warnings } = JSON.parse(text);
    return Object.assign(new Error(remedy ? `${error}: ${remedy}` : error), { warnings });
  } catch {
    return new Error(text.trim() || `the daemon answered ${response.status}`);
  }
}

async function run() {
  if (editor.text().trim() === "") return;
  saveToUrl();
  const sql = editor.text();
  setText("summary", "Running …");
  try {
    const answer = await ask("rows");
    result = answer;
    showWarnings(answer.warnings);
    showResult();
    rememberQuery(sql, `${count(answer.count)} rows, ${answer.ms} ms`);
    showHistory(setQuery);
  } catch (error) {
    if (!running) clearResult();
    showError(error);
  }
}

// ---- the answer

/** The result of an earlier query would look like that of this one. */
function clearResult() {
  result = undefined;
  for (const id of ["grid", "plot", "downloads"]) byId(id).hidden = true;
}

function showError(error) {
  if (error.name === "AbortError") {
    // A newer query has replaced this one.
    if (!running) setText("summary", "Cancelled.");
    return;
  }
  setText("summary", "");
  byId("error").hidden = false;
  setText("error", describeError(error));
  showWarnings(error.warnings ?? []);
}

function showWarnings(warnings) {
  byId("warnings").hidden = warnings.length === 0;
  byId("warnings").replaceChildren(
    ...warnings.map((warning) =>
      element("li", {}, ...warning.split("`").map((part, i) => (i % 2 ? element("code", {}, part) : part))),
    ),
  );
}

function showResult() {
  const { count: rows, ms, is_cut: isCut } = result;
  const cut = isCut ? "the first " : "";
  const rest = isCut ? "; a download has all of them" : "";
  setText("summary", `${cut}${count(rows)} ${rows === 1 ? "row" : "rows"} in ${count(ms)} ms${rest}`);
  byId("downloads").hidden = false;
  for (const tab of byId("views").children)
    tab.hidden =
      rows === 0 ? tab.dataset.view !== "grid" : tab.dataset.view === "candles" && !canDrawCandles(result);
  if (byId("views").querySelector(`[data-view=${view}]`).hidden) view = "grid";
  showView();
}

function showView() {
  for (const tab of byId("views").children) {
    tab.setAttribute("aria-selected", String(tab.dataset.view === view));
    tab.tabIndex = tab.dataset.view === view ? 0 : -1;
  }
  if (!result) return;
  byId("grid").hidden = view !== "grid";
  byId("plot").hidden = view === "grid";
  if (view === "grid") {
    chart.clear();
    grid.show(result);
  } else chart.show(result, view);
}

async function download(format) {
  setText("summary", `Preparing ${format} …`);
  try {
    const blob = await ask(format);
    const link = element("a", { href: URL.createObjectURL(blob), download: `mds-sync-query.${format}` });
    link.click();
    // The browser has the file's content by now, or holds it itself.
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    setText("summary", `${count(blob.size)} bytes of ${format}`);
  } catch (error) {
    showError(error);
  }
}

// ---- controls

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  void run();
});
byId("cancel").addEventListener("click", () => running?.abort());
byId("downloads").addEventListener("click", ({ target }) => {
  if (target.dataset.format) void download(target.dataset.format);
});
byId("copy-link").addEventListener("click", async () => {
  saveToUrl();
  await navigator.clipboard?.writeText(location.href).catch(() => {});
  setText("copy-link", "Copied");
  setTimeout(() => setText("copy-link", "Copy link"), 1_500);
});
byId("views").append(
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
wireTabs(byId("views"), (tab) => {
  view = tab.dataset.view;
  saveToUrl();
  showView();
});
const panels = ["relations", "questions", "history"];
wireTabs(document.querySelector(".side .tabs"), (tab) => {
  for (const panel of panels) byId(panel).hidden = tab.getAttribute("aria-controls") !== panel;
});
if (/Mac|iPhone|iPad/.test(navigator.platform)) setText("run-key", "⌘ ⏎");
watchTheme(() => chart.redraw());
window.addEventListener("hashchange", () => {
  const sql = new URLSearchParams(location.hash.slice(1)).get("sql");
  if (sql && sql !== editor.text()) setQuery(sql);
});

showQuestions(setQuery);
const earlier = showHistory(setQuery);
showView();
editor.setText(asked.get("sql") ?? earlier[0]?.sql ?? questions[0]?.sql ?? "");
showParameters();
void run();

const schemaReading = startReading("schema", "the relations");
async function readRelations() {
  try {
    const groups = await read(schemaReading, "/api/schema");
    editor.setRelations(groups.flatMap(({ relations }) => relations));
    showRelations(groups, { onSelect: setQuery, onInsert: editor.insert });
  } catch {
    setTimeout(readRelations, RETRY_SECONDS * 1000);
  }
}
void readRelations();
