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
  /** The corrections `c` of ticks: a key, ts, before, changed_at in microseconds, and since: the correction before. */
  readonly changes: string;
  readonly changeKey: string;
  /** FROM: the stored ticks `r`, and the last correction `c` of each. */
  readonly fromTicks: string;
  /** FROM: the corrections `c`. */
  readonly fromChanges: string;
  /** The columns index_type, index_id and name of a tick, and of a correction. */
  readonly tickNames: string;
  readonly changeNames: string;
  /** An entry of a correction's JSON object, as text. */
  before(entry: string): string;
}

/**
 * Computed values beside the service's, and every version of every tick with the time during which the warehouse held it. A
 * correction or a withdrawal ends one version and begins the next. The first version has no beginning (null): storing it would cost
 * eight bytes per tick.
 */
export function comparisonViews(dialect: SqlDialect, parts: ComparisonParts): Record<string, string> {
  const { integer, real, text, flag, moment, decimals, fewDecimals, details, largest } = dialect;
  const relative = (value: string, reference: string) =>
    real(`(${value} - ${reference}) / abs(nullif(${reference}, 0))`);
  const eachPrice = (sql: (price: string) => string) => prices.map(sql);
  const differences = eachPrice((price) => relative(`b.${price}`, `r.${price}`));
  const computed = (column: string, supply: string) => `${fewDecimals("r", column)},
  ${real(`r.price * r.${supply}`)} AS computed_${column}, ${real(`r.${column} - r.price * r.${supply}`)} AS ${column}_diff,
  ${relative(`r.${column}`, `(r.price * r.${supply})`)} AS ${column}_rel_diff`;
  const known = (
    from: string,
    until: string,
  ) => `${integer(from)} AS known_from_ts, ${moment(from)} AS known_from_time,
  ${integer(until)} AS known_until_ts, ${moment(until)} AS known_until_time`;
  const before = (entry: string) => `${real(parts.before(entry))}, ${text(parts.before(entry))}`;
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

    index_tick_versions: `WITH changes AS (${parts.changes}),
latest AS (SELECT ${parts.changeKey}, ts, max(changed_at) AS since FROM changes GROUP BY ${parts.changeKey}, ts)
SELECT ${parts.tickNames}, r.ts, ${moment("r.ts")} AS time, ${decimals("r", "price")}, ${decimals("r", "volume")},
  ${known("c.since", "NULL")}, ${text(details("r", "quality"))} AS quality
${parts.fromTicks}
UNION ALL
SELECT ${parts.changeNames}, c.ts, ${moment("c.ts")}, ${before("price")}, ${before("volume")},
  ${known("c.since", "c.changed_at")}, ${text(parts.before("quality"))}
${parts.fromChanges}`,
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
  changes: `SELECT v.key, v.ts, v.before, v.changed_at, lag(v.changed_at) OVER (PARTITION BY v.key, v.ts ORDER BY v.revision) AS since
  FROM revision_rows v WHERE v.stream = 'index_ticks'`,
  changeKey: "key",
  fromTicks: `FROM series s CROSS JOIN index_tick_rows r LEFT JOIN latest c ON c.key = r.series AND c.ts = r.ts
WHERE r.series = s.series`,
  fromChanges: "FROM series s CROSS JOIN changes c WHERE c.key = s.series",
  tickNames: "s.index_type, s.index_id, s.name",
  changeNames: "s.index_type, s.index_id, s.name",
  before: (entry) => `json_extract(c.before, '$.${entry}')`,
});
