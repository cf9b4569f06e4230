import { keyColumns, type SnapshotStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { newestRow } from "../../warehouse/tables/row-parts.ts";
import { MAX_AHEAD_MICROS, MAX_LIVE_PERIODS } from "../../warehouse/views/data-views.ts";
import { refreshPeriod } from "../../warehouse/views/sql-dialect.ts";
import { sqliteDialect } from "../../warehouse/views/sqlite-dialect.ts";

/** A row of a snapshot stream with the columns of its key. */
export type LatestRow = Readonly<Record<string, unknown>> & {
  readonly key: number;
  readonly ts: Micros;
  readonly details: string | null;
};

/** What a key of a snapshot stream is called in its dictionary. */
const labelColumns = {
  market_caps: "s.index_id AS asset_id",
  exchange_ticks: "s.exchange_id, s.market_id",
  derivative_ticks: "s.id AS contract_id, s.exchange_id, s.market_id, s.derivative_type",
} as const satisfies Record<SnapshotStream, string>;

/** Only the conditions whose value is given: with optional ones SQLite would scan instead of seek. */
export function conditionsOf(all: readonly (readonly [sql: string, value: unknown])[]) {
  const given = all.filter(([, value]) => value !== undefined);
  return { condition: given.map(([sql]) => sql).join(" AND "), values: given.map(([, value]) => value) };
}

interface LatestRowsOptions {
  readonly now: Micros;
  /** A condition on `s`, the dictionary of keys. */
  readonly condition?: string;
  readonly values?: readonly unknown[];
  readonly limit?: number;
}

/**
 * The newest row of each key that belongs to the newest state of the stream: the service serves only that. One index seek per
 * key.
 */
export function readLatestRows(
  connection: Connection,
  stream: SnapshotStream,
  { now, condition = "1", values = [], limit = -1 }: LatestRowsOptions,
): LatestRow[] {
  const { table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const newest = (entry: string) => newestRow(stream, `${entry}.${key}`, "n.ts < ?");
  const until = now + MAX_AHEAD_MICROS;
  const since = readNewestState(connection, stream, newest("k"), until);
  return connection.rows<LatestRow>(
    `SELECT s.${key} AS key, ${labelColumns[stream]}, r.* FROM ${dictionary} s CROSS JOIN ${table} r
      WHERE r.${key} = s.${key} AND r.ts = ${newest("s")} AND r.ts >= ? AND (${condition}) ORDER BY s.${key} LIMIT ?`,
    [until, since, ...values, limit],
  );
}

/** From where on a row belongs to the newest state of its stream. */
function readNewestState(
  connection: Connection,
  stream: SnapshotStream,
  newest: string,
  until: Micros,
): Micros {
  const { dictionary } = streamTable[stream];
  const sql = `SELECT max(${newest}) - ${MAX_LIVE_PERIODS} * ${refreshPeriod(sqliteDialect, stream)} FROM ${dictionary} k`;
  return connection.value<Micros | null>(sql, [until]) ?? 0;
}
