import { decimalColumns, presentTs, timeText } from "./view-expressions.ts";

const seriesColumns =
  "nullif(s.index_type, '') AS index_type, nullif(s.index_id, '') AS index_id, nullif(s.name, '') AS name";

/** The ledger's ranges of the claim's series. */
const same = "g.stream = c.stream AND g.series = c.series";

/**
 * wanted − settled, at the moment of the query. A gap begins where a wanted range does or where a settled one ends,
 * and lasts until the next settled one begins: all found by index seek. Each gap then falls into at most three
 * parts: what is out of reach (`lost`), what will be fetched (`open`), and the head that is too young to be claimed
 * or that the live feed has seen whole (`open`, reason `settling`).
 */
const gaps = `WITH
moment AS (SELECT ${presentTs} AS now),
claims AS (
  SELECT w.stream, w.series, w.from_ts, w.kept_for, w.observed, w.hindrance,
    CASE WHEN w.to_ts < m.now THEN w.to_ts ELSE m.now END AS end_ts,
    (m.now - w.settle_delay) / w.step * w.step AS claim_ts,
    m.now - w.kept_for AS edge_ts
  FROM moment m CROSS JOIN wanted_ranges w
),
starts AS (
  SELECT c.*, c.from_ts AS gap_from FROM claims c
  WHERE coalesce((SELECT g.to_ts FROM settled_ranges g WHERE ${same} AND g.from_ts < c.from_ts
    ORDER BY g.from_ts DESC LIMIT 1), c.from_ts) <= c.from_ts
  UNION ALL
  SELECT c.*, g.to_ts FROM claims c JOIN settled_ranges g ON ${same}
  WHERE g.to_ts > c.from_ts AND g.to_ts < c.end_ts AND g.from_ts < c.end_ts
),
holes AS (
  SELECT c.*, min(c.end_ts, coalesce((SELECT min(g.from_ts) FROM settled_ranges g
    WHERE ${same} AND g.from_ts >= c.gap_from), c.end_ts)) AS gap_to
  FROM starts c
),
judged AS (
  SELECT h.*, s.index_type, s.index_id, s.name,
    CASE WHEN h.observed THEN h.claim_ts ELSE coalesce(h.edge_ts, h.gap_from) END AS lost_until,
    min(h.claim_ts, coalesce((SELECT l.from_ts FROM live_spans l WHERE l.stream = h.stream
      AND l.index_type = s.index_type AND l.to_ts >= h.claim_ts), h.claim_ts)) AS settling_from
  FROM holes h JOIN series s ON s.series = h.series
  WHERE h.gap_from < h.gap_to
),
parts AS (
  SELECT stream, index_type, index_id, name, kept_for, gap_from AS from_ts, min(gap_to, lost_until) AS to_ts,
    'lost' AS state, CASE WHEN observed THEN 'not observed' ELSE 'aged out' END AS reason
  FROM judged
  UNION ALL
  SELECT stream, index_type, index_id, name, kept_for, max(gap_from, lost_until), min(gap_to, settling_from),
    'open', coalesce(hindrance, 'pending')
  FROM judged
  UNION ALL
  SELECT stream, index_type, index_id, name, kept_for, max(gap_from, lost_until, settling_from), gap_to,
    'open', 'settling'
  FROM judged
  UNION ALL
  SELECT g.stream, s.index_type, s.index_id, s.name, NULL, g.from_ts, g.to_ts, 'lost', g.reason
  FROM settled_ranges g JOIN series s ON s.series = g.series WHERE g.proof = 'lost'
)
SELECT s.stream, ${seriesColumns}, s.from_ts, s.to_ts,
  ${timeText("s.from_ts")} AS from_time, ${timeText("s.to_ts")} AS to_time, s.state, s.reason,
  CASE WHEN s.state = 'open' THEN ${timeText("s.from_ts + s.kept_for")} END AS lost_at
FROM parts s WHERE s.from_ts < s.to_ts`;

export const ledgerViews: Record<string, string> = {
  gaps,

  coverage: `SELECT g.stream, ${seriesColumns}, g.from_ts, g.to_ts,
  ${timeText("g.from_ts")} AS from_time, ${timeText("g.to_ts")} AS to_time, g.proof, g.reason
FROM settled_ranges g CROSS JOIN series s ON s.series = g.series`,

  revisions: `SELECT v.stream, nullif(s.index_type, '') AS index_type,
  coalesce(s.index_id, l.exchange_id || '/' || l.market_id, c.id) AS index_id,
  coalesce(s.name, l.exchange || ' ' || l.pair, c.exchange_name) AS name,
  v.ts, ${timeText("v.ts")} AS time, v.before, v.after, ${timeText("v.changed_at")} AS changed_at
FROM revision_rows v
  LEFT JOIN series s ON v.stream IN ('ohlcv', 'index_ticks', 'market_caps') AND s.series = v.key
  LEFT JOIN listings l ON v.stream = 'exchange_ticks' AND l.listing = v.key
  LEFT JOIN contracts c ON v.stream = 'derivative_ticks' AND c.contract = v.key`,
};

export const lookupViews: Record<string, string> = {
  markets: `SELECT m.id, m.base_asset_id, m.quote_asset_id, b.symbol AS base_symbol, q.symbol AS quote_symbol,
  b.symbol || '/' || q.symbol AS pair, m.first_seen, m.delisted_at, m.quality, m.extra
FROM market_rows m LEFT JOIN assets b ON b.id = m.base_asset_id LEFT JOIN assets q ON q.id = m.quote_asset_id`,

  derivative_contracts: `SELECT r.id, r.derivative_type, r.exchange_id, r.market_id, r.exchange_name, r.settlement_currency,
  ${decimalColumns("r", "contract_value")}, r.value_currency, r.option_type, ${decimalColumns("r", "option_strike")},
  ${timeText("r.listing")} AS listing, ${timeText("r.expiration")} AS expiration,
  r.first_seen, r.delisted_at, r.quality, r.extra
FROM contracts r WHERE r.described = 1`,
};
