import type { StreamRecords } from "../../model/records.ts";
import { type HistoryStream, type RowStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { NOT_FOUND } from "../../rule/answer.ts";
import { readSettledRanges, type SeriesKey } from "../coverage/ledger.ts";
import type { SeriesRow } from "../schema/lookups.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import { encodeRow, hasSameValues, type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

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
  const received = Map.groupBy(records, ({ ts }) => ts);
  const trusted = new Set(trustedTimestamps);
  const coveredRanges = readSettledRanges(transaction, { stream, series }).filter(
    ({ proof }) => proof !== "lost",
  );
  const rows = transaction.statement<readonly [Micros, ...SqlValue[]]>(
    `SELECT ts, ${table.columns.join(", ")} FROM ${table.table} WHERE ${table.keyColumn} = ? AND ts >= ? AND ts < ?`,
  );
  return subtract([range], normalise(coveredRanges)).some(({ from, to }) => {
    const stored = rows.raw().all([series, from, to]);
    return stored.some(([ts, ...values]) => {
      const isSame = (record: StreamRecords[S]) =>
        values[table.sourceAt] === 1 || hasSameValues(table, values, encodeRow(table, record));
      return !(received.get(ts)?.some(isSame) ?? trusted.has(ts));
    });
  });
}

const ofKey = (stream: RowStream) =>
  `FROM ${rowTables[stream].table} WHERE ${rowTables[stream].keyColumn} = ?`;

export function countStoredRows(connection: SqlRunner, { stream, series }: SeriesKey, range: TimeRange) {
  const sql = `SELECT count(*) ${ofKey(stream)} AND ts >= ? AND ts < ?`;
  return connection.value<number>(sql, [series, range.from, range.to]);
}

/**
 * `served`: REST has served the row, itself or by covering what the websocket had sent. `live`: no current REST page has written
 * it. Only ticks have a live feed.
 */
type RowOrigin = "any" | "served" | "live";

function isOfOrigin(stream: HistoryStream, origin: RowOrigin): string {
  if (origin === "any") return "true";
  if (streamTable[stream].event === null) return String(origin === "served");
  if (origin === "live") return "r.source = 1";
  return `(r.source <> 1 OR EXISTS (SELECT 1 FROM settled_ranges g WHERE g.stream = '${stream}' AND g.series = r.series
        AND g.from_ts <= r.ts AND g.to_ts > r.ts AND g.proof <> 'lost'))`;
}

export function findNewestRow(
  connection: SqlRunner,
  { stream, series }: SeriesKey,
  { from, to }: TimeRange,
  origin: RowOrigin = "any",
): Micros | undefined {
  const { table, keyColumn }: RowTable<never> = rowTables[stream];
  const sql = `SELECT r.ts FROM ${table} r WHERE r.${keyColumn} = ? AND r.ts >= ? AND r.ts < ?
    AND ${isOfOrigin(stream, origin)} ORDER BY r.ts DESC LIMIT 1`;
  return connection.findValue<Micros>(sql, [series, from, to]);
}

export function readStoredTimestamps(
  transaction: Transaction,
  { stream, series }: SeriesKey,
  range: TimeRange,
) {
  const sql = `SELECT ts ${ofKey(stream)} AND ts >= ? AND ts < ?`;
  return transaction.values<Micros>(sql, [series, range.from, range.to]);
}

/** An index that the service has served before. */
interface ServedSeries extends Pick<SeriesRow, "indexType" | "indexId"> {
  /** The timestamp of its newest row. */
  readonly ts: Micros;
}

export function findOldestRow(connection: SqlRunner, { stream, series }: SeriesKey): Micros | undefined {
  return connection.value<Micros | null>(`SELECT min(ts) ${ofKey(stream)}`, [series]) ?? undefined;
}

/** How many of the newest rows show how far apart the rows of a series are. */
const SPACING_SAMPLE_ROWS = 2000;

/** The average distance of the newest rows of a series; undefined: too few rows. */
export function readRowSpacing(connection: Connection, { stream, series }: SeriesKey): Micros | undefined {
  const sql = `SELECT min(ts) AS oldest, max(ts) AS newest, count(*) AS rows FROM
    (SELECT ts ${ofKey(stream)} ORDER BY ts DESC LIMIT ?)`;
  const sample = connection.findRow<{ oldest: Micros; newest: Micros; rows: number }>(sql, [
    series,
    SPACING_SAMPLE_ROWS,
  ]);
  if (!sample || sample.rows < SPACING_SAMPLE_ROWS / 4) return undefined;
  return (sample.newest - sample.oldest) / (sample.rows - 1);
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
  const { table, keyColumn } = rowTables[stream];
  return connection.findRow<ServedSeries>(
    `SELECT s.index_type AS indexType, s.index_id AS indexId,
          (SELECT max(r.ts) FROM ${table} r WHERE r.${keyColumn} = w.series) AS ts
        FROM targets w JOIN series s ON s.series = w.series
        WHERE w.stream = ? AND w.to_ts IS NULL AND w.series <> ? AND s.index_type = coalesce(?, s.index_type)
          AND ts >= ? AND NOT EXISTS
          (SELECT 1 FROM settled_ranges g WHERE g.stream = w.stream AND g.series = w.series AND g.reason = ?)
        ORDER BY ts DESC LIMIT 1`,
    [stream, series, indexType, since, NOT_FOUND],
  );
}
