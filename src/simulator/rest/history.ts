import { formatDecimal } from "../market/format.ts";
import { type IndexSeries, type SimulatedIndexType, simulatedIndexTypes } from "../market/indexes.ts";
import type { MarketModel } from "../market/market-model.ts";
import { type RecordKind, scrambleStep } from "../market/record-ids.ts";
import { HttpError, validationError } from "./errors.ts";
import { Payload } from "./http-types.ts";
import type { CachedPage, PageCache } from "./page-cache.ts";
import { createAffixes, PageWriter, type RecordAffixes } from "./page-writer.ts";
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

/** More than a record has without its ids. */
const MAX_RECORD_BYTES = 1024;

/** One kind of history (ticks or daily bars). Time is divided into numbered steps, with at most one record per index and step. */
export abstract class History<HistoryRecord extends object = object> {
  abstract readonly name: string;
  abstract readonly stepMs: number;
  /** How long after the start of its step a record is final, if no tick is late. */
  abstract readonly finalAfterMs: number;
  /** What `timestamp` is compared with: this long after the start of a step. */
  abstract readonly boundMs: number;
  /** Whether the oldest record never changes, so that the last page can be cached. */
  abstract readonly hasFixedEnd: boolean;
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
    const { ids, utc } = this.market;
    const id = ids.encode(this.recordKind(series.type), series.ordinal, step);
    const record: Record<string, string> = { id, indexId: series.id, indexType: series.type };
    for (const [name, value, digits] of content.figures) record[name] = formatDecimal(value, digits);
    for (const [name, ms] of content.moments) record[name] = utc.format(ms);
    return record as HistoryRecord;
  }

  /** Writes the records as the elements of a JSON array. */
  write({ series: seriesList, steps }: PageRecords, nowMs: number, writer: PageWriter): void {
    const { quirks, ids, json } = this.market;
    const isPlain = !quirks.extraProperties && !quirks.reorderedProperties;
    let affixes: RecordAffixes | undefined;
    let separator = "";
    for (let at = 0; at < steps.length; at++) {
      const series = seriesList[at] as IndexSeries;
      const step = steps[at] as number;
      const content = this.content(series, step, nowMs);
      if (!content) continue;
      if (series !== seriesList[at - 1] || !affixes)
        affixes = createAffixes(ids, this.recordKind(series.type), series);
      writer.reserve(MAX_RECORD_BYTES + affixes.bytes);
      writer.writeAscii(separator);
      separator = ",";
      if (isPlain) this.#writePlain(writer, affixes, step, content);
      else writer.writeText(json.formatRecord(this.record(series, step, nowMs) ?? {}));
    }
  }

  /** Writes the same text as JsonWriter would, without creating an object per record. */
  #writePlain(
    writer: PageWriter,
    { start, afterId }: RecordAffixes,
    step: number,
    { figures, moments }: RecordContent,
  ): void {
    const { quirks, utc } = this.market;
    const quote = quirks.decimals === "string" ? '"' : "";
    writer.writeBytes(start);
    writer.writeAscii(scrambleStep(step));
    writer.writeBytes(afterId);
    for (const [name, value, digits] of figures) {
      writer.writeName(name);
      writer.writeAscii(quote);
      writer.writeDecimal(value, digits);
      writer.writeAscii(quote);
    }
    for (const [name, ms] of moments) {
      writer.writeName(name);
      writer.writeAscii('"');
      writer.writeAscii(utc.format(ms));
      writer.writeAscii('"');
    }
    writer.writeAscii("}");
  }
}

/** Where a walk begins: at this step, with the first index of at least this rank. */
interface WalkStart {
  readonly step: number;
  readonly rank: number;
}

/**
 * Walks back in time from `start`, and within a step by rank. `seriesList` is sorted by rank. Reads one record beyond
 * `limit` to know whether there are more; `oldest` is the oldest step it read.
 */
function walkBackward(
  history: History,
  seriesList: readonly IndexSeries[],
  start: WalkStart,
  limit: number,
  nowMs: number,
): { records: PageRecords; hasMore: boolean; oldest: number } {
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
      if (records.steps.length === limit) return { records, hasMore: true, oldest: step };
      records.series.push(series);
      records.steps.push(step);
    }
  }
  return { records, hasMore: false, oldest: oldestStep };
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
  readonly #cache: PageCache;
  readonly #pageWriter = new PageWriter();
  readonly #allSeries: Readonly<Record<"withLX" | "withoutLX", readonly IndexSeries[]>>;

  constructor(history: History, scope: string, market: MarketModel, cache: PageCache) {
    this.#history = history;
    this.#scope = scope;
    this.#market = market;
    this.#cache = cache;
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
      const records = newestRecords(this.#history, seriesList, nowMs);
      const end = this.#market.json.nextIdProperty(
        undefined,
        quirks.lastPage === "own-id" ? this.#lastId(records) : undefined,
      );
      return new Payload(this.#render(records, end, nowMs));
    }
    const start =
      startAfter !== undefined
        ? this.#startAfterCursor(startAfter, nowMs)
        : { step: this.#history.lastStepUpTo(timestamp ?? 0), rank: 0 };
    if (!start) return new Payload(`{"content":[]${this.#market.json.nextIdProperty(undefined, undefined)}}`);
    const size = startAfter === undefined || this.#honoursSize(timestamp !== undefined) ? requestedSize : 10;
    const limit = Math.min(size, quirks.maxPageRows);
    return this.#page(createSelectionKey(type, id, seriesList), seriesList, start, limit, nowMs).payload;
  }

  /** Renders and caches the pages of a walk over one index from `toMs` back to `fromMs`. Returns the number of records. */
  prerender(
    type: SimulatedIndexType,
    id: string,
    { fromMs, toMs }: { fromMs: number; toMs: number },
    nowMs: number,
  ): number {
    const size = 2000;
    const seriesList = this.#selectSeries(type, id, new Set([this.#scope, "read:LX"]));
    const end = this.#history.lastStepUpTo(fromMs);
    let start: WalkStart = { step: this.#history.lastStepUpTo(toMs), rank: 0 };
    let rendered = 0;
    for (;;) {
      const {
        payload,
        last,
        rows = 0,
      } = this.#page(createSelectionKey(type, id, seriesList), seriesList, start, size, nowMs);
      payload.gzipped();
      rendered += rows;
      if (!last || rows < size || last.step <= end) return rendered;
      start = { step: last.step, rank: last.rank + 1 };
    }
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

  /** Where the page after a cursor begins; undefined when the page is empty. */
  #startAfterCursor(cursor: string, nowMs: number): WalkStart | undefined {
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
    if (quirks.deadCursor === "empty") return undefined;
    if (quirks.deadCursor === "404") throw new HttpError(404, "startAfter names no existing record");
    throw validationError(this.#history.name, "startAfter", cursor, "names no existing record");
  }

  #page(
    selectionKey: string,
    seriesList: readonly IndexSeries[],
    start: WalkStart,
    limit: number,
    nowMs: number,
  ): CachedPage {
    const key = `${this.#history.name}|${selectionKey}|${start.step}|${start.rank}|${limit}`;
    const cached = this.#cache.get(key);
    // The fault `stale` requests pages as of an earlier time, at which this page may not have been final.
    const isSettled = this.#history.isSettled(start.step, nowMs);
    const isReachable = (oldest: number) =>
      this.#history.hasFixedEnd || oldest >= this.#market.calendar.oldestTickInWindow(nowMs);
    if (cached && isSettled && isReachable(cached.oldest)) return cached;
    const { records, hasMore, oldest } = walkBackward(this.#history, seriesList, start, limit, nowMs);
    const lastId = this.#lastId(records);
    const end = this.#market.json.nextIdProperty(hasMore ? lastId : undefined, lastId);
    const isFinal = hasMore || this.#history.hasFixedEnd;
    // A fault may serve another page instead: do not render this one before it is needed.
    const payload = new Payload(() => {
      const body = this.#render(records, end, nowMs);
      if (isFinal && isSettled) this.#cache.set(key, page, body.length);
      return body;
    });
    const count = records.steps.length;
    const last = { step: records.steps[count - 1] ?? 0, rank: records.series[count - 1]?.rank ?? 0 };
    const page: CachedPage = { payload, oldest, last: count > 0 ? last : undefined, rows: count };
    return page;
  }

  #render(records: PageRecords, end: string, nowMs: number): Buffer {
    this.#pageWriter.writeText('{"content":[');
    this.#history.write(records, nowMs, this.#pageWriter);
    this.#pageWriter.writeText(`]${end}}`);
    return this.#pageWriter.take();
  }

  #lastId({ series, steps }: PageRecords): string | undefined {
    const last = series.at(-1);
    const step = steps.at(-1);
    if (!last || step === undefined) return undefined;
    return this.#market.ids.encode(this.#history.recordKind(last.type), last.ordinal, step);
  }
}

function createSelectionKey(
  type: SimulatedIndexType | undefined,
  id: string | undefined,
  seriesList: readonly IndexSeries[],
): string {
  return `${type ?? ""}|${id ?? seriesList.length}`;
}
