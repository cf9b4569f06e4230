import { barWidths, MICROS_PER_DAY, type Micros } from "../model/time.ts";

/** The columns of a bar. any_value lets DuckDB skip those that a query does not select; GROUP BY would compute all. */
const barColumns = [
  "open",
  "open_digits",
  "high",
  "high_digits",
  "low",
  "low_digits",
  "close",
  "close_digits",
  "volume_24h",
  "volume_digits",
  "n_ticks",
  "doubtful",
];

/**
 * Computes bars from ticks like the warehouse's `bars_…` views: labelled by their start, none for a period without
 * ticks, with the share of the bar that the ledger covers. `volume` is a rolling 24-hour value, so a bar takes the last.
 */
function bars(length: string, ticks: string, present: Micros): string {
  const last = (column: string) => `arg_max({v: ${column}}, ts).v`;
  return `SELECT b.index_type, b.index_id, b.name, b.ts, make_timestamp(b.ts) AS time,${length === String(MICROS_PER_DAY) ? " CAST(make_timestamp(b.ts) AS DATE) AS day," : ""}
    b.open, coalesce(b.open_digits, exact_digits(b.open)) AS open_exact,
    b.high, coalesce(nullif(b.high_digits, ''), exact_digits(b.high)) AS high_exact,
    b.low, coalesce(nullif(b.low_digits, ''), exact_digits(b.low)) AS low_exact,
    b.close, coalesce(b.close_digits, exact_digits(b.close)) AS close_exact,
    b.volume_24h, coalesce(b.volume_digits, exact_digits(b.volume_24h)) AS volume_24h_exact,
    b.n_ticks, b.expected_ticks, b.proven / ${length} AS coverage, b.proven = ${length} AS is_complete,
    CASE WHEN b.ts + ${length} > ${present} THEN 'in progress' WHEN b.proven < ${length} THEN 'not proven whole'
      WHEN b.doubtful > 0 THEN 'doubtful ticks'
      WHEN b.n_ticks < b.expected_ticks THEN 'fewer ticks than expected' END AS quality
  FROM (
    SELECT t.index_type, t.index_id, t.name, t.ts, ${barColumns.map((column) => `any_value(t.${column}) AS ${column}`).join(", ")},
      ${length} // any_value(s.refresh_us) AS expected_ticks,
      -- DuckDB's least and greatest skip nulls: without the filter a bar without coverage would count as whole.
      coalesce(CAST(sum(least(g.to_ts, t.ts + ${length}) - greatest(g.from_ts, t.ts))
        FILTER (WHERE g.from_ts IS NOT NULL) AS BIGINT), 0) AS proven
    FROM (
      SELECT index_type, index_id, name, ts // ${length} * ${length} AS ts,
        arg_min(price, ts) AS open, arg_min({v: price_digits}, ts).v AS open_digits,
        max(price) AS high, arg_max(coalesce(price_digits, ''), price) AS high_digits,
        min(price) AS low, arg_min(coalesce(price_digits, ''), price) AS low_digits,
        arg_max(price, ts) AS close, ${last("price_digits")} AS close_digits,
        ${last("volume")} AS volume_24h, ${last("volume_digits")} AS volume_digits,
        count(*) AS n_ticks, count(quality) AS doubtful
      FROM ${ticks} GROUP BY ALL
    ) t
    LEFT JOIN series s ON s.index_type = t.index_type AND s.index_id = t.index_id
    LEFT JOIN coverage g ON g.stream = 'index_ticks' AND g.proof <> 'lost' AND g.index_type = t.index_type
      AND g.index_id = t.index_id AND g.from_ts < t.ts + ${length} AND g.to_ts > t.ts
    GROUP BY t.index_type, t.index_id, t.name, t.ts
  ) b`;
}

export function catalogueBarViews(present: Micros): Record<string, string> {
  const ticks = "index_ticks_stored WHERE price IS NOT NULL";
  return Object.fromEntries(
    Object.entries(barWidths).map(([name, length]) => [`bars_${name}`, bars(String(length), ticks, present)]),
  );
}

/** Bars of any length of one series that begin in a window. The window never cuts a bar. */
export function barMacro(present: Micros): string {
  // epoch() counts a month as 30 days.
  const length = `(CASE WHEN datepart('year', width) <> 0 OR datepart('month', width) <> 0
    THEN error('bars have a fixed length: give days, hours or minutes, not months') ELSE CAST(epoch(width) * 1000000 AS BIGINT) END)`;
  const firstStart = (time: string) =>
    `(epoch_us(CAST(${time} AS TIMESTAMP)) + ${length} - 1) // ${length} * ${length}`;
  const ticks = `index_ticks_stored WHERE price IS NOT NULL AND name = series_name
    AND ts >= ${firstStart("from_time")} AND ts < ${firstStart("to_time")}`;
  return `CREATE MACRO bars(series_name, width, from_time, to_time) AS TABLE ${bars(length, ticks, present)}`;
}

const prices = ["open", "high", "low", "close"] as const;

/** The difference relative to `reference`; null if `reference` is null or zero. */
const relative = (value: string, reference: string) =>
  `(${value} - ${reference}) / abs(nullif(${reference}, 0))`;

const exact = (alias: string, column: string, name = column) =>
  `${alias}.${column} AS ${name}, ${alias}.${column}_exact AS ${name}_exact`;

const differences = prices.map((price) => relative(`b.${price}`, `r.${price}`));
/** Null if one of the four differences is null; DuckDB's greatest alone would skip nulls. */
const largest = `CASE WHEN ${differences.map((difference) => `${difference} IS NOT NULL`).join(" AND ")}
  THEN greatest(${differences.map((difference) => `abs(${difference})`).join(", ")}) END`;

const ohlcv = `SELECT b.index_type, b.index_id, b.name, b.ts, b.time, b.day,
  ${prices.map((price) => exact("b", price)).join(", ")},
  ${prices.map((price) => exact("r", price, `service_${price}`)).join(", ")},
  ${prices.map((price) => `b.${price} - r.${price} AS ${price}_diff`).join(", ")},
  ${prices.map((price, at) => `${differences[at]} AS ${price}_rel_diff`).join(", ")},
  ${largest} AS largest_rel_diff, b.n_ticks, b.expected_ticks, b.coverage, b.is_complete,
  coalesce(r.is_final, false) AS service_is_final,
  CASE WHEN r.day IS NULL THEN 'the service has no bar' ELSE coalesce(b.quality, r.quality) END AS quality
FROM bars_1d b LEFT JOIN ohlcv r
  ON r.index_type = b.index_type AND r.index_id = b.index_id AND CAST(r.day AS DATE) = b.day`;

/** The service's value beside the one computed from price and supply. */
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

const validityColumns = (
  from: string,
  until: string,
) => `epoch_us(${from}) AS known_from_ts, ${from} AS known_from_time,
  epoch_us(${until}) AS known_until_ts, ${until} AS known_until_time`;

/** A correction or a withdrawal ends one version of a tick and begins the next. */
const versions = `WITH changes AS (
  SELECT *, lag(changed_at) OVER (PARTITION BY index_type, index_id, ts ORDER BY changed_at) AS since
  FROM revisions WHERE stream = 'index_ticks'
), latest AS (
  SELECT index_type, index_id, ts, max(changed_at) AS since FROM changes GROUP BY ALL
)
SELECT t.index_type, t.index_id, t.name, t.ts, t.time, ${exact("t", "price")}, ${exact("t", "volume")},
  ${validityColumns("c.since", "CAST(NULL AS TIMESTAMP)")}, t.quality
FROM index_ticks t LEFT JOIN latest c USING (index_type, index_id, ts)
UNION ALL
SELECT index_type, index_id, name, ts, time,
  CAST(before ->> '$.price' AS DOUBLE), before ->> '$.price', CAST(before ->> '$.volume' AS DOUBLE), before ->> '$.volume',
  ${validityColumns("since", "changed_at")}, before ->> '$.quality'
FROM changes`;

/** The same views as in the warehouse: computed values compared with the service's, and every version of a tick. */
export const comparisonViews: Readonly<Record<string, string>> = {
  reconcile_ohlcv: ohlcv,
  reconcile_market_caps: marketCaps,
  index_tick_versions: versions,
};
