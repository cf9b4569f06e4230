import type { StreamRecords } from "../../model/records.ts";
import { type HistoryStream, type RowStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { NOT_FOUND } from "../../rule/claim.ts";
import { readSettledRanges, type SeriesKey } from "../coverage/ledger.ts";
import type { SeriesRow } from "../schema/lookups.ts";
import type { StoredTime } from "../schema/rows.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { hasSameValues } from "./revisions.ts";

/**
 * Whether `range` has an uncovered row that a stale page lacks, or has with other values: either may be newer, so the
 * range must not be settled. The page replaces live rows. Rows at `trustedTimestamps` may be missing.
 */
export function hasConflictingRows<S extends HistoryStream>(
  transaction: Transaction,
  { stream, series }: { readonly stream: S; readonly series: number },
  range: TimeRange,
  records: readonly StreamRecords[S][],
  trustedTimestamps: readonly Micros[],
): boolean {
  const table: RowTable<StreamRecords[S]> = rowTables[stream];
  const { keyColumn, timeColumn, storedTime, tsOfStored } = table;
  const received = new Map<Micros, (readonly SqlValue[])[]>();
  for (const record of records) {
    const values: SqlValue[] = [];
    table.encode(record, 0, values);
    const ts = table.ts(record);
    received.set(ts, [...(received.get(ts) ?? []), values]);
  }
  const trusted = new Set(trustedTimestamps);
  const coveredRanges = readSettledRanges(transaction, { stream, series }).filter(
    ({ proof }) => proof !== "lost",
  );
  const rows = transaction.statement<readonly [StoredTime, ...SqlValue[]]>(
    `SELECT ${timeColumn}, ${table.columns.join(", ")} FROM ${table.table}
      WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`,
  );
  return subtract([range], normalise(coveredRanges)).some(({ from, to }) => {
    const stored = rows.raw().all([series, storedTime(from), storedTime(to)]);
    return stored.some(([at, ...values]) => {
      const ts = tsOfStored(at);
      const isSame = (each: readonly SqlValue[]) =>
        values[table.sourceAt] === 1 || hasSameValues(table, values, each);
      return !(received.get(ts)?.some(isSame) ?? trusted.has(ts));
    });
  });
}

export function countStoredRows(
  connection: SqlRunner,
  { stream, series }: { stream: RowStream; series: number },
  range: TimeRange,
): number {
  const { table, keyColumn, timeColumn, storedTime }: RowTable<never> = rowTables[stream];
  const sql = `SELECT count(*) FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  return connection.value<number>(sql, [series, storedTime(range.from), storedTime(range.to)]);
}

/** A row that REST has served: from REST itself, or from the websocket and covered since. Only ticks have a live feed. */
const isServedSql = (stream: HistoryStream) =>
  streamTable[stream].event === null
    ? "1"
    : `(r.source <> 1 OR EXISTS (SELECT 1 FROM settled_ranges g WHERE g.stream = '${stream}' AND g.series = r.series
        AND g.from_ts <= r.ts AND g.to_ts > r.ts AND g.proof <> 'lost'))`;

/** The newest row of the range that REST has served: no preview. */
export function findNewestServedRow(
  connection: SqlRunner,
  { stream, series }: SeriesKey,
  { from, to }: TimeRange,
): Micros | undefined {
  if (from >= to) return undefined;
  const { table, keyColumn, timeColumn, storedTime, tsOfStored }: RowTable<never> = rowTables[stream];
  const sql = `SELECT r.${timeColumn} FROM ${table} r WHERE r.${keyColumn} = ? AND r.${timeColumn} >= ? AND r.${timeColumn} < ?
    AND ${isServedSql(stream)} ORDER BY r.${timeColumn} DESC LIMIT 1`;
  const newest = connection.findValue<StoredTime>(sql, [series, storedTime(from), storedTime(to)]);
  return newest === undefined ? undefined : tsOfStored(newest);
}

/** The newest row before `ts`. */
export function findNewestRow(
  connection: SqlRunner,
  { stream, series }: SeriesKey,
  ts: Micros,
): Micros | undefined {
  const { table, keyColumn, timeColumn, storedTime, tsOfStored }: RowTable<never> = rowTables[stream];
  const sql = `SELECT max(${timeColumn}) FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} < ?`;
  const newest = connection.value<StoredTime | null>(sql, [series, storedTime(ts)]);
  return newest === null ? undefined : tsOfStored(newest);
}

/** The timestamps of the stored rows in the range. */
export function readStoredTimestamps(
  transaction: Transaction,
  { stream, series }: { stream: RowStream; series: number },
  range: TimeRange,
): Micros[] {
  const { table, keyColumn, timeColumn, storedTime, tsOfStored }: RowTable<never> = rowTables[stream];
  return transaction
    .values<StoredTime>(
      `SELECT ${timeColumn} FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`,
      [series, storedTime(range.from), storedTime(range.to)],
    )
    .map(tsOfStored);
}

/** The timestamp of the newest tick in the range with source `live`: no current REST page has written it. */
export function findNewestLiveRow(
  transaction: Transaction,
  series: number,
  range: TimeRange,
): Micros | undefined {
  const sql = "SELECT max(ts) FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND source = 1";
  return transaction.value<Micros | null>(sql, [series, range.from, range.to]) ?? undefined;
}

/** An index that the service has served before. */
interface ServedSeries extends Pick<SeriesRow, "indexType" | "indexId"> {
  /** The timestamp of its newest row. */
  readonly ts: Micros;
}

/** Whether the series has a row at `since` or later. */
export function hasRowsSince(connection: Connection, { stream, series }: SeriesKey, since: Micros): boolean {
  const { table, keyColumn, timeColumn, storedTime } = rowTables[stream];
  const sql = `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? LIMIT 1`;
  return connection.findRow(sql, [series, storedTime(since)]) !== undefined;
}

/** The timestamp of the oldest stored row of a series. */
export function findOldestRow(connection: SqlRunner, { stream, series }: SeriesKey): Micros | undefined {
  const { table, keyColumn, timeColumn, tsOfStored } = rowTables[stream];
  const sql = `SELECT min(${timeColumn}) FROM ${table} WHERE ${keyColumn} = ?`;
  const oldest = connection.value<StoredTime | null>(sql, [series]);
  return oldest === null ? undefined : tsOfStored(oldest);
}

/** How many of the newest rows show how far apart the rows of a series are. */
const SPACING_SAMPLE_ROWS = 2000;

/** The average distance of the newest rows of a series; undefined: too few rows. */
export function readRowSpacing(connection: Connection, { stream, series }: SeriesKey): Micros | undefined {
  const { table, keyColumn, timeColumn, tsOfStored } = rowTables[stream];
  const sql = `SELECT min(ts) AS oldest, max(ts) AS newest, count(*) AS rows FROM
    (SELECT ${timeColumn} AS ts FROM ${table} WHERE ${keyColumn} = ? ORDER BY ${timeColumn} DESC LIMIT ?)`;
  const sample = connection.findRow<{ oldest: StoredTime; newest: StoredTime; rows: number }>(sql, [
    series,
    SPACING_SAMPLE_ROWS,
  ]);
  if (!sample || sample.rows < SPACING_SAMPLE_ROWS / 4) return undefined;
  return (tsOfStored(sample.newest) - tsOfStored(sample.oldest)) / (sample.rows - 1);
}

/**
 * Finds the other selected series (of `indexType` if given) with the newest row, at `since` or later. Ignores series
 * that were not found.
 */
export function findOtherServedSeries(
  connection: Connection,
  { stream, series }: SeriesKey,
  since: Micros,
  indexType: string | null = null,
): ServedSeries | undefined {
  const { table, keyColumn, timeColumn, storedTime, tsOfStored } = rowTables[stream];
  const row = connection.findRow<Pick<SeriesRow, "indexType" | "indexId"> & { newest: StoredTime }>(
    `SELECT s.index_type AS indexType, s.index_id AS indexId,
          (SELECT max(r.${timeColumn}) FROM ${table} r WHERE r.${keyColumn} = w.series) AS newest
        FROM targets w JOIN series s ON s.series = w.series
        WHERE w.stream = ? AND w.to_ts IS NULL AND w.series <> ? AND s.index_type = coalesce(?, s.index_type)
          AND newest >= ? AND NOT EXISTS
          (SELECT 1 FROM settled_ranges g WHERE g.stream = w.stream AND g.series = w.series AND g.reason = ?)
        ORDER BY newest DESC LIMIT 1`,
    [stream, series, indexType, storedTime(since), NOT_FOUND],
  );
  return row && { indexType: row.indexType, indexId: row.indexId, ts: tsOfStored(row.newest) };
}
