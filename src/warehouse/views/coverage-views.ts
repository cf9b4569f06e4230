import { type Dictionary, rowStreams, streamTable } from "../../model/streams.ts";
import { gapPartsSql } from "../coverage/gaps.ts";
import { fewDecimalColumns, timeText } from "./sql-fragments.ts";

const seriesColumns =
  // With a TEXT affinity, as in a table: otherwise a comparison with a number would never match.
  `${["index_type", "index_id", "name"].map((column) => `CAST(nullif(s.${column}, '') AS TEXT) AS ${column}`).join(", ")}`;

const gaps = `WITH ${gapPartsSql}
SELECT s.stream, ${seriesColumns}, CAST(s.from_ts AS INTEGER) AS from_ts, CAST(s.to_ts AS INTEGER) AS to_ts,
  ${timeText("s.from_ts")} AS from_time, ${timeText("s.to_ts")} AS to_time,
  CAST(s.state AS TEXT) AS state, CAST(s.reason AS TEXT) AS reason,
  CAST(CASE WHEN s.state = 'open' THEN ${timeText("s.from_ts + s.kept_for")} END AS TEXT) AS lost_at
FROM parts s WHERE s.from_ts < s.to_ts`;

/** Whether the rows of the revision's stream are keyed by this dictionary. */
function isKeyedBy(dictionary: Dictionary): string {
  const names = rowStreams.filter((stream) => streamTable[stream].dictionary === dictionary);
  return `v.stream IN (${names.map((name) => `'${name}'`).join(", ")})`;
}

export const ledgerViews: Record<string, string> = {
  gaps,

  coverage: `SELECT g.stream, ${seriesColumns}, g.from_ts, g.to_ts,
  ${timeText("g.from_ts")} AS from_time, ${timeText("g.to_ts")} AS to_time, g.proof, g.reason
FROM settled_ranges g CROSS JOIN series s WHERE s.series = g.series`,

  revisions: `SELECT v.stream, CAST(nullif(s.index_type, '') AS TEXT) AS index_type,
  CAST(coalesce(s.index_id, l.exchange_id || '/' || l.market_id, c.id) AS TEXT) AS index_id,
  CAST(coalesce(s.name, l.exchange || ' ' || l.pair, c.exchange_name) AS TEXT) AS name,
  v.ts, ${timeText("v.ts")} AS time, v.before, v.after, ${timeText("v.changed_at")} AS changed_at
FROM revision_rows v
  LEFT JOIN series s ON ${isKeyedBy("series")} AND s.series = v.key
  LEFT JOIN listings l ON ${isKeyedBy("listings")} AND l.listing = v.key
  LEFT JOIN contracts c ON ${isKeyedBy("contracts")} AND c.contract = v.key`,
};

export const lookupViews: Record<string, string> = {
  markets: `SELECT m.id, m.base_asset_id, m.quote_asset_id, b.symbol AS base_symbol, q.symbol AS quote_symbol,
  CAST(b.symbol || '/' || q.symbol AS TEXT) AS pair, m.first_seen, m.delisted_at, m.quality, m.extra
FROM market_rows m LEFT JOIN assets b ON b.id = m.base_asset_id LEFT JOIN assets q ON q.id = m.quote_asset_id`,

  derivative_contracts: `SELECT r.id, r.derivative_type, r.exchange_id, r.market_id, r.exchange, r.pair, r.exchange_name, r.settlement_currency,
  ${fewDecimalColumns("r", "contract_value")}, r.value_currency, r.option_type, ${fewDecimalColumns("r", "option_strike")},
  ${timeText("r.listing")} AS listing, ${timeText("r.expiration")} AS expiration,
  r.first_seen, r.delisted_at, r.quality, r.extra
FROM contracts r WHERE r.described = 1`,
};
