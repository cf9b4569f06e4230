// What /explore shows: the open statements, their parameters, and the answer of the last one. The hash of the URL holds the query.

import type { ErrorAnswer, QueryAnswer, QueryProgress } from "../../../model/answers/query.ts";
import { describeError, fetchJson, RequestError, toError } from "../shared/page-base.ts";
import { count } from "../shared/text-format.ts";
import { type PickedTime, pickedParams, rangeOf, readPicked } from "../shared/time-picker.tsx";
import { openLinked, readHistory, readTabs, rememberQuery, saveTabs, wasRun } from "./query-tabs.tsx";
import { type ChartKind, canDrawCandles } from "./result-chart.tsx";
import { questions } from "./side-panel.tsx";
import { sqlEditor } from "./sql-editor.ts";
import { findParameters, languages } from "./statements.ts";

export type ResultView = ChartKind | "grid";
const charts = { lines: "Lines", candles: "Candles", bars: "Bars", scatter: "Scatter" };
export const viewNames: Readonly<Record<ResultView, string>> = { grid: "Grid", ...charts };

const rowsText = (rows: number) => `${count(rows)} ${rows === 1 ? "row" : "rows"}`;

function summarize({ count: rows, ms, is_cut: isCut }: QueryAnswer): string {
  const [cut, rest] = isCut ? ["the first ", "; a download has all of them"] : ["", ""];
  return `${cut}${rowsText(rows)} in ${count(ms)} ms${rest}`;
}

const readHash = () => new URLSearchParams(location.hash.slice(1));

/** A link holds the SQL, or the number of a question of the cookbook. */
const linkedQuery = (hash: URLSearchParams): string | undefined =>
  hash.get("sql") ?? questions[Number(hash.get("question")) - 1]?.sql;

export class QueryState {
  readonly #onChange: () => void;
  tabs: ReturnType<typeof readTabs>;
  readonly values: Record<string, string>;
  picked: PickedTime;
  view: ResultView;
  answer: QueryAnswer | undefined;
  /** The answer is that of an earlier statement: it is dimmed, and called what it is. */
  isEarlier = false;
  summary = "";
  error = "";
  warnings: readonly string[] = [];
  editor: ReturnType<typeof sqlEditor> | undefined;
  #running: AbortController | undefined;
  /** A link of our own that was clicked on this page: another page that holds this window can change the hash too. */
  #clickedLink = "";

  constructor(onChange: () => void) {
    this.#onChange = onChange;
    const hash = readHash();
    const views = Object.keys(viewNames) as ResultView[];
    this.view = views.find((one) => one === hash.get("view")) ?? "grid";
    const linked = linkedQuery(hash);
    this.tabs = linked === undefined ? readTabs() : openLinked(readTabs(), linked);
    this.picked = readPicked(hash, "1d", this.now());
    const params = [...hash].filter(([name]) => name.startsWith("p."));
    this.values = Object.fromEntries(params.map(([name, value]) => [name.slice(2), value]));
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  readonly now = () => Date.now() / 1000;

  get names(): string[] {
    return findParameters(this.#text());
  }

  readonly #text = () => this.editor?.text() ?? "";

  start(host: HTMLElement): void {
    this.editor = sqlEditor(host, { onRun: () => void this.run(), onChange: this.#onChange });
    document.addEventListener("click", ({ target }) => {
      this.#clickedLink = (target instanceof Element && target.closest("a")?.href) || "";
    });
    window.addEventListener("hashchange", () => {
      const sql = linkedQuery(readHash());
      if (!sql || sql === this.#text()) return;
      const { list, active } = this.tabs;
      this.tabs = openLinked({ list: list.with(active, this.#text()), active }, sql);
      this.#begin(sql, location.href === this.#clickedLink);
    });
    const { list, active } = this.tabs;
    const sql = list[active] ?? readHistory()[0]?.sql ?? questions[0]?.sql ?? "";
    this.#begin(sql, document.referrer.startsWith(`${location.origin}/`));
  }

  /** Runs what the person ran before, or what a page of this daemon links to; any other link waits for a click. */
  #begin(sql: string, isOwnLink: boolean): void {
    this.editor?.setText(sql);
    if (isOwnLink || wasRun(sql)) return void this.run();
    const isLinked = linkedQuery(readHash()) !== undefined;
    const linked = "This statement came with a link. Read it, then run it.";
    this.#showSummary(isLinked ? linked : "Nothing has been run yet.");
  }

  setQuery(sql: string): void {
    this.editor?.setText(sql);
    this.editor?.focus();
    void this.run();
  }

  /** What is being written stays in its tab. */
  openTabs({ list, active }: QueryState["tabs"]): void {
    const written = list.length < this.tabs.list.length ? list : list.with(this.tabs.active, this.#text());
    this.tabs = { list: written, active };
    this.editor?.setText(written[active] ?? "");
    this.editor?.focus();
    this.#save();
    void this.run();
    this.#onChange();
  }

  setPicked(picked: PickedTime): void {
    this.picked = picked;
    void this.run();
  }

  setView(view: ResultView): void {
    this.view = view;
    this.#saveToUrl();
    this.#onChange();
  }

  isHidden(view: ResultView): boolean {
    if (!this.answer || view === "grid") return false;
    return this.answer.count < 2 || (view === "candles" && !canDrawCandles(this.answer));
  }

  /** `:from` and `:to` come from the time picker. */
  #parameters(): Record<string, string> {
    const iso = (seconds: number) => `@${new Date(Math.floor(seconds) * 1000).toISOString()}`;
    const { from, to } = rangeOf(this.picked, this.now());
    const known = { ...this.values, from: iso(from), to: to === undefined ? "@now" : iso(to) };
    return Object.fromEntries(this.names.map((name) => [name, known[name as keyof typeof known] ?? ""]));
  }

  #saveToUrl(): void {
    const hash = new URLSearchParams({ sql: this.#text() });
    if (this.view !== "grid") hash.set("view", this.view);
    const { names } = this;
    if (names.includes("from") || names.includes("to"))
      for (const [name, value] of Object.entries(pickedParams(this.picked))) hash.set(name, value);
    for (const name of names) {
      const value = this.values[name];
      if (value !== undefined) hash.set(`p.${name}`, value);
    }
    history.replaceState(null, "", `#${hash}`);
  }

  #save(): void {
    const { list, active } = this.tabs;
    this.tabs = { list: list.length === 0 ? [this.#text()] : list.with(active, this.#text()), active };
    saveTabs(this.tabs);
  }

  link(): string {
    this.#saveToUrl();
    return location.href;
  }

  async copyAs(language: keyof typeof languages): Promise<string> {
    const { warehouse } = await fetchJson("status").catch(() => ({ warehouse: "data/mds.sqlite" }));
    const { origin } = location;
    return languages[language]({ sql: this.#text(), params: this.#parameters(), origin, warehouse });
  }

  readonly cancel = () => this.#running?.abort();

  /** Sends the query; what is already running is cancelled, because its connection closes. */
  async #ask<T>(format: string, take: (response: Response) => Promise<T>): Promise<T> {
    this.#running?.abort();
    const controller = new AbortController();
    this.#running = controller;
    this.error = "";
    this.#onChange();
    try {
      const response = await fetch("/api/query", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ sql: this.#text(), params: this.#parameters(), format }),
        signal: controller.signal,
      });
      if (!response.ok) throw await toError(response);
      return await take(response);
    } finally {
      if (this.#running === controller) this.#running = undefined;
    }
  }

  async run(): Promise<void> {
    const sql = this.#text();
    if (sql.trim() === "") return;
    this.#saveToUrl();
    this.#save();
    this.editor?.markError("");
    const startedAt = performance.now();
    // What is shown belongs to another statement until there is an answer.
    this.isEarlier = this.answer !== undefined;
    let read = "";
    this.#showSummary("Running …");
    const showProgress = (rows?: number) => {
      if (rows !== undefined) read = `, ${rowsText(rows)}`;
      this.#showSummary(`Running … ${((performance.now() - startedAt) / 1000).toFixed(0)} s${read}`);
    };
    const timer = setInterval(showProgress, 1_000);
    try {
      const answer = await this.#ask("rows", (response) => readLines(response, showProgress));
      this.answer = answer;
      this.isEarlier = false;
      this.warnings = answer.warnings;
      if (this.isHidden(this.view)) this.view = "grid";
      rememberQuery(sql, `${rowsText(answer.count)}, ${answer.ms} ms`);
      this.#showSummary(summarize(answer));
    } catch (error) {
      this.#fail(error);
    } finally {
      clearInterval(timer);
    }
  }

  #showSummary(summary: string): void {
    this.summary = summary;
    this.#onChange();
  }

  #fail(error: unknown): void {
    if (error instanceof Error && error.name === "AbortError") {
      // Unless a newer query has replaced it.
      if (!this.#running) this.#showSummary("Cancelled.");
      return;
    }
    this.error = describeError(error);
    this.editor?.markError(this.error);
    this.warnings = error instanceof RequestError ? error.warnings : [];
    this.#showSummary("");
  }

  async download(format: string): Promise<void> {
    this.#showSummary(`Preparing ${format} …`);
    try {
      const blob = await this.#ask(format, (response) => response.blob());
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = `mds-sync-query.${format}`;
      link.click();
      // The browser has the file's content by now, or holds it itself.
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      const shown = this.answer ? `${summarize(this.answer)} · ` : "";
      this.#showSummary(`${shown}${count(blob.size)} bytes of ${format}`);
    } catch (error) {
      this.#fail(error);
    }
  }
}

/** The answer, which is the last line; each line before it has the number of rows read so far. Throws if the last line is an error. */
async function readLines(response: Response, onProgress: (rows: number) => void): Promise<QueryAnswer> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let line = "";
  for (;;) {
    const { done = true, value = "" } = (await reader?.read()) ?? {};
    if (done) throw new Error("the answer was cut off");
    const [end = "", ...next] = value.split("\n");
    line += end;
    for (const begun of next) {
      const message = JSON.parse(line) as QueryAnswer | QueryProgress | ErrorAnswer;
      if ("error" in message) throw new RequestError(message);
      if ("columns" in message) return message;
      onProgress(message.read);
      line = begun;
    }
  }
}
