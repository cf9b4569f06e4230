import { formatDay, formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

/*
 * What the market, exchanges and derivatives pages show. All of it is read from the relations that users query, so that a page
 * and a query of one's own agree.
 */

/** One asset of the ranking as a tuple: a response has thousands. */
type RankedAsset = readonly [
  id: string,
  symbol: string,
  name: string | null,
  rank: number | null,
  price: number | null,
  volume: number | null,
  marketCap: number | null,
  change24h: number | null,
  change7d: number | null,
  change30d: number | null,
  ts: Micros,
];

export interface RankingResult {
  readonly assets: readonly RankedAsset[];
  /** Prices of seven days by asset id, oldest first, scaled to 0–100. */
  readonly sparklines: Readonly<Record<string, readonly number[]>>;
}

const rankingSql = `SELECT m.asset_id, m.symbol, a.name, m.rank, m.price, m.volume, m.market_cap,
    coalesce(m.price_change_24h, m.change_24h), coalesce(m.price_change_7d, m.change_7d), coalesce(m.price_change_30d, m.change_30d), m.ts
  FROM latest_market_caps m LEFT JOIN assets a ON a.id = m.asset_id WHERE m.is_live = 1
  ORDER BY m.rank IS NULL, m.rank, m.market_cap DESC`;

export function readMarketRanking(reader: Connection): RankedAsset[] {
  return reader.statement<RankedAsset>(rankingSql).raw().all();
}

const SPARKLINE_DAYS = 7;
const SPARKLINE_STEP_HOURS = 6;
/** Fewer hourly bars do not reach back far enough; fewer daily ones do not make a line. */
const MIN_HOURLY_POINTS = 24;
const MIN_DAILY_POINTS = 3;

type PricePoint = readonly [indexId: string, price: number];

/** From hourly bars where ticks are synced, else from daily bars, up to the price of the ranking. */
export function readSparklines(reader: Connection, now: Micros): Record<string, number[]> {
  const from = now - SPARKLINE_DAYS * MICROS_PER_DAY;
  const hourly = reader
    .statement<PricePoint>(
      `SELECT index_id, close FROM bars_1h WHERE index_type = 'GWA' AND ts >= ?
        AND ts / 3600000000 % ${SPARKLINE_STEP_HOURS} = 0 AND close IS NOT NULL ORDER BY index_id, ts`,
    )
    .raw()
    .all([from]);
  const daily = reader
    .statement<PricePoint>(
      `SELECT index_id, close FROM ohlcv WHERE index_type = 'GWA' AND day >= ? AND close IS NOT NULL
        ORDER BY index_id, day`,
    )
    .raw()
    .all([formatDay(from - MICROS_PER_DAY)]);
  const latest = new Map(
    reader
      .statement<PricePoint>("SELECT asset_id, price FROM latest_market_caps WHERE price > 0")
      .raw()
      .all(),
  );
  const sources = [
    { points: daily, minPoints: MIN_DAILY_POINTS },
    { points: hourly, minPoints: MIN_HOURLY_POINTS },
  ];
  // Later entries win: hourly bars replace daily ones.
  return Object.fromEntries(
    sources.flatMap(({ points, minPoints }) =>
      [...Map.groupBy(points, ([indexId]) => indexId)]
        .filter(([, own]) => own.length >= minPoints)
        .map(([indexId, own]) => {
          const last = latest.get(indexId);
          const prices = own.map(([, price]) => price);
          return [indexId, scale(last === undefined ? prices : [...prices, last])];
        }),
    ),
  );
}

function scale(values: readonly number[]): number[] {
  const low = Math.min(...values);
  const high = Math.max(...values);
  return values.map((value) => (high > low ? Math.round(((value - low) / (high - low)) * 100) : 50));
}

export interface PairSummary {
  readonly pair: string;
  readonly exchanges: number;
}

/** The pairs that exchanges quote now, those on most exchanges first. */
export function readPairs(reader: Connection): PairSummary[] {
  return reader
    .statement<PairSummary>(
      `SELECT pair, count(*) AS exchanges FROM latest_exchange_ticks WHERE is_live = 1
        GROUP BY pair ORDER BY exchanges DESC, pair`,
    )
    .all();
}

interface Quote {
  readonly exchange: string;
  readonly last: number | null;
  readonly bid: number | null;
  readonly ask: number | null;
  readonly spread_bps: number | null;
  readonly index_price: number | null;
  /** `MWA`, or `GWA` for the USD prices of both assets divided. */
  readonly index_source: string | null;
  readonly index_ts: Micros | null;
  readonly deviation_bps: number | null;
  readonly volume: number | null;
  readonly ts: Micros;
  readonly is_stale: 0 | 1 | null;
  readonly is_live: 0 | 1;
}

interface BestQuotes {
  readonly best_bid: number | null;
  readonly best_bid_exchange: string | null;
  readonly best_ask: number | null;
  readonly best_ask_exchange: string | null;
}

export interface QuotesResult {
  readonly generated_at: string;
  readonly pair: string;
  /** As of the newest live quote; null if there is none. */
  readonly best: BestQuotes | null;
  readonly quotes: readonly Quote[];
}

// CROSS JOIN: the newest ticker of each exchange first, then its row in the other views by key.
const quotesSql = `SELECT t.exchange, t.last, t.bid, t.ask, s.spread_bps, d.index_price, d.index_source, d.index_ts, d.deviation_bps,
    t.volume, t.ts, t.is_stale, t.is_live
  FROM latest_exchange_ticks t CROSS JOIN index_deviation d CROSS JOIN spread s
  WHERE t.pair = ? AND d.exchange_id = t.exchange_id AND d.market_id = t.market_id AND d.ts = t.ts
    AND s.exchange_id = t.exchange_id AND s.market_id = t.market_id AND s.ts = t.ts
  ORDER BY t.is_live DESC, t.volume DESC`;

const bestSql = `SELECT best_bid, best_bid_exchange, best_ask, best_ask_exchange FROM spread
  WHERE pair = ? AND ts = ? LIMIT 1`;

export function readQuotes(reader: Connection, pair: string, now: Micros): QuotesResult {
  return reader.database.transaction(() => {
    const quotes = reader.statement<Quote>(quotesSql).all([pair]);
    const newest = quotes.reduce((most, { ts, is_live }) => (is_live ? Math.max(most, ts) : most), 0);
    const best = reader.statement<BestQuotes>(bestSql).get([pair, newest]) ?? null;
    return { generated_at: formatTimestamp(now), pair, best, quotes };
  })();
}

export interface DerivativeAsset {
  readonly asset_id: string;
  readonly symbol: string;
  readonly contracts: number;
  /** JSON array of the names of the exchanges. */
  readonly exchanges: string;
}

/** The assets that have contracts with ticks, those with the most contracts first. */
export function readDerivativeAssets(reader: Connection): DerivativeAsset[] {
  return reader
    .statement<DerivativeAsset>(
      `SELECT m.base_asset_id AS asset_id, m.base_symbol AS symbol, count(*) AS contracts,
        json_group_array(DISTINCT coalesce(e.name, c.exchange_id)) AS exchanges
      FROM derivative_contracts c JOIN markets m ON m.id = c.market_id LEFT JOIN exchanges e ON e.id = c.exchange_id
      GROUP BY m.base_asset_id ORDER BY contracts DESC, symbol`,
    )
    .all();
}

export interface DerivativesOptions {
  readonly assetId: string;
  /** The name of an exchange; empty for all. */
  readonly exchange: string;
  /** The state at this moment. */
  readonly at: Micros;
}

interface ContractQuote {
  readonly id: string;
  readonly name: string | null;
  readonly exchange: string;
  readonly expiration: Micros | null;
  readonly ts: Micros;
  readonly price: number | null;
  readonly index_price: number | null;
  readonly open_interest_usd: number | null;
}

interface FutureQuote extends ContractQuote {
  readonly basis: number | null;
  readonly annualised_basis: number | null;
  readonly days_to_expiry: number | null;
}

interface PerpetualQuote extends ContractQuote {
  readonly premium: number | null;
  readonly funding_rate: number | null;
}

interface OptionQuote extends ContractQuote {
  readonly option_type: string | null;
  readonly strike: number | null;
  readonly bid: number | null;
  readonly ask: number | null;
  readonly mark_price: number | null;
  readonly open_interest: number | null;
}

export interface DerivativesResult {
  readonly at: Micros;
  /** The newest observation of any contract at that moment; null if there is none. */
  readonly observed: Micros | null;
  readonly futures: readonly FutureQuote[];
  readonly perpetuals: readonly PerpetualQuote[];
  readonly options: readonly OptionQuote[];
}

/** A contract that was last seen earlier than this before the asked moment has gone. */
const MAX_QUOTE_AGE = 6 * 3600 * 1_000_000;

/**
 * CROSS JOIN walks the contracts of the asset and seeks the last tick of each, then its row in the research view. The amount in
 * USD is not in the views.
 */
const contractsSql = (
  view: string,
  type: string,
  columns: string,
) => `SELECT v.contract_id AS id, v.contract AS name,
    v.exchange, c.expiration, v.ts, v.price, v.index_price, r.open_interest_usd, ${columns}
  FROM markets m CROSS JOIN contracts c CROSS JOIN derivative_tick_rows r CROSS JOIN ${view} v
  WHERE m.base_asset_id = :assetId AND c.market_id = m.id AND c.derivative_type = '${type}'
    AND (:exchange = '' OR c.exchange = :exchange) AND coalesce(c.expiration > :at, 1) AND r.contract = c.contract
    AND r.ts = (SELECT max(n.ts) FROM derivative_tick_rows n WHERE n.contract = c.contract AND n.ts <= :at)
    AND r.ts > :at - ${MAX_QUOTE_AGE} AND v.contract_id = c.id AND v.ts = r.ts
  ORDER BY c.expiration, c.option_strike, c.option_type, v.exchange`;

const futuresSql = contractsSql("futures_curve", "futures", "v.basis, v.annualised_basis, v.days_to_expiry");
const perpetualsSql = contractsSql("perpetuals", "perpetuals", "v.premium, v.funding_rate");
const optionsSql = contractsSql(
  "option_chain",
  "options",
  "v.option_type, v.strike, v.bid, v.ask, v.mark_price, v.open_interest",
);

export function readDerivatives(reader: Connection, options: DerivativesOptions): DerivativesResult {
  return reader.database.transaction(() => {
    const lists = {
      futures: reader.statement<FutureQuote>(futuresSql).all({ ...options }),
      perpetuals: reader.statement<PerpetualQuote>(perpetualsSql).all({ ...options }),
      options: reader.statement<OptionQuote>(optionsSql).all({ ...options }),
    };
    const observed = Object.values(lists)
      .flat()
      .reduce<Micros | null>((newest, { ts }) => Math.max(newest ?? 0, ts), null);
    return { at: options.at, observed, ...lists };
  })();
}
