import type { StreamRecords } from "../../model/records.ts";
import type { HistoryStream, RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { settledRanges } from "../coverage/ledger.ts";
import { UNSERVED } from "../coverage/not-found.ts";
import type { Connection } from "../sqlite/connection.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/**
 * Whether a page that only filled in found a row in `range` that is not settled and says something else, or that the page
 * lacks. Either of the two may be the newer, so neither may be called final. To be called after the page's rows are
 * written; `standing` are moments of rows that are known to be right, on the page or not.
 */
export function isContested<S extends HistoryStream>(
  transaction: Transaction,
  { stream, series }: { readonly stream: S; readonly series: number },
  range: TimeRange,
  records: readonly StreamRecords[S][],
  standing: readonly Micros[],
): boolean {
  const table: RowTable<StreamRecords[S]> = rowTables[stream];
  const { keyColumn, timeColumn, storedTime, tsOfStored, sourceAt } = table;
  const textOf = (values: readonly SqlValue[]) => JSON.stringify(values.filter((_, i) => i !== sourceAt));
  const said = new Map<Micros, string[]>();
  for (const record of records) {
    const values: SqlValue[] = [];
    table.encode(record, 0, values);
    const ts = table.ts(record);
    said.set(ts, [...(said.get(ts) ?? []), textOf(values)]);
  }
  const isRight = new Set(standing);
  const proven = settledRanges(transaction, { stream, series }).filter(({ proof }) => proof !== "lost");
  const rows = transaction.statement(
    `SELECT ${timeColumn}, ${table.columns.join(", ")} FROM ${table.table}
      WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`,
  );
  return subtract([range], normalise(proven)).some(({ from, to }) => {
    const stored = rows.raw().all([series, storedTime(from), storedTime(to)]) as [
      string | number,
      ...SqlValue[],
    ][];
    return stored.some(([at, ...values]) => {
      const ts = tsOfStored(at);
      return !(said.get(ts)?.includes(textOf(values)) ?? isRight.has(ts));
    });
  });
}

/** How many rows of a series are stored in a range. */
export function storedCount(
  connection: Pick<Connection, "statement">,
  { stream, series }: { stream: RowStream; series: number },
  range: TimeRange,
): number {
  const { table, keyColumn, timeColumn, storedTime }: RowTable<never> = rowTables[stream];
  const sql = `SELECT count(*) FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  return connection
    .statement(sql)
    .pluck()
    .get([series, storedTime(range.from), storedTime(range.to)]) as number;
}

/** The newest tick of a series in the range that only the websocket has told of so far. */
export function newestLiveRow(
  transaction: Transaction,
  series: number,
  range: TimeRange,
): Micros | undefined {
  const sql = "SELECT max(ts) FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND source = 1";
  const found = transaction.statement(sql).pluck().get([series, range.from, range.to]);
  return typeof found === "number" ? found : undefined;
}

/** An index that the service has served, and by what it would be found again. */
export interface ServedLine {
  readonly indexType: string;
  readonly indexId: string;
  /** The newest row of it. */
  readonly ts: Micros;
}

/** Whether a row of the line stands at `since` or later. */
export function hasRowsSince(
  connection: Connection,
  { stream, series }: { readonly stream: HistoryStream; readonly series: number },
  since: Micros,
): boolean {
  const { table, keyColumn, timeColumn, storedTime } = rowTables[stream];
  const sql = `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? LIMIT 1`;
  return connection.statement(sql).get([series, storedTime(since)]) !== undefined;
}

/** Of the followed lines of a stream, the one of another index whose newest row is the newest of all. */
export function otherServedLine(
  connection: Connection,
  { stream, series }: { readonly stream: HistoryStream; readonly series: number },
  since: Micros,
): ServedLine | undefined {
  const { table, keyColumn, timeColumn, storedTime, tsOfStored } = rowTables[stream];
  const row = connection
    .statement(
      `SELECT s.index_type AS indexType, s.index_id AS indexId,
          (SELECT max(r.${timeColumn}) FROM ${table} r WHERE r.${keyColumn} = w.series) AS newest
        FROM wanted_ranges w JOIN series s ON s.series = w.series
        WHERE w.stream = ? AND w.to_ts IS NULL AND w.series <> ? AND newest >= ? AND NOT EXISTS
          (SELECT 1 FROM settled_ranges g WHERE g.stream = w.stream AND g.series = w.series AND g.reason = ?)
        ORDER BY newest DESC LIMIT 1`,
    )
    .get([stream, series, storedTime(since), UNSERVED]) as
    | { indexType: string; indexId: string; newest: number | string }
    | undefined;
  return row && { indexType: row.indexType, indexId: row.indexId, ts: tsOfStored(row.newest) };
}

/** The newest tick of one index. */
export interface LatestTick {
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
  readonly price_exact: string | null;
  readonly time: string;
  readonly is_settled: 0 | 1;
}

/** One seek each: cheap for a handful, whatever the size of the warehouse. */
export function readLatestTicks(
  connection: Connection,
  indices: readonly { index_type: string; index_id: string }[],
): LatestTick[] {
  const newest = connection.statement(
    `SELECT index_type, index_id, name, price_exact, time, is_settled FROM latest_index_ticks
      WHERE index_type = ? AND index_id = ?`,
  );
  return indices.flatMap(({ index_type, index_id }) => newest.all([index_type, index_id]) as LatestTick[]);
}
