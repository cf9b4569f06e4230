import {
  decimalColumns,
  fewDecimalColumns,
  fromAside,
  isSettled,
  presentTs,
  timeText,
} from "./sql-fragments.ts";

const prices = ["open", "high", "low", "close"] as const;

const serviceColumns = prices
  .map((column) => fewDecimalColumns("r", column, `service_${column}`))
  .join(",\n  ");

/** The difference relative to `reference`; null if `reference` is null or zero. */
const relative = (value: string, reference: string) =>
  `CAST((${value} - ${reference}) / abs(nullif(${reference}, 0)) AS REAL)`;

/** A market cap beside price × supply. */
const marketCapColumns = (column: string, supply: string) => `${fewDecimalColumns("r", column)},
  CAST(r.price * r.${supply} AS REAL) AS computed_${column}, CAST(r.${column} - r.price * r.${supply} AS REAL) AS ${column}_diff,
  ${relative(`r.${column}`, `(r.price * r.${supply})`)} AS ${column}_rel_diff`;

export const reconcileViews: Record<string, string> = {
  // One row per daily bar from ticks: a day without ticks has nothing to compare.
  reconcile_ohlcv: `SELECT b.index_type, b.index_id, b.name, b.ts, b.time, b.day,
  ${prices.map((column) => `b.${column}, b.${column}_exact`).join(", ")},
  ${serviceColumns},
  ${prices.map((column) => `CAST(b.${column} - r.${column} AS REAL) AS ${column}_diff`).join(", ")},
  ${prices.map((column) => `${relative(`b.${column}`, `r.${column}`)} AS ${column}_rel_diff`).join(",\n  ")},
  CAST(max(${prices.map((column) => `abs(${relative(`b.${column}`, `r.${column}`)})`).join(",\n    ")}) AS REAL) AS largest_rel_diff,
  b.n_ticks, b.expected_ticks, b.coverage, b.is_complete,
  CAST(CASE WHEN r.day IS NULL THEN 0
    ELSE b.ts + 86400000000 <= (SELECT ${presentTs}) AND ${isSettled("ohlcv", "s.series", "b.ts", "b.ts + 86400000000")}
    END AS INTEGER) AS service_is_final,
  CAST(CASE WHEN r.day IS NULL THEN 'the service has no bar' ELSE coalesce(b.quality, ${fromAside("r", "quality")}) END AS TEXT) AS quality
FROM bars_1d b CROSS JOIN series s LEFT JOIN daily_bar_rows r ON r.series = s.series AND r.day = b.day
WHERE s.index_type = b.index_type AND s.index_id = b.index_id`,

  // An asset and its USD index share one series key: one seek finds the tick at or before the market cap.
  reconcile_market_caps: `SELECT s.index_id AS asset_id, s.name AS symbol, r.ts, ${timeText("r.ts")} AS time,
  ${fewDecimalColumns("r", "price")}, ${fewDecimalColumns("r", "free_float_supply")}, ${fewDecimalColumns("r", "total_supply")},
  ${marketCapColumns("market_cap", "free_float_supply")},
  ${marketCapColumns("total_market_cap", "total_supply")},
  t.ts AS index_ts, ${timeText("t.ts")} AS index_time,
  ${fewDecimalColumns("t", "price", "index_price")},
  ${relative("r.price", "t.price")} AS price_rel_diff,
  CAST(${fromAside("r", "quality")} AS TEXT) AS quality
FROM series s CROSS JOIN market_cap_rows r
  LEFT JOIN index_tick_rows t ON t.series = r.series AND t.ts = (SELECT max(n.ts) FROM index_tick_rows n
    WHERE n.series = r.series AND n.ts <= r.ts)
WHERE r.series = s.series`,
};

const validityColumns = (
  from: string,
  until: string,
) => `CAST(${from} AS INTEGER) AS known_from_ts, ${timeText(from)} AS known_from_time,
  CAST(${until} AS INTEGER) AS known_until_ts, ${timeText(until)} AS known_until_time`;

/**
 * Every version of every tick, with the time during which the warehouse held it. A correction or a withdrawal ends one
 * version and begins the next. The first version has no beginning (null): storing it would cost eight bytes per tick.
 */
export const versionViews: Record<string, string> = {
  index_tick_versions: `WITH changes AS (
  SELECT v.key, v.ts, v.before, v.changed_at, lag(v.changed_at) OVER (PARTITION BY v.key, v.ts ORDER BY v.revision) AS since
  FROM revision_rows v WHERE v.stream = 'index_ticks'
),
latest AS (
  SELECT v.key, v.ts, max(v.changed_at) AS since FROM revision_rows v WHERE v.stream = 'index_ticks' GROUP BY v.key, v.ts
)
SELECT s.index_type, s.index_id, s.name, r.ts, ${timeText("r.ts")} AS time,
  ${decimalColumns("r", "price")}, ${decimalColumns("r", "volume")},
  ${validityColumns("c.since", "NULL")}, CAST(${fromAside("r", "quality")} AS TEXT) AS quality
FROM series s CROSS JOIN index_tick_rows r LEFT JOIN latest c ON c.key = r.series AND c.ts = r.ts
WHERE r.series = s.series
UNION ALL
SELECT s.index_type, s.index_id, s.name, c.ts, ${timeText("c.ts")},
  CAST(json_extract(c.before, '$.price') AS REAL), CAST(json_extract(c.before, '$.price') AS TEXT),
  CAST(json_extract(c.before, '$.volume') AS REAL), CAST(json_extract(c.before, '$.volume') AS TEXT),
  ${validityColumns("c.since", "c.changed_at")}, CAST(json_extract(c.before, '$.quality') AS TEXT)
FROM series s CROSS JOIN changes c WHERE c.key = s.series`,
};
