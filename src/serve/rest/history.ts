import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { MAX_AHEAD_MICROS } from "../../warehouse/views/data-views.ts";
import { type HistoryRow, type HistoryTable, historyTables } from "./history-tables.ts";
import {
  type CoverageNote,
  formatNotes,
  isUnproven,
  NOT_AT_SOURCE_REASON,
  readSegments,
} from "./page-coverage.ts";
import { ParamReader } from "./param-reader.ts";
import { parseRecordId } from "./record-ids.ts";
import { findSeries, requireSeries, type ServedSeries } from "./series-directory.ts";
import { ServeError } from "./serve-error.ts";
import { listResponse, type ServeResponse } from "./serve-response.ts";

interface HistoryRequest {
  readonly stream: HistoryStream;
  readonly query: URLSearchParams;
  readonly scopes: ReadonlySet<string>;
  readonly now: Micros;
}

const COVERAGE_HEADER = "x-mds-coverage";

const indexTypeNames = ["MWA", "GWA", "LX"] as const;

/** Answers `/index-ticker` and `/ohlcv`. */
export function serveHistory(connection: Connection, request: HistoryRequest): ServeResponse {
  const { stream, query, now } = request;
  const table = historyTables[stream];
  const params = new ParamReader(table.object, query);
  const indexType = params.oneOf("indexType", indexTypeNames);
  const indexId = params.text("indexId");
  const timestamp = params.timestamp("timestamp");
  const startAfter = params.text("startAfter");
  const size = params.size();
  if (stream === "ohlcv") params.oneOf("interval", ["1d"]);
  const mustBeComplete = params.flag("complete");
  params.finish();

  const mayRead = (type: string) => request.scopes.has(type === "LX" ? "read:LX" : table.scope);
  if (indexType !== undefined && !mayRead(indexType)) throw forbidden(indexType);
  if (!indexTypeNames.some(mayRead)) throw forbidden(table.object);
  const one = indexId === undefined ? undefined : requireSeries(connection, { indexType, indexId });
  if (one && !mayRead(one.indexType)) throw forbidden(one.indexType);
  const list = () => findSeries(connection, { indexType }).filter((series) => mayRead(series.indexType));

  if (timestamp === undefined && startAfter === undefined) {
    const filter = one ? { indexType: one.indexType, indexId: one.indexId } : { indexType };
    const latest = table
      .readLatest(connection, filter, now + MAX_AHEAD_MICROS)
      .filter(({ series }) => mayRead(series.indexType));
    const records = latest.map(({ series, row }) => table.writer(series)(row));
    return listResponse(records, { nextId: null });
  }
  const page = one
    ? readPage(connection, table, one, {
        end: findEnd(connection, table, one, timestamp, startAfter),
        size,
        now,
      })
    : readMergedPage(connection, table, list(), {
        ...findMergedEnd(connection, table, timestamp, startAfter),
        size,
        now,
      });
  const header = formatNotes(page.notes);
  if (mustBeComplete && page.notes.some(isIncomplete))
    throw new ServeError(503, `The page is not complete: ${header}`, {
      headers: header === undefined ? {} : { [COVERAGE_HEADER]: header },
    });
  return listResponse(page.records, {
    nextId: page.nextId,
    ...(header === undefined ? {} : { headers: { [COVERAGE_HEADER]: header } }),
  });
}

/** What lies before the beginning of the history is no part of it. */
function isIncomplete({ state, reason }: CoverageNote): boolean {
  return isUnproven({ state }) || (state === "lost" && reason !== NOT_AT_SOURCE_REASON);
}

function forbidden(what: string): ServeError {
  return new ServeError(403, `The token does not allow ${what}`);
}

interface Page {
  readonly records: readonly string[];
  readonly nextId: string | null;
  /** What the ledger does not prove to have records, as far as the page goes. */
  readonly notes: readonly CoverageNote[];
}

interface PageOptions {
  /** The page has records below this timestamp. */
  readonly end: Micros;
  readonly size: number;
  readonly now: Micros;
}

/** A longer list would not fit into a header: the page ends there. */
const MAX_NOTES = 20;

/**
 * A page ends at the first open range below its records, unless nothing is stored below that. A page that begins in an open
 * range has the records that are stored there, and names the range too.
 */
function readPage(
  connection: Connection,
  table: HistoryTable,
  series: ServedSeries,
  { end, size, now }: PageOptions,
): Page {
  if (series.series === undefined)
    return { records: [], nextId: null, notes: [{ from: 0, to: end, state: "open", reason: null }] };
  const key = { stream: table.stream, series: series.series };
  const rows: HistoryRow[] = [];
  const notes: CoverageNote[] = [];
  let hasMore = false;
  for (const segment of readSegments(connection, key, end, now)) {
    const { from, to, state, reason } = segment;
    const isStop = isUnproven(segment) || notes.length >= MAX_NOTES;
    if (state !== "covered") addNote(notes, { from, to, state, reason });
    hasMore = isStop && rows.length > 0 && table.hasRowsBelow(connection, key.series, to);
    if (hasMore) break;
    for (const row of table.read(connection, key.series, { from, to, limit: size + 1 - rows.length }))
      rows.push(row);
    hasMore = rows.length > size;
    if (!hasMore) continue;
    rows.pop();
    break;
  }
  // The next page begins below the last record, so that it also names what lies between both.
  const last = hasMore ? rows.at(-1) : undefined;
  const nextId = last === undefined ? null : table.ids(series).at(table.tsOf(last));
  return { records: rows.map(table.writer(series)), nextId, notes };
}

/** Beyond the limit the last note grows: it then says less than is known, never more. */
function addNote(notes: CoverageNote[], range: CoverageNote): void {
  const last = notes.at(-1);
  if (last === undefined || notes.length <= MAX_NOTES) notes.push(range);
  else notes[notes.length - 1] = { from: range.from, to: last.to, state: "open", reason: null };
}

/** Where the page of one series begins: below the record that `startAfter` names, or at `timestamp`. */
function findEnd(
  connection: Connection,
  table: HistoryTable,
  series: ServedSeries,
  timestamp: Micros | undefined,
  startAfter: string | undefined,
): Micros {
  if (startAfter === undefined) return (timestamp ?? 0) + 1;
  const position = parseRecordId(startAfter);
  if (position && table.ids(series).owns(position)) return position.ts;
  const found = table.findByRecordId(connection, startAfter, series.series);
  if (found === undefined) throw unknownRecord(startAfter);
  return found.ts;
}

/** Pages of several series are ordered by timestamp, then by the key of the series. */
function findMergedEnd(
  connection: Connection,
  table: HistoryTable,
  timestamp: Micros | undefined,
  startAfter: string | undefined,
): { readonly end: Micros; readonly afterKey: number } {
  if (startAfter === undefined) return { end: (timestamp ?? 0) + 1, afterKey: Number.POSITIVE_INFINITY };
  const position = parseRecordId(startAfter) ?? table.findByRecordId(connection, startAfter);
  if (!position) throw unknownRecord(startAfter);
  return { end: position.ts + table.step, afterKey: position.key };
}

function unknownRecord(id: string): ServeError {
  return new ServeError(404, `No record ${id}: begin again with a timestamp`);
}

interface MergeSource {
  readonly series: ServedSeries & { readonly series: number };
  rows: HistoryRow[];
  at: number;
  readonly write: (row: HistoryRow) => string;
}

/** Read per series at first; doubled whenever that was not enough. */
const MIN_MERGED_READ = 2;

/** A page over several series. It does not end at open ranges, which differ between series, but it names them. */
function readMergedPage(
  connection: Connection,
  table: HistoryTable,
  list: readonly ServedSeries[],
  { end, afterKey, size, now }: PageOptions & { readonly afterKey: number },
): Page {
  const perSeries = Math.max(MIN_MERGED_READ, Math.ceil((2 * size) / Math.max(1, list.length)));
  const refill = (source: MergeSource, to: Micros) => {
    source.rows = table.read(connection, source.series.series, { from: 0, to, limit: perSeries });
    source.at = 0;
  };
  const sources = list.flatMap((series): MergeSource[] => {
    if (series.series === undefined) return [];
    const source = {
      series: { ...series, series: series.series },
      rows: [],
      at: 0,
      write: table.writer(series),
    };
    // Of the timestamp of the cursor, the series up to the cursor's have been served.
    refill(
      source,
      series.series > afterKey || afterKey === Number.POSITIVE_INFINITY ? end : end - table.step,
    );
    return [source];
  });
  const records: string[] = [];
  let last: { readonly ts: Micros; readonly source: MergeSource } | undefined;
  let hasMore = false;
  for (;;) {
    let newest: MergeSource | undefined;
    let newestTs = Number.NEGATIVE_INFINITY;
    for (const source of sources) {
      const row = source.rows[source.at];
      if (row && table.tsOf(row) > newestTs) {
        newest = source;
        newestTs = table.tsOf(row);
      }
    }
    if (!newest) break;
    hasMore = records.length === size;
    if (hasMore) break;
    // All series of one timestamp, in the order of their keys.
    for (const source of sources) {
      const row = source.rows[source.at];
      if (!row || table.tsOf(row) !== newestTs) continue;
      hasMore = records.length === size;
      if (hasMore) break;
      records.push(source.write(row));
      last = { ts: newestTs, source };
      source.at++;
      if (source.at === source.rows.length && source.rows.length === perSeries) refill(source, newestTs);
    }
    if (hasMore) break;
  }
  const bottom = hasMore && last ? last.ts : 0;
  const nextId = hasMore && last ? table.ids(last.source.series).at(last.ts) : null;
  return { records, nextId, notes: findOpenEnvelope(connection, table, sources, { bottom, end, now }) };
}

/** One range that contains the open ranges of all series within the page. */
function findOpenEnvelope(
  connection: Connection,
  table: HistoryTable,
  sources: readonly MergeSource[],
  { bottom, end, now }: { readonly bottom: Micros; readonly end: Micros; readonly now: Micros },
): CoverageNote[] {
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const { series } of sources) {
    const key = { stream: table.stream, series: series.series };
    for (const segment of readSegments(connection, key, end, now)) {
      if (segment.to <= bottom) break;
      if (!isUnproven(segment)) continue;
      from = Math.min(from, segment.from);
      to = Math.max(to, segment.to);
    }
  }
  return from < to ? [{ from, to, state: "open", reason: null }] : [];
}
