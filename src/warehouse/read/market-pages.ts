import { formatDay, formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

/*
 * What the market, exchanges and derivatives pages show. All of it is here, against the relations that users query, so that a page
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
  readonly volume: number | null;
  readonly ts: Micros;
  readonly last_moved: string | null;
  readonly is_stale: 0 | 1 | null;
  readonly is_live: 0 | 1;
}

export interface QuotesResult {
  readonly generated_at: string;
  readonly pair: string;
  /** What the deviation refers to, and where it comes from; null if no index of the pair is synced. */
  readonly index: { readonly price: number; readonly source: string; readonly ts: Micros } | null;
  readonly quotes: readonly Quote[];
}

export function readQuotes(reader: Connection, pair: string, now: Micros): QuotesResult {
  const quotes = reader
    .statement<Quote>(
      `SELECT exchange, last, bid, ask, volume, ts, last_moved, is_stale, is_live FROM latest_exchange_ticks
        WHERE pair = ? ORDER BY is_live DESC, volume DESC`,
    )
    .all([pair]);
  return { generated_at: formatTimestamp(now), pair, index: readPairIndex(reader, pair), quotes };
}

interface IndexPrice {
  readonly price: number;
  readonly ts: Micros;
}

/** The market's own index (MWA), else the USD prices of both assets (GWA) divided. */
function readPairIndex(reader: Connection, pair: string): QuotesResult["index"] {
  const market = reader
    .statement<{ id: string; base: string; quote: string }>(
      "SELECT id, base_asset_id AS base, quote_asset_id AS quote FROM markets WHERE pair = ?",
    )
    .get([pair]);
  if (!market) return null;
  const readPrice = (type: string, id: string) =>
    reader
      .statement<IndexPrice>(
        "SELECT price, ts FROM latest_index_ticks WHERE index_type = ? AND index_id = ? AND price > 0",
      )
      .get([type, id]);
  const own = readPrice("MWA", market.id);
  if (own) return { ...own, source: `MWA ${pair}` };
  const [base, quote] = pair.split("/");
  const basePrice = readPrice("GWA", market.base);
  const quotePrice =
    quote === "USD" ? { price: 1, ts: Number.MAX_SAFE_INTEGER } : readPrice("GWA", market.quote);
  if (!basePrice || !quotePrice) return null;
  return {
    price: basePrice.price / quotePrice.price,
    source: quote === "USD" ? `GWA ${base}` : `GWA ${base} ÷ GWA ${quote}`,
    ts: Math.min(basePrice.ts, quotePrice.ts),
  };
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

interface DerivativeQuote {
  readonly id: string;
  readonly type: string;
  readonly name: string | null;
  readonly exchange: string;
  readonly pair: string;
  readonly option_type: string | null;
  readonly strike: number | null;
  readonly expiration: Micros | null;
  readonly ts: Micros;
  readonly price: number | null;
  readonly bid: number | null;
  readonly ask: number | null;
  readonly mark_price: number | null;
  readonly index_price: number | null;
  readonly funding_rate: number | null;
  readonly open_interest: number | null;
  readonly open_interest_usd: number | null;
  readonly volume: number | null;
}

export interface DerivativesResult {
  readonly at: Micros;
  /** The newest observation of any contract at that moment; null if there is none. */
  readonly observed: Micros | null;
  readonly contracts: readonly DerivativeQuote[];
}

/** A contract that was last seen earlier than this before the asked moment has gone. */
const MAX_QUOTE_AGE = 6 * 3600 * 1_000_000;

// CROSS JOIN walks the contracts of the asset and seeks each one's last tick: see data-views.ts.
const derivativesSql = `SELECT c.id, c.derivative_type AS type, c.exchange_name AS name, coalesce(e.name, c.exchange_id) AS exchange,
    m.pair, c.option_type, c.option_strike AS strike, c.expiration, r.ts, r.price, r.bid, r.ask, r.mark_price, r.index_price,
    r.funding_rate, r.open_interest, r.open_interest_usd, r.volume
  FROM markets m CROSS JOIN contracts c CROSS JOIN derivative_tick_rows r LEFT JOIN exchanges e ON e.id = c.exchange_id
  WHERE m.base_asset_id = :assetId AND c.market_id = m.id AND (:exchange = '' OR e.name = :exchange)
    AND coalesce(c.expiration > :at, 1) AND r.contract = c.contract
    AND r.ts = (SELECT max(n.ts) FROM derivative_tick_rows n WHERE n.contract = c.contract AND n.ts <= :at)
    AND r.ts > :at - ${MAX_QUOTE_AGE}
  ORDER BY c.derivative_type, c.expiration, c.option_strike, c.option_type, exchange`;

export function readDerivatives(reader: Connection, options: DerivativesOptions): DerivativesResult {
  const contracts = reader.statement<DerivativeQuote>(derivativesSql).all({ ...options });
  const observed = contracts.reduce<Micros | null>((newest, { ts }) => Math.max(newest ?? 0, ts), null);
  return { at: options.at, observed, contracts };
}
