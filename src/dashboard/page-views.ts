import { quoteText } from "../model/sql-text.ts";
import { DAYS_PER_YEAR, formatTimestamp, MICROS_PER_DAY, type Micros } from "../model/time.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { newestRow } from "../warehouse/tables/row-parts.ts";
import { optionGreeksView } from "../warehouse/views/option-greeks.ts";
import { sqliteDialect } from "../warehouse/views/sqlite-dialect.ts";
import type { QueryResults, ViewKind, ViewRows, ViewValue } from "./api-answers.ts";

/*
 * What the pages of assets, exchanges and derivatives show, as SQL over the relations that users query: a page and a query of
 * one's own agree, and a figure can lead to the SQL that made it.
 */

export interface PageView<Parts = object> {
  /** What a request may name. A time that it does not name is now. */
  readonly params: Readonly<Record<string, "text" | "time">>;
  readonly minTtlMs: number;
  /** Finds what the view is about. Its columns are parameters of the parts. */
  readonly subject?: string;
  /** SQL by part, with `:now` and the parameters. */
  readonly parts: { readonly [Part in keyof Parts]: string };
}

const MICROS_PER_HOUR = MICROS_PER_DAY / 24;

/** SQL: what one of an asset is worth in USD now. */
const usdPrice = (assetId: string) =>
  `coalesce((SELECT u.price FROM latest_index_ticks u WHERE u.index_type = 'GWA' AND u.index_id = ${assetId} AND u.is_live = 1),
      (SELECT u.price FROM latest_market_caps u WHERE u.asset_id = ${assetId} AND u.is_live = 1))`;

const pairsSql = `SELECT pair, count(*) AS exchanges FROM latest_exchange_ticks WHERE is_live = 1
  GROUP BY pair ORDER BY exchanges DESC, pair`;

// CROSS JOIN: the newest ticker of each exchange first, then its row in the other views by key.
const tickersWithViews = "latest_exchange_ticks t CROSS JOIN index_deviation d CROSS JOIN spread s";
const isSameTicker = `d.exchange_id = t.exchange_id AND d.market_id = t.market_id AND d.ts = t.ts
    AND s.exchange_id = t.exchange_id AND s.market_id = t.market_id AND s.ts = t.ts`;
const quotesSql = `SELECT t.exchange, t.last, t.bid, t.ask, s.spread_bps, d.index_price, d.index_source, d.index_ts, d.deviation_bps,
    t.volume * (${usdPrice("m.base_asset_id")}) AS volume_usd, t.ts, t.is_live,
    coalesce(s.quality = 'not moved for an hour', 0) AS is_still
  FROM ${tickersWithViews} LEFT JOIN markets m ON m.id = t.market_id
  WHERE t.pair = :pair AND ${isSameTicker}
  ORDER BY t.is_live DESC, is_still, volume_usd DESC`;

const bestSql = `SELECT best_bid, best_bid_exchange, best_ask, best_ask_exchange, best_bid_any, best_ask_any FROM spread
  WHERE pair = :pair AND ts = (SELECT max(ts) FROM latest_exchange_ticks WHERE pair = :pair AND is_live = 1) LIMIT 1`;

const SPREAD_STEP = MICROS_PER_HOUR / 6;
// Each ten minutes of the last day. The best quotes are the same whichever exchange's ticker they are read as of.
const spreadsSql = `WITH RECURSIVE steps(at) AS (
    SELECT :now - ${MICROS_PER_DAY - SPREAD_STEP} UNION ALL SELECT at + ${SPREAD_STEP} FROM steps WHERE at < :now),
  listing AS MATERIALIZED (SELECT exchange_id, market_id FROM latest_exchange_ticks WHERE pair = :pair
    ORDER BY is_live DESC, volume DESC LIMIT 1),
  moments AS MATERIALIZED (SELECT exchange_id, market_id, (SELECT max(n.ts) FROM exchange_ticks n
      WHERE n.exchange_id = l.exchange_id AND n.market_id = l.market_id AND n.ts <= at AND n.ts > at - ${SPREAD_STEP}) AS ts
    FROM listing l CROSS JOIN steps)
  SELECT s.ts, (s.best_ask / nullif(s.best_bid, 0) - 1) * 10000 AS bps FROM moments m CROSS JOIN spread s
  WHERE s.pair = :pair AND s.exchange_id = m.exchange_id AND s.market_id = m.market_id AND s.ts = m.ts`;

const derivativeAssetsSql = `SELECT m.base_asset_id AS asset_id, m.base_symbol AS symbol, count(*) AS contracts,
    json_group_array(DISTINCT coalesce(e.name, c.exchange_id)) AS exchanges
  FROM derivative_contracts c JOIN markets m ON m.id = c.market_id LEFT JOIN exchanges e ON e.id = c.exchange_id
  GROUP BY m.base_asset_id ORDER BY contracts DESC, symbol`;

/** A contract that was last seen earlier than this before the asked moment has gone. */
const MAX_QUOTE_AGE = 6 * MICROS_PER_HOUR;
/** CROSS JOIN walks the contracts of the asset and seeks the last tick of each, then its row in the research view. */
const contractsSql = (view: string, type: string, columns: string) => `SELECT ${columns}
  FROM markets m CROSS JOIN contracts c CROSS JOIN derivative_tick_rows r CROSS JOIN ${view} v
  WHERE m.base_asset_id = :asset AND c.market_id = m.id AND c.derivative_type = '${type}'
    AND coalesce(c.expiration > :at, 1) AND r.contract = c.contract
    AND r.ts = ${newestRow("derivative_ticks", "c.contract", "n.ts <= :at")}
    AND r.ts > :at - ${MAX_QUOTE_AGE} AND v.contract_id = c.id AND v.ts = r.ts`;
const ofExchange = "(:exchange = '' OR v.exchange = :exchange)";
/** The amount in USD is not in the views. */
const contractQuotesSql = (view: string, type: string, columns: string) => {
  const all = `v.contract_id AS id, coalesce(v.contract, v.contract_id) AS contract, v.exchange, c.expiration, v.ts, ${columns}`;
  return `${contractsSql(view, type, `${all}, r.open_interest_usd`)} AND ${ofExchange} ORDER BY c.expiration, v.exchange`;
};
// As `latest_option_greeks`, at any moment and for one asset. The forward is that of all exchanges.
const observed = contractsSql("option_chain", "options", "v.*, NULL AS age_seconds, NULL AS is_live");
const optionsSql = `WITH observed AS MATERIALIZED (${observed}), greeks AS MATERIALIZED (${optionGreeksView(sqliteDialect, "observed")})
  SELECT v.exchange, c.expiration, v.ts, v.index_price, v.option_type, v.strike, v.bid, v.ask, v.open_interest,
    g.worth, g.forward, g.implied_volatility
  FROM observed v JOIN greeks g ON g.contract_id = v.contract_id JOIN contracts c ON c.id = v.contract_id
  WHERE ${ofExchange} AND c.derivative_type = 'options' ORDER BY c.expiration, v.strike, v.option_type, v.exchange`;

/** The service does not publish the funding period; most exchanges have this one. */
const FUNDING_PERIOD = 8 * MICROS_PER_HOUR;
const perYear = (rate: string) => `${rate} * ${(DAYS_PER_YEAR * MICROS_PER_DAY) / FUNDING_PERIOD}`;
const inPeriod = `n.ts <= at AND n.ts > at - ${FUNDING_PERIOD}`;
const rateAt = newestRow("derivative_ticks", "c.contract", inPeriod, "n.funding_rate");
// Each ticker repeats the rate of its period: of a week, one for each period.
const fundingSql = `WITH RECURSIVE steps(at) AS (
    SELECT :now - ${20 * FUNDING_PERIOD} UNION ALL SELECT at + ${FUNDING_PERIOD} FROM steps WHERE at < :now),
  rates AS (SELECT v.*, c.contract AS row, at, ${rateAt} AS rate
    FROM latest_perpetuals v CROSS JOIN contracts c CROSS JOIN steps WHERE v.is_live = 1 AND c.id = v.contract_id)
SELECT contract, exchange, pair, funding_rate, ${perYear("funding_rate")} AS funding_per_year, ${perYear("avg(rate)")} AS mean_per_year,
  premium, (SELECT r.open_interest_usd FROM derivative_tick_rows r WHERE r.contract = row AND r.ts = rates.ts) AS open_interest_usd,
  json_group_array(rate ORDER BY at) AS last_7_days
FROM rates GROUP BY contract_id ORDER BY open_interest_usd DESC`;

const futureColumns = "v.days_to_expiry, v.price, v.index_price, v.basis, v.annualised_basis";
const perpetualColumns = `v.price, v.index_price, v.premium, v.funding_rate, ${perYear("v.funding_rate")} AS funding_per_year`;

const ASSET_DAYS = 7;
const ofIndex = "index_type = 'GWA' AND index_id = :asset_id";
const ofMarkets = "market_id IN (SELECT id FROM markets WHERE base_asset_id = :asset_id)";

export const pageViews: { readonly [K in ViewKind]: PageView<ViewRows[K]> } = {
  pairs: { params: {}, minTtlMs: 10_000, parts: { pairs: pairsSql } },
  quotes: { params: { pair: "text" }, minTtlMs: 1_000, parts: { quotes: quotesSql, best: bestSql } },
  spreads: { params: { pair: "text" }, minTtlMs: 30_000, parts: { spreads: spreadsSql } },
  "derivative-assets": { params: {}, minTtlMs: 10_000, parts: { assets: derivativeAssetsSql } },
  derivatives: {
    params: { asset: "text", exchange: "text", at: "time" },
    minTtlMs: 2_000,
    parts: {
      futures: contractQuotesSql("futures_curve", "futures", futureColumns),
      perpetuals: contractQuotesSql("perpetuals", "perpetuals", perpetualColumns),
      options: optionsSql,
    },
  },
  funding: { params: {}, minTtlMs: 10_000, parts: { funding: fundingSql } },
  asset: {
    params: { name: "text" },
    minTtlMs: 5_000,
    // Of several assets with one symbol the best-ranked has it.
    subject: `SELECT a.id AS asset_id, a.symbol, a.name, a.symbol || '/USD' AS pair,
        cast(:now - ${ASSET_DAYS * MICROS_PER_DAY} AS INTEGER) / ${MICROS_PER_HOUR} * ${MICROS_PER_HOUR} AS since,
        date(:now / 1000000 - ${(ASSET_DAYS * MICROS_PER_DAY) / 1_000_000}, 'unixepoch') AS since_day
      FROM assets a LEFT JOIN latest_market_caps m ON m.asset_id = a.id
      WHERE a.id = :name OR a.symbol = :name COLLATE NOCASE
      ORDER BY a.id = :name DESC, a.symbol = :name DESC, m.rank IS NULL, m.rank LIMIT 1`,
    parts: {
      market: `SELECT rank, price, price_change_24h, price_change_7d, price_change_30d, market_cap, volume * price AS volume_usd, time
FROM latest_market_caps WHERE asset_id = :asset_id`,
      index: `SELECT price, time, is_settled, age_seconds FROM latest_index_ticks WHERE ${ofIndex}`,
      hours: `SELECT ts, close, coverage, is_complete FROM bars_1h WHERE ${ofIndex} AND ts >= :since ORDER BY ts`,
      coverage: `SELECT stream, proof, min(from_time) AS from_time, max(to_time) AS to_time, sum(to_ts - from_ts) / 1e6 AS seconds
FROM coverage WHERE ${ofIndex} GROUP BY stream, proof ORDER BY stream, from_time`,
      gaps: `SELECT stream, state, reason, from_time, to_time, (to_ts - from_ts) / 1e6 AS seconds
FROM gaps WHERE ${ofIndex} AND state <> 'unconfirmed' ORDER BY to_ts DESC LIMIT 10`,
      revisions: `SELECT stream, time, before, after, changed_at FROM revisions WHERE ${ofIndex} ORDER BY changed_at DESC LIMIT 5`,
      daily: `SELECT day, close, service_close, largest_rel_diff, coverage, is_complete FROM reconcile_ohlcv
WHERE ${ofIndex} AND day >= :since_day ORDER BY day DESC`,
      exchanges: `SELECT t.exchange, t.last, d.deviation_bps, t.volume * t.last AS volume_usd, t.age_seconds, s.quality
FROM ${tickersWithViews}
WHERE t.pair = :pair AND t.is_live = 1 AND ${isSameTicker}
ORDER BY s.quality IS NOT NULL, volume_usd DESC LIMIT 10`,
      futures: `SELECT exchange, contract, days_to_expiry, price, basis, annualised_basis FROM latest_futures_curve
WHERE ${ofMarkets} AND is_live = 1 ORDER BY days_to_expiry, exchange LIMIT 50`,
      perpetuals: `SELECT exchange, contract, premium, funding_rate, ${perYear("funding_rate")} AS funding_per_year
FROM latest_perpetuals WHERE ${ofMarkets} AND is_live = 1 ORDER BY open_interest DESC LIMIT 10`,
    },
  },
};

export type ViewParams = Readonly<Record<string, ViewValue>>;

/** SQL that runs in any tool: with the values in place of the parameters. */
const withValues = (sql: string, values: ViewParams) =>
  sql.replaceAll(/:(\w+)/g, (parameter, name: string) => {
    const value = values[name];
    return typeof value === "string" ? quoteText(value) : String(value ?? parameter);
  });

/** All parts are read in one transaction, so that they agree. */
export function readPageView<K extends ViewKind>(
  reader: Connection,
  kind: K,
  params: ViewParams,
  now: Micros,
): QueryResults[K] {
  const { subject: subjectSql, parts }: PageView<ViewRows[K]> = pageViews[kind];
  return reader.database.transaction(() => {
    const subject = subjectSql ? (reader.findRow<ViewParams>(subjectSql, { ...params, now }) ?? null) : {};
    const values = { ...params, ...subject, now };
    const read = subject === null ? [] : Object.entries<string>(parts);
    return {
      generated_at: formatTimestamp(now),
      subject,
      parts: Object.fromEntries(
        read.map(([part, sql]) => [part, { sql: withValues(sql, values), rows: reader.rows(sql, values) }]),
      ),
    } as unknown as QueryResults[K];
  })();
}
