import { type Dictionary, rowStreams, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../model/time.ts";
import { NOT_FOUND_REASON } from "../coverage/not-found.ts";
import { decimalColumns, presentTs, timeText } from "./sql-fragments.ts";

const seriesColumns =
  // With a TEXT affinity, as in a table: otherwise a comparison with a number would never match.
  `${["index_type", "index_id", "name"].map((column) => `CAST(nullif(s.${column}, '') AS TEXT) AS ${column}`).join(", ")}`;

/** A day, plus two hours for the nightly run itself. */
const NIGHTLY_INTERVAL_MICROS = MICROS_PER_DAY + 7200 * MICROS_PER_SECOND;

/** The settled ranges of the claim's ledger key. */
const sameKey = "g.stream = c.stream AND g.series = c.series";

/**
 * Where a gap becomes `settling`: at the beginning of the live span. If REST was polled after that beginning, the gap
 * starts at most one settle delay before it, and the poll has stored the records of that delay: then the whole gap is
 * `settling`.
 */
const liveSettlingFrom = (
  start: string,
) => `(SELECT CASE WHEN l.from_ts - c.settle_delay <= ${start} THEN ${start} ELSE l.from_ts END
      FROM live_spans l WHERE l.stream = c.stream AND l.index_type = s.index_type AND l.index_id IN ('', s.index_id)
      AND l.to_ts >= c.claim_ts AND c.hindrance IS NULL ORDER BY l.from_ts LIMIT 1)`;

/** The head of an index that the service does not have is `settling` for a day: the nightly run requests it again. */
const notFoundSettlingFrom = (
  start: string,
) => `(SELECT CASE WHEN g.reason = '${NOT_FOUND_REASON}' AND g.to_ts = ${start} AND g.to_ts > c.claim_ts - ${NIGHTLY_INTERVAL_MICROS} THEN ${start} END
      FROM settled_ranges g WHERE c.observed = 0 AND ${sameKey} AND g.from_ts < ${start} ORDER BY g.from_ts DESC LIMIT 1)`;

/** One gap of a claim, from `start` to the next settled range, with the columns that decide its state. */
const gapFrom = (
  start: string,
) => `SELECT c.stream, c.kept_for, c.observed, c.hindrance, c.claim_ts, c.edge_ts,
    s.index_type, s.index_id, s.name, ${start} AS gap_from,
    min(c.end_ts, coalesce((SELECT min(g.from_ts) FROM settled_ranges g WHERE ${sameKey} AND g.from_ts >= ${start}),
      c.end_ts)) AS gap_to,
    min(c.claim_ts, coalesce(${liveSettlingFrom(start)}, c.claim_ts),
      coalesce(${notFoundSettlingFrom(start)}, c.claim_ts)) AS settling_from
  FROM claims c CROSS JOIN series s ON s.series = c.series`;

/**
 * Target − settled at the time of the query. `claims` are the targets; `claim_ts` is now − settle delay. A gap begins
 * where a target begins or a settled range ends, and lasts until the next settled range: all by index seek. A gap has up
 * to three parts: out of the service's reach (`lost`), to be fetched (`open`), and the head that is too young or fully
 * received live (`open`, reason `settling`).
 */
const gaps = `WITH
moment AS (SELECT ${presentTs} AS now),
claims AS (
  SELECT w.stream, w.series, w.from_ts, w.settle_delay, w.kept_for, w.observed, w.hindrance,
    CASE WHEN w.to_ts < m.now THEN w.to_ts ELSE m.now END AS end_ts,
    (m.now - w.settle_delay) / w.step * w.step AS claim_ts,
    m.now - w.kept_for AS edge_ts
  FROM moment m CROSS JOIN wanted_ranges w
),
holes AS (
  ${gapFrom("c.from_ts")}
  WHERE coalesce((SELECT g.to_ts FROM settled_ranges g WHERE ${sameKey} AND g.from_ts < c.from_ts
    ORDER BY g.from_ts DESC LIMIT 1), c.from_ts) <= c.from_ts
  UNION ALL
  ${gapFrom("r.to_ts")} CROSS JOIN settled_ranges r ON r.stream = c.stream AND r.series = c.series
  WHERE r.to_ts > c.from_ts AND r.to_ts < c.end_ts AND r.from_ts < c.end_ts
),
judged AS (
  SELECT h.*, CASE WHEN h.observed THEN h.claim_ts ELSE coalesce(h.edge_ts, h.gap_from) END AS lost_until
  FROM holes h
),
kinds AS (SELECT 'lost' AS kind UNION ALL SELECT 'pending' UNION ALL SELECT 'settling'),
parts AS (
  SELECT j.stream, j.index_type, j.index_id, j.name, j.kept_for,
    CASE k.kind WHEN 'lost' THEN j.gap_from WHEN 'pending' THEN max(j.gap_from, j.lost_until)
      ELSE max(j.gap_from, j.lost_until, j.settling_from) END AS from_ts,
    CASE k.kind WHEN 'lost' THEN min(j.gap_to, j.lost_until) WHEN 'pending' THEN min(j.gap_to, j.settling_from)
      ELSE j.gap_to END AS to_ts,
    CASE k.kind WHEN 'lost' THEN 'lost' ELSE 'open' END AS state,
    CASE k.kind WHEN 'lost' THEN CASE WHEN j.observed THEN 'not observed' ELSE 'aged out' END
      WHEN 'pending' THEN coalesce(j.hindrance, 'pending') ELSE 'settling' END AS reason
  FROM judged j CROSS JOIN kinds k
  UNION ALL
  SELECT g.stream, s.index_type, s.index_id, s.name, NULL, g.from_ts, g.to_ts, 'lost', g.reason
  FROM settled_ranges g JOIN series s ON s.series = g.series WHERE g.proof = 'lost'
)
SELECT s.stream, ${seriesColumns}, s.from_ts, s.to_ts,
  ${timeText("s.from_ts")} AS from_time, ${timeText("s.to_ts")} AS to_time, s.state, s.reason,
  CASE WHEN s.state = 'open' THEN ${timeText("s.from_ts + s.kept_for")} END AS lost_at
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
FROM settled_ranges g CROSS JOIN series s ON s.series = g.series`,

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
  b.symbol || '/' || q.symbol AS pair, m.first_seen, m.delisted_at, m.quality, m.extra
FROM market_rows m LEFT JOIN assets b ON b.id = m.base_asset_id LEFT JOIN assets q ON q.id = m.quote_asset_id`,

  derivative_contracts: `SELECT r.id, r.derivative_type, r.exchange_id, r.market_id, r.exchange_name, r.settlement_currency,
  ${decimalColumns("r", "contract_value")}, r.value_currency, r.option_type, ${decimalColumns("r", "option_strike")},
  ${timeText("r.listing")} AS listing, ${timeText("r.expiration")} AS expiration,
  r.first_seen, r.delisted_at, r.quality, r.extra
FROM contracts r WHERE r.described = 1`,
};
