import {
  type IndexSeries,
  type IndexTable,
  type SimulatedIndexType,
  simulatedIndexTypes,
} from "../market/indexes.ts";
import type { Quirks } from "../market/quirks.ts";
import type { RecordIds, RecordKind } from "../market/record-ids.ts";
import { HttpError } from "./errors.ts";
import { Payload } from "./http-types.ts";
import type { JsonWriter } from "./json-writer.ts";
import type { CachedPage, PageCache } from "./page-cache.ts";
import { QueryParams } from "./query-params.ts";

/** Records of a page, newest first: parallel lists, since pages are long. */
export interface PageRecords {
  readonly series: IndexSeries[];
  readonly steps: number[];
}

/** One kind of history (ticks, daily bars): time cut into numbered steps, at most one record per index and step. */
export interface History {
  readonly name: string;
  recordKind(type: SimulatedIndexType): RecordKind;
  /** The newest step whose record counts as "up to" this moment. */
  lastStepUpTo(ms: number): number;
  /** Steps at which the index may have records now: [oldest, newest]. */
  stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether the record exists at this moment, given that its step is within the span. */
  isPublished(series: IndexSeries, step: number, nowMs: number): boolean;
  /** Whether nothing about this step, or an older one, can change any more, other than leaving the window. */
  isSettled(step: number, nowMs: number): boolean;
  /** Whether a page that reaches down to this step is still the same page today. */
  isReachable(step: number, nowMs: number): boolean;
  /** Whether the history's far end stands still, so that a last page may be kept. */
  readonly hasFixedEnd: boolean;
  /** The records as the elements of a JSON array. */
  render(rows: PageRecords, nowMs: number): string;
}

/** Where a walk begins: at this step, with the first index whose rank is at least this. */
export interface WalkStart {
  readonly step: number;
  readonly rank: number;
}

/**
 * Walks back in time from `start`; within one step, along the rank of the indexes. `lanes` are sorted by rank.
 * Looks one record further than `limit` to know whether there is more; `oldest` is the step of that look.
 */
export function walkBackward(
  history: History,
  lanes: readonly IndexSeries[],
  start: WalkStart,
  limit: number,
  nowMs: number,
): { rows: PageRecords; more: boolean; oldest: number } {
  const rows: PageRecords = { series: [], steps: [] };
  const spans = lanes.map((series) => history.stepRange(series, nowMs));
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
      if (!span || step < span.oldest || step > span.newest || !history.isPublished(series, step, nowMs))
        continue;
      if (rows.steps.length === limit) return { rows, more: true, oldest: step };
      rows.series.push(series);
      rows.steps.push(step);
    }
  }
  return { rows, more: false, oldest: floor };
}

/** The most recent record of every index that has one. */
export function newestRecords(history: History, lanes: readonly IndexSeries[], nowMs: number): PageRecords {
  const rows: PageRecords = { series: [], steps: [] };
  for (const series of lanes) {
    const { oldest, newest } = history.stepRange(series, nowMs);
    for (let step = newest; step >= oldest; step--) {
      if (!history.isPublished(series, step, nowMs)) continue;
      rows.series.push(series);
      rows.steps.push(step);
      break;
    }
  }
  return rows;
}

export interface HistoryPagesOptions {
  readonly table: IndexTable;
  readonly ids: RecordIds;
  readonly quirks: Quirks;
  readonly wire: JsonWriter;
  readonly cache: PageCache;
}

/** Answers /index-ticker and /ohlcv: the same paging over two kinds of history. */
export class HistoryPages {
  readonly #history: History;
  readonly #options: HistoryPagesOptions;
  readonly #scope: string;
  readonly #allSeries: Readonly<Record<"withLX" | "withoutLX", readonly IndexSeries[]>>;

  constructor(history: History, scope: string, parts: HistoryPagesOptions) {
    this.#history = history;
    this.#scope = scope;
    this.#options = parts;
    const { all } = parts.table;
    this.#allSeries = { withLX: all, withoutLX: all.filter(({ type }) => type !== "LX") };
  }

  respond(query: URLSearchParams, scopes: ReadonlySet<string>, nowMs: number): Payload {
    const { quirks, wire } = this.#options;
    const values = new QueryParams(this.#history.name, query, quirks.ids);
    const type = values.oneOf("indexType", simulatedIndexTypes);
    const id = values.id("indexId");
    const timestamp = values.timestamp("timestamp");
    const startAfter = values.id("startAfter");
    const requestedSize = values.size();
    if (this.#history.name === "ohlcv") values.oneOf("interval", ["1d"]);
    values.throwIfInvalid();

    const lanes = this.#selectSeries(type, id, scopes);
    if (lanes.every(({ firstDay, endDay }) => firstDay >= endDay) && quirks.noData === "404")
      throw new HttpError(404, `No data for index ${id ?? type}`);
    if (startAfter === undefined && timestamp === undefined) {
      const rows = newestRecords(this.#history, lanes, nowMs);
      const end = wire.nextIdProperty(
        undefined,
        quirks.lastPage === "own-id" ? this.#lastId(rows) : undefined,
      );
      return new Payload(`{"content":[${this.#history.render(rows, nowMs)}]${end}}`);
    }
    const start =
      startAfter !== undefined
        ? this.#startAfterCursor(startAfter, nowMs)
        : { step: this.#history.lastStepUpTo(timestamp ?? 0), rank: 0 };
    if (!start) return new Payload(`{"content":[]${wire.nextIdProperty(undefined, undefined)}}`);
    const limit = startAfter === undefined || this.#honoursSize(timestamp !== undefined) ? requestedSize : 10;
    return this.#page(lanesKey(type, id, lanes), lanes, start, limit, nowMs).payload;
  }

  /** Makes the pages of a walk over one index from `toMs` back to `fromMs`, and says how many rows they hold. */
  prerender(
    type: SimulatedIndexType,
    id: string,
    { fromMs, toMs }: { fromMs: number; toMs: number },
    size: number,
    nowMs: number,
  ): number {
    const lanes = this.#selectSeries(type, id, new Set([this.#scope, "read:LX"]));
    const end = this.#history.lastStepUpTo(fromMs);
    let start: WalkStart = { step: this.#history.lastStepUpTo(toMs), rank: 0 };
    let rendered = 0;
    for (;;) {
      const { payload, last, rows = 0 } = this.#page(lanesKey(type, id, lanes), lanes, start, size, nowMs);
      payload.gzipped();
      rendered += rows;
      if (!last || rows < size || last.step <= end) return rendered;
      start = { step: last.step, rank: last.rank + 1 };
    }
  }

  #honoursSize(besideTimestamp: boolean): boolean {
    const rule = this.#options.quirks.sizeBesideStartAfter;
    return rule === "honoured" || (rule === "needs-timestamp" && besideTimestamp);
  }

  /** The indexes that are asked for and may be seen. */
  #selectSeries(
    type: SimulatedIndexType | undefined,
    id: string | undefined,
    scopes: ReadonlySet<string>,
  ): readonly IndexSeries[] {
    const { table } = this.#options;
    const series = id === undefined ? undefined : table.byId(id);
    const liquid = (series?.type ?? type) === "LX";
    const scope = liquid ? "read:LX" : this.#scope;
    if (!scopes.has(scope)) throw new HttpError(403, `The scope ${scope} is missing`);
    if (id !== undefined) {
      if (!series || (type !== undefined && series.type !== type))
        throw new HttpError(404, `No index ${id} of type ${type ?? "any"}`);
      return [series];
    }
    if (type !== undefined) return table.ofType(type);
    return this.#allSeries[scopes.has("read:LX") ? "withLX" : "withoutLX"];
  }

  /** Where the records after the one that a cursor names begin; undefined: nowhere. */
  #startAfterCursor(cursor: string, nowMs: number): WalkStart | undefined {
    const { ids, table, quirks } = this.#options;
    const place = ids.decode(cursor);
    const type = simulatedIndexTypes.find((one) => this.#history.recordKind(one) === place?.kind);
    const series = place && type ? table.ofType(type)[place.ordinal] : undefined;
    if (place && series) {
      const { oldest, newest } = this.#history.stepRange(series, nowMs);
      const alive = place.step >= oldest && place.step <= newest;
      if (alive && this.#history.isPublished(series, place.step, nowMs))
        return { step: place.step, rank: series.rank + (quirks.cursor === "exclusive" ? 1 : 0) };
    }
    if (quirks.deadCursor === "empty") return undefined;
    if (quirks.deadCursor === "404") throw new HttpError(404, "startAfter names no existing record");
    throw new HttpError(400, "Validation error", [
      {
        object: this.#history.name,
        field: "startAfter",
        rejectedValue: cursor,
        message: "names no existing record",
      },
    ]);
  }

  #page(
    selectionKey: string,
    lanes: readonly IndexSeries[],
    start: WalkStart,
    limit: number,
    nowMs: number,
  ): CachedPage {
    const { cache, wire } = this.#options;
    const key = `${this.#history.name}|${selectionKey}|${start.step}|${start.rank}|${limit}`;
    const kept = cache.get(key);
    // A cache upstream may ask for a moment long ago, at which the page was not yet what it is now.
    const settled = this.#history.isSettled(start.step, nowMs);
    if (kept && settled && this.#history.isReachable(kept.oldest, nowMs)) return kept;
    const { rows, more, oldest } = walkBackward(this.#history, lanes, start, limit, nowMs);
    const lastId = this.#lastId(rows);
    const end = wire.nextIdProperty(more ? lastId : undefined, lastId);
    const payload = new Payload(`{"content":[${this.#history.render(rows, nowMs)}]${end}}`);
    const count = rows.steps.length;
    const last = { step: rows.steps[count - 1] ?? 0, rank: rows.series[count - 1]?.rank ?? 0 };
    const page = { payload, oldest, last: count > 0 ? last : undefined, rows: count };
    const wholeForGood = more || this.#history.hasFixedEnd;
    if (wholeForGood && settled) cache.set(key, page);
    return page;
  }

  #lastId({ series, steps }: PageRecords): string | undefined {
    const last = series.at(-1);
    const step = steps.at(-1);
    if (!last || step === undefined) return undefined;
    return this.#options.ids.encode(this.#history.recordKind(last.type), last.ordinal, step);
  }
}

function lanesKey(
  type: SimulatedIndexType | undefined,
  id: string | undefined,
  lanes: readonly IndexSeries[],
): string {
  return `${type ?? ""}|${id ?? lanes.length}`;
}
