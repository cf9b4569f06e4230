import type {
  DerivativeAsset,
  DerivativesResult,
  FutureQuote,
  OptionQuote,
  PerpetualQuote,
} from "../../model/answers/derivatives.ts";
import type {
  BestPrices,
  PairSummary,
  Quote,
  QuotesResult,
  RankedAsset,
} from "../../model/answers/market.ts";
import { formatDay, formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

/*
 * What the market, exchanges and derivatives pages show. All of it is read from the relations that users query, so that a page
 * and a query of one's own agree.
 */

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

/** The pairs that exchanges quote now, those on most exchanges first. */
export function readPairs(reader: Connection): PairSummary[] {
  return reader
    .statement<PairSummary>(
      `SELECT pair, count(*) AS exchanges FROM latest_exchange_ticks WHERE is_live = 1
        GROUP BY pair ORDER BY exchanges DESC, pair`,
    )
    .all();
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
    const best = reader.statement<BestPrices>(bestSql).get([pair, newest]) ?? null;
    return { generated_at: formatTimestamp(now), pair, best, quotes };
  })();
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
