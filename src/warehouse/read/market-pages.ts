import type {
  DerivativeAsset,
  DerivativesResult,
  FutureQuote,
  OptionQuote,
  PerpetualQuote,
} from "../../model/answers/derivatives.ts";
import type {
  BestPrices,
  ExchangeSummary,
  PairSummary,
  Quote,
  QuotesResult,
  RankedAsset,
  RankingResult,
  Sparkline,
  SpreadPoint,
  SpreadsResult,
} from "../../model/answers/market.ts";
import { formatDay, formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";
import { optionGreeksView } from "../views/option-greeks.ts";
import { sqliteDialect } from "../views/sqlite-dialect.ts";

/*
 * What the market, exchanges and derivatives pages show. All of it is read from the relations that users query, so that a page
 * and a query of one's own agree.
 */

/** What `spread.quality` says of a quote that does not compete for the best. */
const STANDS_STILL = "not moved for an hour";

/** SQL: what one of an asset is worth in USD now. */
function usdPriceSql(assetId: string): string {
  return `coalesce((SELECT u.price FROM latest_index_ticks u WHERE u.index_type = 'GWA' AND u.index_id = ${assetId} AND u.is_live = 1),
      (SELECT u.price FROM latest_market_caps u WHERE u.asset_id = ${assetId} AND u.is_live = 1))`;
}

const rankingSql = `SELECT m.asset_id, m.symbol, a.name, m.rank, m.price, m.volume * m.price, m.market_cap,
    coalesce(m.price_change_24h, m.change_24h), coalesce(m.price_change_7d, m.change_7d), coalesce(m.price_change_30d, m.change_30d), m.ts
  FROM latest_market_caps m LEFT JOIN assets a ON a.id = m.asset_id WHERE m.is_live = 1
  ORDER BY m.rank IS NULL, m.rank, m.market_cap DESC`;

export function readMarketRanking(reader: Connection): RankedAsset[] {
  return reader.tuples<RankedAsset>(rankingSql);
}

const SPARKLINE_HOURS = 168;
/** Only the first screens of the ranking show hours: 1,500 assets have a quarter of a million. */
const MAX_HOURLY_RANK = 200;
const MICROS_PER_HOUR = MICROS_PER_DAY / 24;
const MICROS_PER_MINUTE = MICROS_PER_HOUR / 60;

type PricePoint = readonly [indexId: string, ts: Micros, price: number];

const hourlySql = `SELECT index_id, ts + ${MICROS_PER_HOUR}, close FROM bars_1h WHERE index_type = 'GWA'
    AND index_id IN (SELECT asset_id FROM latest_market_caps WHERE rank <= ${MAX_HOURLY_RANK})
    AND ts BETWEEN :from - ${MICROS_PER_HOUR} AND :now - ${MICROS_PER_HOUR} AND close IS NOT NULL ORDER BY index_id, ts`;
const dailySql = `SELECT index_id, ts + ${MICROS_PER_DAY}, close FROM ohlcv WHERE index_type = 'GWA' AND day >= :day
    AND ts BETWEEN :from - ${MICROS_PER_DAY} AND :now - ${MICROS_PER_DAY} AND close IS NOT NULL ORDER BY index_id, ts`;
const newestSql =
  "SELECT asset_id, ts, price FROM latest_market_caps WHERE price > 0 AND ts BETWEEN :from AND :now";

/** The closes of the last 168 hours up to the price of the ranking: hourly where ticks are synced, daily before and elsewhere. */
export function readSparklines(reader: Connection, now: Micros): RankingResult["sparklines"] {
  const from = now - SPARKLINE_HOURS * MICROS_PER_HOUR;
  const read = (sql: string, more = {}) => {
    const points = reader.tuples<PricePoint>(sql, { from, now, ...more });
    return Map.groupBy(points, ([indexId]) => indexId);
  };
  const [daily, hourly, newest] = [
    read(dailySql, { day: formatDay(from - MICROS_PER_DAY) }),
    read(hourlySql),
    read(newestSql),
  ];
  const linesOf = (id: string): readonly (readonly [string, Sparkline])[] => {
    const hours = hourly.get(id) ?? [];
    const days = (daily.get(id) ?? []).filter(([, ts]) => ts < (hours[0]?.[1] ?? now));
    const points = [...days, ...hours, ...(newest.get(id) ?? [])];
    return points.length < 2 ? [] : [[id, toSparkline(points, from)]];
  };
  return Object.fromEntries([...new Set([...daily.keys(), ...hourly.keys()])].flatMap(linesOf));
}

function toSparkline(points: readonly PricePoint[], from: Micros): Sparkline {
  const prices = points.map(([, , price]) => price);
  const [low, high] = [Math.min(...prices), Math.max(...prices)];
  return points.flatMap(([, ts, price]) => [
    Math.round((ts - from) / MICROS_PER_MINUTE),
    high > low ? Math.round(((price - low) / (high - low)) * 100) : 50,
  ]);
}

/** The pairs that exchanges quote now, those on most exchanges first. */
export function readPairs(reader: Connection): PairSummary[] {
  return reader.rows<PairSummary>(`SELECT pair, count(*) AS exchanges FROM latest_exchange_ticks WHERE is_live = 1
        GROUP BY pair ORDER BY exchanges DESC, pair`);
}

/** Those with the most pairs first, each with the pair of it that the most exchanges quote. */
export function readExchanges(reader: Connection): ExchangeSummary[] {
  return reader.rows<ExchangeSummary>(`WITH quoted AS MATERIALIZED (
      SELECT exchange_id, pair, count(*) OVER (PARTITION BY pair) AS quoting FROM latest_exchange_ticks WHERE is_live = 1)
    SELECT coalesce(e.name, e.id) AS name, count(q.pair) AS pairs, q.pair, max(q.quoting)
    FROM exchanges e LEFT JOIN quoted q ON q.exchange_id = e.id GROUP BY e.id ORDER BY pairs DESC, name`);
}

// CROSS JOIN: the newest ticker of each exchange first, then its row in the other views by key.
const quotesSql = `SELECT t.exchange, t.last, t.bid, t.ask, s.spread_bps, d.index_price, d.index_source, d.index_ts, d.deviation_bps,
    t.volume * (${usdPriceSql("m.base_asset_id")}) AS volume_usd, t.ts, t.is_live, coalesce(s.quality = '${STANDS_STILL}', 0) AS is_still
  FROM latest_exchange_ticks t CROSS JOIN index_deviation d CROSS JOIN spread s LEFT JOIN markets m ON m.id = t.market_id
  WHERE t.pair = ? AND d.exchange_id = t.exchange_id AND d.market_id = t.market_id AND d.ts = t.ts
    AND s.exchange_id = t.exchange_id AND s.market_id = t.market_id AND s.ts = t.ts
  ORDER BY t.is_live DESC, is_still, volume_usd DESC`;

const bestColumns = "best_bid, best_bid_exchange, best_ask, best_ask_exchange, best_bid_any, best_ask_any";
const bestSql = `SELECT ${bestColumns} FROM spread WHERE pair = ? AND ts = ? LIMIT 1`;

export function readQuotes(reader: Connection, pair: string, now: Micros): QuotesResult {
  return reader.database.transaction(() => {
    const quotes = reader.rows<Quote>(quotesSql, [pair]);
    const newest = quotes.reduce((most, { ts, is_live }) => (is_live ? Math.max(most, ts) : most), 0);
    const best = reader.findRow<BestPrices>(bestSql, [pair, newest]) ?? null;
    return { generated_at: formatTimestamp(now), pair, best, quotes };
  })();
}

const SPREAD_HOURS = 24;
const SPREAD_STEP = 10 * MICROS_PER_MINUTE;
const listingSql = `SELECT exchange_id, market_id FROM latest_exchange_ticks WHERE pair = ? ORDER BY is_live DESC, volume DESC LIMIT 1`;
// The best quotes are the same whichever exchange's ticker they are read as of.
const spreadSql = `SELECT ts, (best_ask / nullif(best_bid, 0) - 1) * 10000 FROM spread
  WHERE pair = :pair AND exchange_id = :exchange_id AND market_id = :market_id AND ts = (SELECT max(n.ts) FROM exchange_ticks_slim n
    WHERE n.exchange_id = :exchange_id AND n.market_id = :market_id AND n.ts <= :at AND n.ts > :at - ${SPREAD_STEP})`;

/** The best ask over the best bid of a pair in basis points, each ten minutes of the last day. */
export function readSpreads(reader: Connection, pair: string, now: Micros): SpreadsResult {
  const listing = reader.findRow<Record<"exchange_id" | "market_id", string>>(listingSql, [pair]);
  if (!listing) return [];
  const spreadAt = reader.statement<SpreadPoint>(spreadSql).raw();
  const steps = (SPREAD_HOURS * MICROS_PER_HOUR) / SPREAD_STEP;
  const moments = Array.from({ length: steps }, (_, step) => now - (steps - 1 - step) * SPREAD_STEP);
  return moments.map((at) => spreadAt.get({ pair, at, ...listing })).filter((point) => point !== undefined);
}

/** The assets that have contracts with ticks, those with the most contracts first. */
export function readDerivativeAssets(reader: Connection): DerivativeAsset[] {
  return reader.rows<DerivativeAsset>(`SELECT m.base_asset_id AS asset_id, m.base_symbol AS symbol, count(*) AS contracts,
        json_group_array(DISTINCT coalesce(e.name, c.exchange_id)) AS exchanges
      FROM derivative_contracts c JOIN markets m ON m.id = c.market_id LEFT JOIN exchanges e ON e.id = c.exchange_id
      GROUP BY m.base_asset_id ORDER BY contracts DESC, symbol`);
}

export interface DerivativesOptions {
  readonly assetId: string;
  /** The name of an exchange; empty for all. */
  readonly exchange: string;
  /** The state at this moment. */
  readonly at: Micros;
}

/** A contract that was last seen earlier than this before the asked moment has gone. */
const MAX_QUOTE_AGE = 6 * 3600 * 1_000_000;

/** CROSS JOIN walks the contracts of the asset and seeks the last tick of each, then its row in the research view. */
const contractsSql = (view: string, type: string, columns: string) => `SELECT ${columns}
  FROM markets m CROSS JOIN contracts c CROSS JOIN derivative_tick_rows r CROSS JOIN ${view} v
  WHERE m.base_asset_id = :assetId AND c.market_id = m.id AND c.derivative_type = '${type}'
    AND coalesce(c.expiration > :at, 1) AND r.contract = c.contract
    AND r.ts = (SELECT max(n.ts) FROM derivative_tick_rows n WHERE n.contract = c.contract AND n.ts <= :at)
    AND r.ts > :at - ${MAX_QUOTE_AGE} AND v.contract_id = c.id AND v.ts = r.ts`;
const ofExchange = "(:exchange = '' OR v.exchange = :exchange)";

/** The amount in USD is not in the views. */
const quotesOfContracts = (view: string, type: string, columns: string) =>
  `${contractsSql(
    view,
    type,
    `v.contract_id AS id, v.contract AS name, v.exchange, c.expiration, v.ts, v.price, v.index_price, r.open_interest_usd, ${columns}`,
  )} AND ${ofExchange} ORDER BY c.expiration, v.exchange`;

const futuresSql = quotesOfContracts(
  "futures_curve",
  "futures",
  "v.basis, v.annualised_basis, v.days_to_expiry",
);
const perpetualsSql = quotesOfContracts("perpetuals", "perpetuals", "v.premium, v.funding_rate");
// As `latest_option_greeks`, at any moment and for one asset. The forward is that of all exchanges.
const observed = contractsSql("option_chain", "options", "v.*, NULL AS age_seconds, NULL AS is_live");
const optionsSql = `WITH observed AS MATERIALIZED (${observed}), greeks AS MATERIALIZED (${optionGreeksView(sqliteDialect, "observed")})
  SELECT v.exchange, c.expiration, v.ts, v.index_price, v.option_type, v.strike, v.bid, v.ask, v.open_interest,
    g.worth, g.forward, g.implied_volatility
  FROM observed v JOIN greeks g ON g.contract_id = v.contract_id JOIN contracts c ON c.id = v.contract_id
  WHERE ${ofExchange} AND c.derivative_type = 'options' ORDER BY c.expiration, v.strike, v.option_type, v.exchange`;

export function readDerivatives(reader: Connection, options: DerivativesOptions): DerivativesResult {
  return reader.database.transaction(() => {
    const lists = {
      futures: reader.rows<FutureQuote>(futuresSql, { ...options }),
      perpetuals: reader.rows<PerpetualQuote>(perpetualsSql, { ...options }),
      options: reader.rows<OptionQuote>(optionsSql, { ...options }),
    };
    const observed = Object.values(lists)
      .flat()
      .reduce<Micros | null>((newest, { ts }) => Math.max(newest ?? 0, ts), null);
    return { at: options.at, observed, ...lists };
  })();
}
