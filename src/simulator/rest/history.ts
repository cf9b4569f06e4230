import { type IndexSeries, type IndexTable, type IndexType, indexTypes } from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import type { RecordIds, RecordKind } from "../market/record-ids.ts";
import { Refusal } from "./errors.ts";
import { Payload } from "./http-types.ts";
import type { WireWriter } from "./json-writer.ts";
import type { KeptPage, PageCache } from "./page-cache.ts";
import { QueryValues } from "./query-params.ts";

/** Records of a page, newest first: parallel lists, since pages are long. */
export interface PageRows {
  readonly series: IndexSeries[];
  readonly steps: number[];
}

/** One kind of history (ticks, daily bars): time cut into numbered steps, at most one record per index and step. */
export interface History {
  readonly name: string;
  kind(type: IndexType): RecordKind;
  /** The newest step whose record counts as "up to" this moment. */
  stepUpTo(ms: number): number;
  /** Steps at which the index may have records now: [oldest, newest]. */
  span(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether the record exists at this moment, given that its step is within the span. */
  known(series: IndexSeries, step: number, nowMs: number): boolean;
  /** Whether nothing about this step, or an older one, can change any more, other than leaving the window. */
  settled(step: number, nowMs: number): boolean;
  /** Whether a page that reaches down to this step is still the same page today. */
  reachable(step: number, nowMs: number): boolean;
  /** Whether the history's far end stands still, so that a last page may be kept. */
  readonly endsForGood: boolean;
  /** The records as the elements of a JSON array. */
  render(rows: PageRows, nowMs: number): string;
}

/** Where a walk begins: at this step, with the first index whose rank is at least this. */
export interface Start {
  readonly step: number;
  readonly rank: number;
}

/**
 * Walks back in time from `start`; within one step, along the rank of the indexes. `lanes` are sorted by rank.
 * Looks one record further than `limit` to know whether there is more; `oldest` is the step of that look.
 */
export function walkBack(
  history: History,
  lanes: readonly IndexSeries[],
  start: Start,
  limit: number,
  nowMs: number,
): { rows: PageRows; more: boolean; oldest: number } {
  const rows: PageRows = { series: [], steps: [] };
  const spans = lanes.map((series) => history.span(series, nowMs));
  let floor = Number.POSITIVE_INFINITY;
  let top = Number.NEGATIVE_INFINITY;
  for (const { oldest, newest } of spans) {
    if (newest < oldest) continue;
    floor = Math.min(floor, oldest);
    top = Math.max(top, newest);
  }
  let step = start.step;
  let lane = lanes.findIndex(({ rank }) => rank >= start.rank);
  if (lane < 0) {
    lane = 0;
    step--;
  }
  if (step > top) {
    step = top;
    lane = 0;
  }
  for (; step >= floor; step--, lane = 0) {
    for (; lane < lanes.length; lane++) {
      const series = lanes[lane] as IndexSeries;
      const span = spans[lane];
      if (!span || step < span.oldest || step > span.newest || !history.known(series, step, nowMs)) continue;
      if (rows.steps.length === limit) return { rows, more: true, oldest: step };
      rows.series.push(series);
      rows.steps.push(step);
    }
  }
  return { rows, more: false, oldest: floor };
}

/** The most recent record of every index that has one. */
export function newestOfEach(history: History, lanes: readonly IndexSeries[], nowMs: number): PageRows {
  const rows: PageRows = { series: [], steps: [] };
  for (const series of lanes) {
    const { oldest, newest } = history.span(series, nowMs);
    for (let step = newest; step >= oldest; step--) {
      if (!history.known(series, step, nowMs)) continue;
      rows.series.push(series);
      rows.steps.push(step);
      break;
    }
  }
  return rows;
}

export interface HistoryParts {
  readonly table: IndexTable;
  readonly ids: RecordIds;
  readonly quirks: Quirks;
  readonly wire: WireWriter;
  readonly cache: PageCache;
}

/** Answers /index-ticker and /ohlcv: the same paging over two kinds of history. */
export class HistoryPages {
  readonly #history: History;
  readonly #parts: HistoryParts;
  readonly #scope: string;
  readonly #everyType: Readonly<Record<"withLX" | "withoutLX", readonly IndexSeries[]>>;

  constructor(history: History, scope: string, parts: HistoryParts) {
    this.#history = history;
    this.#scope = scope;
    this.#parts = parts;
    const { all } = parts.table;
    this.#everyType = { withLX: all, withoutLX: all.filter(({ type }) => type !== "LX") };
  }

  answer(query: URLSearchParams, scopes: ReadonlySet<string>, nowMs: number): Payload {
    const { quirks, wire } = this.#parts;
    const values = new QueryValues(this.#history.name, query, quirks.ids);
    const type = values.oneOf("indexType", indexTypes);
    const id = values.id("indexId");
    const timestamp = values.moment("timestamp");
    const startAfter = values.id("startAfter");
    const asked = values.size();
    if (this.#history.name === "ohlcv") values.oneOf("interval", ["1d"]);
    values.refuseComplaints();

    const lanes = this.#lanes(type, id, scopes);
    if (lanes.every(({ firstDay, endDay }) => firstDay >= endDay) && quirks.noData === "404")
      throw new Refusal(404, `No data for index ${id ?? type}`);
    if (startAfter === undefined && timestamp === undefined) {
      const rows = newestOfEach(this.#history, lanes, nowMs);
      const end = wire.nextId(undefined, quirks.lastPage === "own-id" ? this.#lastId(rows) : undefined);
      return new Payload(`{"content":[${this.#history.render(rows, nowMs)}]${end}}`);
    }
    const start =
      startAfter !== undefined
        ? this.#after(startAfter, nowMs)
        : { step: this.#history.stepUpTo(timestamp ?? 0), rank: 0 };
    if (!start) return new Payload(`{"content":[]${wire.nextId(undefined, undefined)}}`);
    const limit = startAfter === undefined || this.#sizeCounts(timestamp !== undefined) ? asked : 10;
    return this.#page(lanesKey(type, id, lanes), lanes, start, limit, nowMs).payload;
  }

  /** Makes the pages of a walk over one index from `toMs` back to `fromMs`, and says how many rows they hold. */
  prerender(
    type: IndexType,
    id: string,
    { fromMs, toMs }: { fromMs: number; toMs: number },
    size: number,
    nowMs: number,
  ): number {
    const lanes = this.#lanes(type, id, new Set([this.#scope, "read:LX"]));
    const end = this.#history.stepUpTo(fromMs);
    let start: Start = { step: this.#history.stepUpTo(toMs), rank: 0 };
    let rendered = 0;
    for (;;) {
      const { payload, last, rows = 0 } = this.#page(lanesKey(type, id, lanes), lanes, start, size, nowMs);
      payload.gzipped();
      rendered += rows;
      if (!last || rows < size || last.step <= end) return rendered;
      start = { step: last.step, rank: last.rank + 1 };
    }
  }

  #sizeCounts(besideTimestamp: boolean): boolean {
    const rule = this.#parts.quirks.sizeBesideStartAfter;
    return rule === "honoured" || (rule === "needs-timestamp" && besideTimestamp);
  }

  /** The indexes that are asked for and may be seen. */
  #lanes(
    type: IndexType | undefined,
    id: string | undefined,
    scopes: ReadonlySet<string>,
  ): readonly IndexSeries[] {
    const { table } = this.#parts;
    const series = id === undefined ? undefined : table.byId(id);
    const liquid = (series?.type ?? type) === "LX";
    const scope = liquid ? "read:LX" : this.#scope;
    if (!scopes.has(scope)) throw new Refusal(403, `The scope ${scope} is missing`);
    if (id !== undefined) {
      if (!series || (type !== undefined && series.type !== type))
        throw new Refusal(404, `No index ${id} of type ${type ?? "any"}`);
      return [series];
    }
    if (type !== undefined) return table.ofType(type);
    return this.#everyType[scopes.has("read:LX") ? "withLX" : "withoutLX"];
  }

  /** Where the records after the one that a cursor names begin; undefined: nowhere. */
  #after(cursor: string, nowMs: number): Start | undefined {
    const { ids, table, quirks } = this.#parts;
    const place = ids.place(cursor);
    const type = indexTypes.find((one) => this.#history.kind(one) === place?.kind);
    const series = place && type ? table.ofType(type)[place.ordinal] : undefined;
    if (place && series) {
      const { oldest, newest } = this.#history.span(series, nowMs);
      const alive = place.step >= oldest && place.step <= newest;
      if (alive && this.#history.known(series, place.step, nowMs))
        return { step: place.step, rank: series.rank + (quirks.cursor === "exclusive" ? 1 : 0) };
    }
    if (quirks.deadCursor === "empty") return undefined;
    if (quirks.deadCursor === "404") throw new Refusal(404, "startAfter names no existing record");
    throw new Refusal(400, "Validation error", [
      {
        object: this.#history.name,
        field: "startAfter",
        rejectedValue: cursor,
        message: "names no existing record",
      },
    ]);
  }

  #page(
    lanesKey: string,
    lanes: readonly IndexSeries[],
    start: Start,
    limit: number,
    nowMs: number,
  ): KeptPage {
    const { cache, wire } = this.#parts;
    const key = `${this.#history.name}|${lanesKey}|${start.step}|${start.rank}|${limit}`;
    const kept = cache.get(key);
    // A cache upstream may ask for a moment long ago, at which the page was not yet what it is now.
    const settled = this.#history.settled(start.step, nowMs);
    if (kept && settled && this.#history.reachable(kept.oldest, nowMs)) return kept;
    const { rows, more, oldest } = walkBack(this.#history, lanes, start, limit, nowMs);
    const lastId = this.#lastId(rows);
    const end = wire.nextId(more ? lastId : undefined, lastId);
    const payload = new Payload(`{"content":[${this.#history.render(rows, nowMs)}]${end}}`);
    const count = rows.steps.length;
    const last = { step: rows.steps[count - 1] ?? 0, rank: rows.series[count - 1]?.rank ?? 0 };
    const page = { payload, oldest, last: count > 0 ? last : undefined, rows: count };
    const wholeForGood = more || this.#history.endsForGood;
    if (wholeForGood && settled) cache.keep(key, page);
    return page;
  }

  #lastId({ series, steps }: PageRows): string | undefined {
    const last = series.at(-1);
    const step = steps.at(-1);
    if (!last || step === undefined) return undefined;
    return this.#parts.ids.id(this.#history.kind(last.type), last.ordinal, step);
  }
}

function lanesKey(
  type: IndexType | undefined,
  id: string | undefined,
  lanes: readonly IndexSeries[],
): string {
  return `${type ?? ""}|${id ?? lanes.length}`;
}
