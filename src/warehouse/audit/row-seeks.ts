import { hasHistory, keyColumns, type SnapshotStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { StoredTime } from "../schema/rows.ts";
import type { Connection, Statement } from "../sqlite/connection.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { AuditedKey } from "./audited-key.ts";

/** Finds rows of one ledger key by index seeks, so that the auditor never scans a table. */
export interface RowSeeks {
  /** The oldest row in the range. */
  first(range: TimeRange): Micros | undefined;
  /** The newest row in the range. */
  last(range: TimeRange): Micros | undefined;
  count(range: TimeRange): number;
}

export function createRowSeeks(connection: Connection, audited: AuditedKey): RowSeeks {
  const { stream, series } = audited.key;
  if (hasHistory(stream)) return seekKeys(connection, rowTables[stream], [series]);
  const snapshot = stream as SnapshotStream;
  return seekKeys(
    connection,
    rowTables[snapshot],
    readRowKeys(connection, snapshot, audited.names?.indexId ?? ""),
  );
}

/** The keys of the rows that a subscription to one exchange, or to all (an empty id), stores. */
function readRowKeys(connection: Connection, stream: SnapshotStream, exchangeId: string): number[] {
  const { dictionary } = streamTable[stream];
  const sql = `SELECT ${keyColumns[dictionary]} FROM ${dictionary}`;
  // The ranking has no exchange.
  if (exchangeId === "" || dictionary === "series") return connection.values<number>(sql);
  return connection.values<number>(`${sql} WHERE exchange_id = ?`, [exchangeId]);
}

function seekKeys(connection: Connection, table: RowTable<never>, keys: number[]): RowSeeks {
  const { keyColumn, timeColumn, storedTime, tsOfStored } = table;
  const select = (what: string) =>
    `SELECT ${what} FROM ${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  const oldest = connection.statement<StoredTime | null>(select(`min(${timeColumn})`)).pluck();
  const newest = connection.statement<StoredTime | null>(select(`max(${timeColumn})`)).pluck();
  const count = connection.statement<number>(select("count(*)")).pluck();
  const seek = (statement: Statement<StoredTime | null>, { from, to }: TimeRange) => {
    for (const [at, key] of keys.entries()) {
      const found = statement.get([key, storedTime(from), storedTime(to)]) ?? null;
      if (found === null) continue;
      // Neighbouring ranges have rows of the same keys: try this one first.
      if (at > 0) keys.unshift(...keys.splice(at, 1));
      return tsOfStored(found);
    }
    return undefined;
  };
  return {
    first: (range) => seek(oldest, range),
    last: (range) => seek(newest, range),
    count: ({ from, to }) =>
      keys.reduce((sum, key) => sum + (count.get([key, storedTime(from), storedTime(to)]) ?? 0), 0),
  };
}
