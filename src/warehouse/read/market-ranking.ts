import type { RankedAsset, RankingResult, Sparkline } from "../../model/answers/market.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

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
const dailySql = `SELECT index_id, ts + ${MICROS_PER_DAY}, close FROM ohlcv WHERE index_type = 'GWA'
    AND ts BETWEEN :from - ${MICROS_PER_DAY} AND :now - ${MICROS_PER_DAY} AND close IS NOT NULL ORDER BY index_id, ts`;
const newestSql =
  "SELECT asset_id, ts, price FROM latest_market_caps WHERE price > 0 AND ts BETWEEN :from AND :now";

/** The closes of the last 168 hours up to the price of the ranking: hourly where ticks are synced, daily before and elsewhere. */
export function readSparklines(reader: Connection, now: Micros): RankingResult["sparklines"] {
  const from = now - SPARKLINE_HOURS * MICROS_PER_HOUR;
  const read = (sql: string) =>
    Map.groupBy(reader.tuples<PricePoint>(sql, { from, now }), ([indexId]) => indexId);
  const [daily, hourly, newest] = [read(dailySql), read(hourlySql), read(newestSql)];
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
