import { MICROS_PER_DAY } from "../../model/time.ts";
import { isCovered, type SqlDialect } from "./sql-dialect.ts";
import { sqliteDialect } from "./sqlite-dialect.ts";

const prices = ["open", "high", "low", "close"] as const;

/** The rows that the views below read, in the terms of one engine. */
interface ComparisonParts {
  /** FROM: the bars `b` from ticks, and the service's bar `r` of the same day. */
  readonly fromBars: string;
  readonly isServiceBarFinal: string;
  /** FROM: the market caps `r`, and the newest tick `t` of the asset's index. */
  readonly fromMarketCaps: string;
  /** The columns asset_id and symbol. */
  readonly asset: string;
}

/** Computed values beside the service's. */
export function comparisonViews(dialect: SqlDialect, parts: ComparisonParts): Record<string, string> {
  const { real, text, flag, moment, fewDecimals, details, largest } = dialect;
  const relative = (value: string, reference: string) =>
    real(`(${value} - ${reference}) / abs(nullif(${reference}, 0))`);
  const eachPrice = (sql: (price: string) => string) => prices.map(sql);
  const differences = eachPrice((price) => relative(`b.${price}`, `r.${price}`));
  const computed = (column: string, supply: string) => `${fewDecimals("r", column)},
  ${real(`r.price * r.${supply}`)} AS computed_${column}, ${real(`r.${column} - r.price * r.${supply}`)} AS ${column}_diff,
  ${relative(`r.${column}`, `(r.price * r.${supply})`)} AS ${column}_rel_diff`;
  return {
    // One row per daily bar from ticks: a day without ticks has nothing to compare.
    reconcile_ohlcv: `SELECT b.index_type, b.index_id, b.name, b.ts, b.time, b.day,
  ${eachPrice((price) => `b.${price}, b.${price}_exact`).join(", ")},
  ${eachPrice((price) => fewDecimals("r", price, `service_${price}`)).join(",\n  ")},
  ${eachPrice((price) => `${real(`b.${price} - r.${price}`)} AS ${price}_diff`).join(", ")},
  ${prices.map((price, at) => `${differences[at]} AS ${price}_rel_diff`).join(",\n  ")},
  ${real(largest(...differences.map((difference) => `abs(${difference})`)))} AS largest_rel_diff,
  b.n_ticks, b.expected_ticks, b.coverage, b.is_complete, ${flag(parts.isServiceBarFinal)} AS service_is_final,
  ${text(`CASE WHEN r.ts IS NULL THEN 'the service has no bar' ELSE coalesce(b.quality, ${details("r", "quality")}) END`)} AS quality
${parts.fromBars}`,

    reconcile_market_caps: `SELECT ${parts.asset}, r.ts, ${moment("r.ts")} AS time,
  ${fewDecimals("r", "price")}, ${fewDecimals("r", "free_float_supply")}, ${fewDecimals("r", "total_supply")},
  ${computed("market_cap", "free_float_supply")},
  ${computed("total_market_cap", "total_supply")},
  t.ts AS index_ts, ${moment("t.ts")} AS index_time, ${fewDecimals("t", "price", "index_price")},
  ${relative("r.price", "t.price")} AS price_rel_diff, ${text(details("r", "quality"))} AS quality
${parts.fromMarketCaps}`,
  };
}

/** In SQLite an asset and its USD index share one series key: one seek finds the tick at or before the market cap. */
export const sqliteComparisonViews = comparisonViews(sqliteDialect, {
  fromBars: `FROM bars_1d b LEFT JOIN daily_bar_rows r ON r.ts = b.ts
  AND r.series = (SELECT s.series FROM series s WHERE s.index_type = b.index_type AND s.index_id = b.index_id)`,
  isServiceBarFinal: `CASE WHEN r.ts IS NULL THEN 0
    ELSE b.ts + ${MICROS_PER_DAY} <= (SELECT ${sqliteDialect.presentTs}) AND ${isCovered(sqliteDialect, "ohlcv", "r.series", "b.ts", `b.ts + ${MICROS_PER_DAY}`)} END`,
  fromMarketCaps: `FROM series s CROSS JOIN market_cap_rows r
  LEFT JOIN index_tick_rows t ON t.series = r.series AND t.ts = (SELECT max(n.ts) FROM index_tick_rows n
    WHERE n.series = r.series AND n.ts <= r.ts)
WHERE r.series = s.series`,
  asset: "s.index_id AS asset_id, s.name AS symbol",
});
