const prices = ["open", "high", "low", "close"] as const;

/** Relative to what the service says; null where it says nothing or nought. */
const relative = (ours: string, theirs: string) => `(${ours} - ${theirs}) / abs(nullif(${theirs}, 0))`;

const exact = (alias: string, column: string, name = column) =>
  `${alias}.${column} AS ${name}, ${alias}.${column}_exact AS ${name}_exact`;

const differences = prices.map((price) => relative(`b.${price}`, `r.${price}`));
/** DuckDB's greatest passes over nulls; a comparison that lacks one of the four has no largest difference. */
const largest = `CASE WHEN ${differences.map((difference) => `${difference} IS NOT NULL`).join(" AND ")}
  THEN greatest(${differences.map((difference) => `abs(${difference})`).join(", ")}) END`;

const ohlcv = `SELECT b.index_type, b.index_id, b.name, b.ts, b.time, CAST(b.time AS DATE) AS day,
  ${prices.map((price) => exact("b", price)).join(", ")},
  ${prices.map((price) => exact("r", price, `service_${price}`)).join(", ")},
  ${prices.map((price) => `b.${price} - r.${price} AS ${price}_diff`).join(", ")},
  ${prices.map((price, at) => `${differences[at]} AS ${price}_rel_diff`).join(", ")},
  ${largest} AS largest_rel_diff, b.n_ticks, b.expected_ticks, b.coverage, b.is_complete,
  coalesce(r.is_final, false) AS service_is_final,
  CASE WHEN r.day IS NULL THEN 'the service has no bar' ELSE coalesce(b.quality, r.quality) END AS quality
FROM bars_1d b LEFT JOIN ohlcv r
  ON r.index_type = b.index_type AND r.index_id = b.index_id AND CAST(r.day AS DATE) = CAST(b.time AS DATE)`;

/** What a figure should come to, beside what it is said to be. */
const computed = (column: string, supply: string) => `${exact("r", column)},
  r.price * r.${supply} AS computed_${column}, r.${column} - r.price * r.${supply} AS ${column}_diff,
  ${relative(`r.${column}`, `(r.price * r.${supply})`)} AS ${column}_rel_diff`;

const marketCaps = `SELECT r.asset_id, r.symbol, r.ts, r.time,
  ${exact("r", "price")}, ${exact("r", "free_float_supply")}, ${exact("r", "total_supply")},
  ${computed("market_cap", "free_float_supply")}, ${computed("total_market_cap", "total_supply")},
  t.ts AS index_ts, t.time AS index_time, ${exact("t", "price", "index_price")},
  ${relative("r.price", "t.price")} AS price_rel_diff, r.quality
FROM market_caps r ASOF LEFT JOIN (SELECT * FROM index_ticks WHERE index_type = 'GWA') t
  ON t.index_id = r.asset_id AND t.ts <= r.ts`;

const known = (
  from: string,
  until: string,
) => `epoch_us(${from}) AS known_from_ts, ${from} AS known_from_time,
  epoch_us(${until}) AS known_until_ts, ${until} AS known_until_time`;

/** A correction or a withdrawal ends one version of a tick; the next begins with it. */
const versions = `WITH changes AS (
  SELECT *, lag(changed_at) OVER (PARTITION BY index_type, index_id, ts ORDER BY changed_at) AS since
  FROM revisions WHERE stream = 'index_ticks'
), latest AS (
  SELECT index_type, index_id, ts, max(changed_at) AS since FROM changes GROUP BY ALL
)
SELECT t.index_type, t.index_id, t.name, t.ts, t.time, ${exact("t", "price")}, ${exact("t", "volume")},
  ${known("c.since", "CAST(NULL AS TIMESTAMP)")}, t.quality
FROM index_ticks t LEFT JOIN latest c USING (index_type, index_id, ts)
UNION ALL
SELECT index_type, index_id, name, ts, time,
  CAST(before ->> '$.price' AS DOUBLE), before ->> '$.price', CAST(before ->> '$.volume' AS DOUBLE), before ->> '$.volume',
  ${known("since", "changed_at")}, before ->> '$.quality'
FROM changes`;

/** Our figures against the service's own, and every version of a tick: as the warehouse's views of the same names. */
export const comparisonViews: readonly string[] = [
  `CREATE VIEW reconcile_ohlcv AS ${ohlcv}`,
  `CREATE VIEW reconcile_market_caps AS ${marketCaps}`,
  `CREATE VIEW index_tick_versions AS ${versions}`,
];
