import type { Column } from "../../model/column.ts";
import {
  type Dictionary,
  isDaily,
  keyColumns,
  type RowStream,
  rowStreams,
  streamTable,
} from "../../model/streams.ts";
import { MICROS_PER_DAY } from "../../model/time.ts";
import { MAX_AHEAD_MICROS, MAX_LIVE_PERIODS } from "../../warehouse/views/data-views.ts";
import { sharedBarViews } from "./bar-views.ts";
import { gapsView } from "./gaps-view.ts";
import { sharedResearchViews } from "./research-views.ts";
import { isCoveredThere, momentOf, readAside, sharedDecimals, sharedPresentTs } from "./view-fragments.ts";

/*
 * The public relations in schema `mds`, with the columns of the SQLite views in their order, and real types. `ts` is the
 * stored column, so conditions on `ts` use the primary key and skip the partitions of other months.
 */

const dayTs = "(r.day - date '1970-01-01')::bigint * 86400000000";

/** The refresh period of a stream. */
const refreshPeriod = (stream: RowStream) =>
  `(SELECT coalesce(max(w.period), 30000000) FROM mds.wanted_ranges w WHERE w.stream = '${stream}')`;

/** The websocket does not send when a price last moved: compare with the previous ticker of at most two periods. */
const repeatsPrice = `(SELECT p.last = r.last FROM mds.exchange_tick_rows p WHERE p.listing = r.listing AND p.ts < r.ts
    AND p.ts >= r.ts - 2 * ${refreshPeriod("exchange_ticks")} ORDER BY p.ts DESC LIMIT 1)`;

const computed: Readonly<Record<string, string>> = {
  time: momentOf("r.ts"),
  is_settled: isCoveredThere("index_ticks", "r.series", "r.ts", "r.ts + 1"),
  is_final: `${dayTs} + ${MICROS_PER_DAY} <= ${sharedPresentTs} AND ${isCoveredThere("ohlcv", "r.series", dayTs, `${dayTs} + ${MICROS_PER_DAY}`)}`,
  unmoved_seconds: "(r.ts - r.last_moved) / 1000000.0::double precision",
  is_stale: `CASE WHEN r.last_moved IS NULL THEN ${repeatsPrice} ELSE r.ts - r.last_moved > ${refreshPeriod("exchange_ticks")} END`,
};

/** The timestamps of a daily bar, which is stored by its day. */
const computedFromDay: Readonly<Record<string, string>> = { ts: dayTs, time: momentOf(dayTs) };

function columnSql({ name, type, source, from }: Column, stream: RowStream): string {
  const as = (sql: string) => `${sql} AS "${name}"`;
  if (source === "label") return as(`s.${from}`);
  if (source === "aside") return as(readAside("r", name));
  if (source === "computed") {
    const sql = (isDaily(stream) ? computedFromDay[name] : undefined) ?? computed[name];
    if (sql === undefined) throw new Error(`no view computes ${name}`);
    return as(`(${sql})`);
  }
  if (type === "decimal") return sharedDecimals("r", name);
  if (type === "timestamp") return as(momentOf(`r.${name}`));
  if (type === "source") return as(`CASE r.${name} WHEN 0 THEN 'rest' ELSE 'live' END`);
  return `r.${name}`;
}

function allRows(stream: RowStream): string {
  const { columns, table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  return `SELECT ${columns.map((column) => columnSql(column, stream)).join(",\n  ")}
FROM mds.${dictionary} s JOIN mds.${table} r ON r.${key} = s.${key}`;
}

/** The newest row of each series: one index seek each. */
function latestRows(stream: RowStream): string {
  const { columns, table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const newest = (entry: string) => `SELECT n.* FROM mds.${table} n WHERE n.${key} = ${entry}.${key}
    AND n.ts < ${sharedPresentTs} + ${MAX_AHEAD_MICROS} ORDER BY n.ts DESC LIMIT 1`;
  const newestOfStream = `(SELECT max(x.ts) FROM mds.${dictionary} k CROSS JOIN LATERAL (${newest("k")}) x)`;
  const isRecent = `r.ts >= ${newestOfStream} - ${MAX_LIVE_PERIODS} * ${refreshPeriod(stream)}`;
  const isUnexpired =
    dictionary === "contracts" ? ` AND coalesce(s.expiration > ${sharedPresentTs}, true)` : "";
  return `SELECT ${columns.map((column) => columnSql(column, stream)).join(",\n  ")},
  (${sharedPresentTs} - r.ts) / 1000000.0::double precision AS age_seconds, (${isRecent}${isUnexpired}) AS is_live
FROM mds.${dictionary} s CROSS JOIN LATERAL (${newest("s")}) r`;
}

const seriesColumns = ["index_type", "index_id", "name"]
  .map((column) => `nullif(s.${column}, '') AS ${column}`)
  .join(", ");

function isKeyedBy(dictionary: Dictionary): string {
  const names = rowStreams.filter((stream) => streamTable[stream].dictionary === dictionary);
  return `v.stream IN (${names.map((name) => `'${name}'`).join(", ")})`;
}

const rowViews = Object.fromEntries([
  ...rowStreams.map((stream) => [stream, allRows(stream)]),
  ...rowStreams
    .filter((stream) => streamTable[stream].latestSummary !== null)
    .map((stream) => [`latest_${stream}`, latestRows(stream)]),
]);

/** The public relations that are views, by name. The others are tables. */
export const sharedViews: Readonly<Record<string, string>> = {
  ...rowViews,
  ...sharedBarViews,
  ...sharedResearchViews(rowViews, refreshPeriod("exchange_ticks")),
  coverage: `SELECT g.stream, ${seriesColumns}, g.from_ts, g.to_ts,
  ${momentOf("g.from_ts")} AS from_time, ${momentOf("g.to_ts")} AS to_time, g.proof, g.reason
FROM mds.settled_ranges g JOIN mds.series s ON s.series = g.series`,
  gaps: gapsView(seriesColumns),
  revisions: `SELECT v.stream, nullif(s.index_type, '') AS index_type,
  coalesce(s.index_id, l.exchange_id || '/' || l.market_id, c.id) AS index_id,
  coalesce(s.name, l.exchange || ' ' || l.pair, c.exchange_name) AS name,
  v.ts, ${momentOf("v.ts")} AS time, v.before, v.after, ${momentOf("v.changed_at")} AS changed_at
FROM mds.revision_rows v
  LEFT JOIN mds.series s ON ${isKeyedBy("series")} AND s.series = v.key
  LEFT JOIN mds.listings l ON ${isKeyedBy("listings")} AND l.listing = v.key
  LEFT JOIN mds.contracts c ON ${isKeyedBy("contracts")} AND c.contract = v.key`,
  status_changes: "SELECT change, entity, id, field, old, new, seen_at FROM mds.status_change_rows",
  rejects: "SELECT reject, stream, received_at, reason, raw, request FROM mds.reject_rows",
  markets: `SELECT m.id, m.base_asset_id, m.quote_asset_id, b.symbol AS base_symbol, q.symbol AS quote_symbol,
  b.symbol || '/' || q.symbol AS pair, m.first_seen, m.delisted_at, m.quality, m.extra
FROM mds.market_rows m LEFT JOIN mds.assets b ON b.id = m.base_asset_id LEFT JOIN mds.assets q ON q.id = m.quote_asset_id`,
  derivative_contracts: `SELECT r.id, r.derivative_type, r.exchange_id, r.market_id, r.exchange, r.pair, r.exchange_name, r.settlement_currency,
  ${sharedDecimals("r", "contract_value")}, r.value_currency, r.option_type, ${sharedDecimals("r", "option_strike")},
  ${momentOf("r.listing")} AS listing, ${momentOf("r.expiration")} AS expiration,
  r.first_seen, r.delisted_at, r.quality, r.extra
FROM mds.contracts r WHERE r.described`,
};
