import { indexTypes } from "../model/stream-columns.ts";
import { formatTimestamp, type Micros } from "../model/time.ts";
import { ApiError } from "./api-error.ts";
import type { Choices } from "./choices.ts";
import type { ApiResponse } from "./interceptor.ts";
import { DEFAULT_PAGE_SIZE, readParams } from "./query-params.ts";
import { parseRecordId } from "./record-ids.ts";
import { type EndpointRequest, formatPage, nextIdOf, okResponse } from "./responses.ts";
import type { CoverageSegment, HistoryRecord, HistorySeries } from "./source.ts";

const COVERAGE_HEADER = "x-mds-coverage";
/** Reason of the time before the first range that a warehouse was asked to sync. */
export const NOT_AT_SOURCE_REASON = "not at the source";

const endpoints = {
  index_ticks: { object: "index-ticker", scope: "read:index-ticker" },
  ohlcv: { object: "ohlcv", scope: "read:ohlcv" },
};

/** Answers `/index-ticker` and `/ohlcv`. */
export function respondHistory(stream: keyof typeof endpoints, request: EndpointRequest): ApiResponse {
  const { state, choices } = request;
  const { object, scope } = endpoints[stream];
  const params = readParams(object, request);
  const indexType = params.oneOf("indexType", indexTypes);
  const indexId = params.id("indexId");
  const timestamp = params.timestamp("timestamp");
  const startAfter = params.id("startAfter");
  const size = params.size();
  if (choices.futureTimestamp === "rejected" && timestamp !== undefined && timestamp > state.now)
    params.addError("searchEnd", "must not be in the future");
  if (stream === "ohlcv") params.oneOf("interval", ["1d"]);
  const mustBeComplete = params.flag("complete");
  params.throwIfInvalid();

  const mayRead = (type: string) => request.scopes.has(type === "LX" ? "read:LX" : scope);
  if (!indexTypes.some((type) => (indexType ?? type) === type && mayRead(type)))
    throw new ApiError(403, `The token does not allow ${indexType ?? object}`);
  const found = state.findSeries(stream, { indexType, indexId });
  const [one] = indexId === undefined ? [] : found;
  if (indexId !== undefined && !one)
    throw new ApiError(404, `No index ${indexId} of type ${indexType ?? "any"}`);
  if (one && !mayRead(one.indexType)) throw new ApiError(403, `The token does not allow ${one.indexType}`);
  const selected = one ? [one] : found.filter((series) => mayRead(series.indexType));
  if (choices.noData !== "empty" && selected.every(({ isEmpty }) => isEmpty))
    throw new ApiError(Number(choices.noData), `No data for index ${indexId ?? indexType}`);

  if (timestamp === undefined && startAfter === undefined) {
    const latest = selected.flatMap((series) => series.latest()?.text ?? []);
    return okResponse(formatPage(latest, nextIdOf(choices, false, undefined)));
  }
  const hasOwnSize =
    startAfter === undefined ||
    choices.sizeBesideStartAfter === "honoured" ||
    (choices.sizeBesideStartAfter === "needs-timestamp" && timestamp !== undefined);
  const limit = Math.min(hasOwnSize ? size : DEFAULT_PAGE_SIZE, choices.maxPageRows);
  const position = startAfter === undefined ? undefined : findPosition(selected, startAfter, one);
  const endOf = (series: HistorySeries) => findEnd(series, position, timestamp ?? 0, choices);
  const page = one ? readPage(one, endOf(one), limit) : readMergedPage(selected, endOf, limit);
  const header = formatNotes(page.notes);
  const headers: Record<string, string> = header === undefined ? {} : { [COVERAGE_HEADER]: header };
  if (mustBeComplete && page.notes.some(isIncomplete))
    throw new ApiError(503, `The page is not complete: ${header}`, { headers });
  const { records, hasMore } = page;
  const last = records.at(-1);
  const nextId = nextIdOf(choices, hasMore, last?.series.cursorAt(last.ts));
  const texts = records.map(({ text }) => text);
  return okResponse(formatPage(texts, nextId), headers);
}

/** The place of a record: pages go back in time, and by rank within a timestamp. */
interface Position {
  readonly ts: Micros;
  readonly rank: number;
}

/** The place of the record that `startAfter` names. Ids of other streams, series or warehouses name none. */
function findPosition(
  list: readonly HistorySeries[],
  startAfter: string,
  one: HistorySeries | undefined,
): Position {
  const position = parseRecordId(startAfter, ({ key, number }) => {
    const series = list.find(({ rank }) => rank === key);
    return series?.read(number, number + 1, 1).length ? series.cursorAt(number) : undefined;
  });
  if (position) return { ts: position.number, rank: position.key };
  const ts = one?.findRecord?.(startAfter);
  if (one && ts !== undefined) return { ts, rank: one.rank };
  throw new ApiError(404, `No record ${startAfter}: begin again with a timestamp`);
}

/** The records of a series on the page are below this timestamp. */
function findEnd(
  { rank, bound = 0 }: HistorySeries,
  position: Position | undefined,
  timestamp: Micros,
  { cursor, upperBound }: Choices,
): Micros {
  if (!position) return timestamp - bound + (upperBound === "inclusive" ? 1 : 0);
  // Of the timestamp of the cursor, the series up to the cursor's have been served.
  const isServed = cursor === "inclusive" ? rank < position.rank : rank <= position.rank;
  return isServed ? position.ts : position.ts + 1;
}

interface PageRecord extends HistoryRecord {
  readonly series: HistorySeries;
}

interface Page {
  readonly records: readonly PageRecord[];
  readonly hasMore: boolean;
  /** What is not proven to have records, as far as the page goes. */
  readonly notes: readonly CoverageSegment[];
}

/** A longer list would not fit into a header: the page ends there. */
const MAX_NOTES = 20;

/** Whether nothing is proven about the range: it may get records. */
const isUnproven = ({ state }: CoverageSegment) => state === "open" || state === "unconfirmed";

/** What lies before the beginning of the history is no part of it. */
const isIncomplete = (segment: CoverageSegment) =>
  isUnproven(segment) || (segment.state === "lost" && segment.reason !== NOT_AT_SOURCE_REASON);

/**
 * A page ends at the first open range below its records, unless nothing is stored below that. A page that begins in an open
 * range has the records that are stored there, and names the range too.
 */
function readPage(series: HistorySeries, end: Micros, limit: number): Page {
  const records: PageRecord[] = [];
  const notes: CoverageSegment[] = [];
  const page = (hasMore: boolean) => ({ records, hasMore, notes });
  for (const segment of series.segments?.(end) ?? [covered(end)]) {
    const { from, to } = segment;
    const isStop = isUnproven(segment) || notes.length >= MAX_NOTES;
    if (segment.state !== "covered") addNote(notes, segment);
    // The next page begins below the last record, so that it also names what lies between both.
    if (isStop && records.length > 0 && series.read(0, to, 1).length > 0) return page(true);
    for (const { ts, text } of series.read(from, to, limit + 1 - records.length))
      records.push({ series, ts, text });
    if (records.length <= limit) continue;
    records.pop();
    return page(true);
  }
  return page(false);
}

const covered = (to: Micros): CoverageSegment => ({ from: 0, to, state: "covered", reason: null });

/** Beyond the limit the last note grows: it then says less than is known, never more. */
function addNote(notes: CoverageSegment[], segment: CoverageSegment): void {
  const last = notes.at(-1);
  if (last === undefined || notes.length <= MAX_NOTES) notes.push(segment);
  else notes[notes.length - 1] = { from: segment.from, to: last.to, state: "open", reason: null };
}

/** Read per series at once, at least. */
const MIN_MERGED_READ = 2;

/** A page over several series. It does not end at open ranges, which differ between series, but it names them. */
function readMergedPage(
  list: readonly HistorySeries[],
  endOf: (series: HistorySeries) => Micros,
  limit: number,
): Page {
  const perSeries = Math.max(MIN_MERGED_READ, Math.ceil((2 * limit) / Math.max(1, list.length)));
  const end = list.reduce((highest, series) => Math.max(highest, endOf(series)), 0);
  const records: PageRecord[] = [];
  for (let below = end; ; ) {
    // From `bottom` on, every series was read.
    let bottom = Number.NEGATIVE_INFINITY;
    const read = list.map((series) => {
      const found = series.read(0, Math.min(endOf(series), below), perSeries);
      if (found.length === perSeries) bottom = Math.max(bottom, found.at(-1)?.ts ?? bottom);
      return found.map((record): PageRecord => ({ series, ...record }));
    });
    const whole = read.flat().filter(({ ts }) => ts >= bottom);
    for (const record of whole.sort((a, b) => b.ts - a.ts || a.series.rank - b.series.rank))
      records.push(record);
    const hasMore = records.length > limit;
    if (!hasMore && Number.isFinite(bottom)) {
      below = bottom;
      continue;
    }
    const page = records.slice(0, limit);
    const oldest = hasMore ? (page.at(-1)?.ts ?? 0) : 0;
    return { records: page, hasMore, notes: findOpenEnvelope(list, oldest, end) };
  }
}

/** One range that contains the open ranges of all series within the page. */
function findOpenEnvelope(
  list: readonly HistorySeries[],
  bottom: Micros,
  end: Micros,
): readonly CoverageSegment[] {
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const series of list)
    for (const segment of series.segments?.(end) ?? []) {
      if (segment.to <= bottom) break;
      if (!isUnproven(segment)) continue;
      from = Math.min(from, segment.from);
      to = Math.max(to, segment.to);
    }
  return from < to ? [{ from, to, state: "open", reason: null }] : [];
}

/** `open from=… to=…, lost from=… to=… reason="aged out"`; undefined without a range. */
function formatNotes(notes: readonly CoverageSegment[]): string | undefined {
  const texts = notes.map(({ from, to, state, reason }) => {
    const range = `${state} from=${formatTimestamp(from)} to=${formatTimestamp(to)}`;
    return reason === null ? range : `${range} reason="${reason.replaceAll(/[^ -~]|"/g, "_")}"`;
  });
  return texts.length === 0 ? undefined : texts.join(", ");
}
