import { type Dictionary, rowStreams, streamTable } from "../../model/streams.ts";
import { gapPartsSql, longParts, partStateSql } from "./gap-parts.ts";
import type { SqlDialect } from "./sql-dialect.ts";

/** Whether the rows of the revision's stream are keyed by this dictionary. */
function isKeyedBy(dictionary: Dictionary): string {
  const names = rowStreams.filter((stream) => streamTable[stream].dictionary === dictionary);
  return `v.stream IN (${names.map((name) => `'${name}'`).join(", ")})`;
}

/** The series whose name another series has too: a condition on `name` alone selects all of them. */
export function sharedNamesView({ table }: SqlDialect): string {
  return `SELECT s.name, s.index_type, s.index_id, a.name AS asset, a.status
FROM ${table("series")} s LEFT JOIN ${table("markets")} m ON s.index_type = 'MWA' AND m.id = s.index_id
  LEFT JOIN ${table("assets")} a ON a.id = CASE s.index_type WHEN 'MWA' THEN m.base_asset_id WHEN 'GWA' THEN s.index_id END
WHERE s.name IN (SELECT n.name FROM ${table("series")} n WHERE n.index_type <> '' GROUP BY n.name HAVING count(*) > 1) AND s.index_type <> ''`;
}

/** The views of the ledger, of revisions, markets, shared names and contracts. */
export function coverageViews(dialect: SqlDialect): Record<string, string> {
  const { table, moment, text, integer, fewDecimals, yes } = dialect;
  // Typed as in a table: in SQLite a comparison with a number would never match otherwise.
  const seriesColumns = ["index_type", "index_id", "name"]
    .map((column) => `${text(`nullif(s.${column}, '')`)} AS ${column}`)
    .join(", ");
  return {
    gaps: `WITH ${gapPartsSql(dialect)}
SELECT s.stream, ${seriesColumns}, ${integer("s.from_ts")} AS from_ts, ${integer("s.to_ts")} AS to_ts,
  ${moment("s.from_ts")} AS from_time, ${moment("s.to_ts")} AS to_time, ${text("s.state")} AS state, ${text("s.reason")} AS reason,
  ${moment("CASE WHEN s.state = 'open' THEN s.from_ts + s.service_window END")} AS lost_at
FROM (SELECT p.*, ${partStateSql("p")} AS state FROM ${longParts("p")}) s`,

    coverage: `SELECT g.stream, ${seriesColumns}, g.from_ts, g.to_ts,
  ${moment("g.from_ts")} AS from_time, ${moment("g.to_ts")} AS to_time, g.proof, g.reason
FROM ${table("settled_ranges")} g CROSS JOIN ${table("series")} s WHERE s.series = g.series`,

    revisions: `SELECT v.stream, ${text("nullif(s.index_type, '')")} AS index_type,
  ${text("coalesce(s.index_id, l.exchange_id || '/' || l.market_id, c.id)")} AS index_id,
  ${text("coalesce(s.name, l.exchange || ' ' || l.pair, c.exchange_name)")} AS name,
  v.ts, ${moment("v.ts")} AS time, v.before, v.after, ${moment("v.changed_at")} AS changed_at
FROM ${table("revision_rows")} v
  LEFT JOIN ${table("series")} s ON ${isKeyedBy("series")} AND s.series = v.key
  LEFT JOIN ${table("listings")} l ON ${isKeyedBy("listings")} AND l.listing = v.key
  LEFT JOIN ${table("contracts")} c ON ${isKeyedBy("contracts")} AND c.contract = v.key`,

    markets: `SELECT m.id, m.base_asset_id, m.quote_asset_id, b.symbol AS base_symbol, q.symbol AS quote_symbol,
  ${text("b.symbol || '/' || q.symbol")} AS pair, m.first_seen, m.delisted_at, m.quality, m.extra
FROM ${table("market_rows")} m LEFT JOIN ${table("assets")} b ON b.id = m.base_asset_id
  LEFT JOIN ${table("assets")} q ON q.id = m.quote_asset_id`,

    shared_names: sharedNamesView(dialect),

    derivative_contracts: `SELECT r.id, r.derivative_type, r.exchange_id, r.market_id, r.exchange, r.pair, r.exchange_name, r.settlement_currency,
  ${fewDecimals("r", "contract_value")}, r.value_currency, r.option_type, ${fewDecimals("r", "option_strike")},
  ${moment("r.listing")} AS listing, ${moment("r.expiration")} AS expiration,
  r.first_seen, r.delisted_at, r.quality, r.extra
FROM ${table("contracts")} r WHERE r.is_described = ${yes}`,
  };
}
