import { formatDecimal, formatUtc } from "../market/format.ts";
import { type IndexSeries, type SimulatedIndexType, simulatedIndexTypes } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import type { RecordKind } from "../market/record-ids.ts";
import { HttpError } from "./errors.ts";
import { formatPage, nextIdOf, Payload } from "./http-types.ts";
import { QueryParams } from "./query-params.ts";

/** The records of a page, newest first. Two parallel arrays, because pages are long. */
export interface PageRecords {
  readonly series: IndexSeries[];
  readonly steps: number[];
}

/** A number of a record, and how many digits its fraction has. */
export type RecordFigure = readonly [name: string, value: number, digits: number];

export type HistoryRecord<Name extends string> = Readonly<
  Record<"id" | "indexId" | Name, string> & { indexType: SimulatedIndexType }
>;

/** What a record has beside its id and its index, in this order. */
interface RecordContent {
  readonly figures: readonly RecordFigure[];
  readonly moments: readonly (readonly [name: string, ms: number])[];
}

/** One kind of history (ticks or daily bars). Time is divided into numbered steps, with at most one record per index and step. */
export abstract class History<HistoryRecord extends { id: string } = { id: string }> {
  abstract readonly name: string;
  abstract readonly stepMs: number;
  /** How long after the start of its step a record is final, if no tick is late. */
  abstract readonly finalAfterMs: number;
  /** What `timestamp` is compared with: this long after the start of a step. */
  abstract readonly boundMs: number;
  protected readonly market: MarketModel;

  constructor(market: MarketModel) {
    this.market = market;
  }

  abstract recordKind(type: SimulatedIndexType): RecordKind;
  /** The steps that can have records now, both inclusive. */
  abstract stepRange(series: IndexSeries, nowMs: number): { oldest: number; newest: number };
  /** Whether the record exists by `nowMs`, for a step within `stepRange`. */
  abstract isPublished(series: IndexSeries, step: number, nowMs: number): boolean;
  protected abstract content(series: IndexSeries, step: number, nowMs: number): RecordContent | undefined;

  /** The newest step whose record is "up to" this timestamp. */
  lastStepUpTo(ms: number): number {
    const step = Math.floor((ms - this.boundMs) / this.stepMs);
    const isExact = step * this.stepMs + this.boundMs === ms;
    return isExact && this.market.quirks.upperBound === "exclusive" ? step - 1 : step;
  }

  /** Whether this step and all older ones are final, except for leaving the window. */
  isSettled(step: number, nowMs: number): boolean {
    return step * this.stepMs + this.finalAfterMs + this.market.calendar.settleDelayMs <= nowMs;
  }

  record(series: IndexSeries, step: number, nowMs: number): HistoryRecord | undefined {
    const content = this.content(series, step, nowMs);
    if (!content) return undefined;
    const { ids } = this.market;
    const id = ids.encode(this.recordKind(series.type), series.ordinal, step);
    const record: Record<string, string> = { id, indexId: series.id, indexType: series.type };
    for (const [name, value, digits] of content.figures) record[name] = formatDecimal(value, digits);
    for (const [name, ms] of content.moments) record[name] = formatUtc(ms);
    return record as HistoryRecord;
  }
}

/** Where a walk begins: at this step, with the first index of at least this rank. */
interface WalkStart {
  readonly step: number;
  readonly rank: number;
}

/**
 * Walks back in time from `start`, and within a step by rank. `seriesList` is sorted by rank. Reads one record beyond
 * `limit` to know whether there are more.
 */
function walkBackward(
  history: History,
  seriesList: readonly IndexSeries[],
  start: WalkStart,
  limit: number,
  nowMs: number,
): { records: PageRecords; hasMore: boolean } {
  const records: PageRecords = { series: [], steps: [] };
  const ranges = seriesList.map((series) => history.stepRange(series, nowMs));
  let oldestStep = Number.POSITIVE_INFINITY;
  let newestStep = Number.NEGATIVE_INFINITY;
  for (const { oldest, newest } of ranges) {
    if (newest < oldest) continue;
    oldestStep = Math.min(oldestStep, oldest);
    newestStep = Math.max(newestStep, newest);
  }
  let step = start.step;
  let position = seriesList.findIndex(({ rank }) => rank >= start.rank);
  if (position < 0) {
    position = 0;
    step--;
  }
  if (step > newestStep) {
    step = newestStep;
    position = 0;
  }
  for (; step >= oldestStep; step--, position = 0) {
    for (; position < seriesList.length; position++) {
      const series = seriesList[position] as IndexSeries;
      const range = ranges[position];
      if (!range || step < range.oldest || step > range.newest || !history.isPublished(series, step, nowMs))
        continue;
      if (records.steps.length === limit) return { records, hasMore: true };
      records.series.push(series);
      records.steps.push(step);
    }
  }
  return { records, hasMore: false };
}

/** The newest record of each index that has one. */
function newestRecords(history: History, seriesList: readonly IndexSeries[], nowMs: number): PageRecords {
  const records: PageRecords = { series: [], steps: [] };
  for (const series of seriesList) {
    const { oldest, newest } = history.stepRange(series, nowMs);
    for (let step = newest; step >= oldest; step--) {
      if (!history.isPublished(series, step, nowMs)) continue;
      records.series.push(series);
      records.steps.push(step);
      break;
    }
  }
  return records;
}

/** Serves /index-ticker and /ohlcv: the same pagination over two kinds of history. */
export class HistoryPages {
  readonly #history: History;
  readonly #scope: string;
  readonly #market: MarketModel;
  readonly #allSeries: Readonly<Record<"withLX" | "withoutLX", readonly IndexSeries[]>>;

  constructor(history: History, scope: string, market: MarketModel) {
    this.#history = history;
    this.#scope = scope;
    this.#market = market;
    const { all } = market.table;
    this.#allSeries = { withLX: all, withoutLX: all.filter(({ type }) => type !== "LX") };
  }

  respond(query: URLSearchParams, scopes: ReadonlySet<string>, nowMs: number): Payload {
    const { quirks } = this.#market;
    const params = new QueryParams(this.#history.name, query, quirks);
    const type = params.oneOf("indexType", simulatedIndexTypes);
    const id = params.id("indexId");
    const timestamp = params.timestamp("timestamp");
    const startAfter = params.id("startAfter");
    const requestedSize = params.size();
    if (quirks.futureTimestamp === "rejected" && timestamp !== undefined && timestamp > nowMs)
      params.addError("searchEnd", "must not be in the future");
    if (this.#history.name === "ohlcv") params.oneOf("interval", ["1d"]);
    params.throwIfInvalid();

    const seriesList = this.#selectSeries(type, id, scopes);
    if (seriesList.every(({ firstDay, endDay }) => firstDay >= endDay) && quirks.noData !== "empty")
      throw new HttpError(Number(quirks.noData), `No data for index ${id ?? type}`);
    if (startAfter === undefined && timestamp === undefined) {
      return this.#render(newestRecords(this.#history, seriesList, nowMs), false, nowMs);
    }
    const start =
      startAfter !== undefined
        ? this.#startAfterCursor(startAfter, nowMs)
        : { step: this.#history.lastStepUpTo(timestamp ?? 0), rank: 0 };
    const size = startAfter === undefined || this.#honoursSize(timestamp !== undefined) ? requestedSize : 10;
    const limit = Math.min(size, quirks.maxPageRows);
    const { records, hasMore } = walkBackward(this.#history, seriesList, start, limit, nowMs);
    return this.#render(records, hasMore, nowMs);
  }

  #honoursSize(besideTimestamp: boolean): boolean {
    const rule = this.#market.quirks.sizeBesideStartAfter;
    return rule === "honoured" || (rule === "needs-timestamp" && besideTimestamp);
  }

  /** The requested indexes that the scopes allow. */
  #selectSeries(
    type: SimulatedIndexType | undefined,
    id: string | undefined,
    scopes: ReadonlySet<string>,
  ): readonly IndexSeries[] {
    const { table } = this.#market;
    const series = id === undefined ? undefined : table.byId(id);
    const isLiquid = (series?.type ?? type) === "LX";
    const scope = isLiquid ? "read:LX" : this.#scope;
    if (!scopes.has(scope)) throw new HttpError(403, `The scope ${scope} is missing`);
    if (id !== undefined) {
      if (!series || (type !== undefined && series.type !== type))
        throw new HttpError(404, `No index ${id} of type ${type ?? "any"}`);
      return [series];
    }
    if (type !== undefined) return table.ofType(type);
    return this.#allSeries[scopes.has("read:LX") ? "withLX" : "withoutLX"];
  }

  /** Where the page after a cursor begins. */
  #startAfterCursor(cursor: string, nowMs: number): WalkStart {
    const { ids, table, quirks } = this.#market;
    const position = ids.decode(cursor);
    const type = simulatedIndexTypes.find((one) => this.#history.recordKind(one) === position?.kind);
    const series = position && type ? table.ofType(type)[position.ordinal] : undefined;
    if (position && series) {
      const { oldest, newest } = this.#history.stepRange(series, nowMs);
      const isInRange = position.step >= oldest && position.step <= newest;
      if (isInRange && this.#history.isPublished(series, position.step, nowMs))
        return { step: position.step, rank: series.rank + (quirks.cursor === "exclusive" ? 1 : 0) };
    }
    throw new HttpError(404, "startAfter names no existing record");
  }

  #render({ series, steps }: PageRecords, hasMore: boolean, nowMs: number): Payload {
    // Nobody may need the page: render it when it is read.
    return new Payload(() => {
      const records = steps.flatMap(
        (step, at) => this.#history.record(series[at] as IndexSeries, step, nowMs) ?? [],
      );
      const { lastPage } = this.#market.quirks;
      return formatPage(records, nextIdOf(lastPage, hasMore, records.at(-1)?.id));
    });
  }
}
