import { barWidths, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { barColumns } from "../../warehouse/views/bar-views.ts";
import { comparisonViews } from "../../warehouse/views/comparison-views.ts";
import { duckDbDialect } from "./duckdb-dialect.ts";

/** any_value lets DuckDB skip the columns that a query does not select; GROUP BY would compute all. */
const tickFigures = [
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

/** `emptyDigits`: an aggregate that skips nulls has taken an empty text for them. */
const withDigits = (name: string, digits: string, hasEmptyDigits = false) =>
  `b.${name}, coalesce(${hasEmptyDigits ? `nullif(b.${digits}, '')` : `b.${digits}`}, exact_digits(b.${name})) AS ${name}_exact`;

/** The bars of `ticks`; `length`: an expression. */
function bars(length: string, ticks: string, present: Micros): string {
  const last = (column: string) => `arg_max({v: ${column}}, ts).v`;
  const columns = barColumns(duckDbDialect(present), {
    start: "b.ts",
    length,
    isDaily: length === String(MICROS_PER_DAY),
    prices: [
      withDigits("open", "open_digits"),
      withDigits("high", "high_digits", true),
      withDigits("low", "low_digits", true),
      withDigits("close", "close_digits"),
      withDigits("volume_24h", "volume_digits"),
    ].join(", "),
    count: "b.n_ticks",
    expected: "b.expected_ticks",
    covered: "b.covered",
    isDoubtful: "b.doubtful > 0",
    presentTs: String(present),
  });
  return `SELECT b.index_type, b.index_id, b.name, ${columns}
  FROM (
    SELECT t.index_type, t.index_id, t.name, t.ts, ${tickFigures.map((column) => `any_value(t.${column}) AS ${column}`).join(", ")},
      ${length} // any_value(s.refresh_us) AS expected_ticks,
      -- DuckDB's least and greatest skip nulls: without the filter a bar without coverage would count as whole.
      coalesce(CAST(sum(least(g.to_ts, t.ts + ${length}) - greatest(g.from_ts, t.ts))
        FILTER (WHERE g.from_ts IS NOT NULL) AS BIGINT), 0) AS covered
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

/** Computed values compared with the service's, and every version of a tick. */
export function catalogueComparisonViews(present: Micros): Record<string, string> {
  const key = "index_type, index_id";
  return comparisonViews(duckDbDialect(present), {
    fromBars: `FROM bars_1d b LEFT JOIN ohlcv r
  ON r.index_type = b.index_type AND r.index_id = b.index_id AND CAST(r.day AS DATE) = b.day`,
    isServiceBarFinal: "coalesce(r.is_final, false)",
    fromMarketCaps: `FROM market_caps r ASOF LEFT JOIN (SELECT * FROM index_ticks WHERE index_type = 'GWA') t
  ON t.index_id = r.asset_id AND t.ts <= r.ts`,
    asset: "r.asset_id, r.symbol",
    changes: `SELECT ${key}, name, ts, before, epoch_us(changed_at) AS changed_at,
    lag(epoch_us(changed_at)) OVER (PARTITION BY ${key}, ts ORDER BY changed_at) AS since
  FROM revisions WHERE stream = 'index_ticks'`,
    changeKey: key,
    fromTicks: `FROM index_ticks r LEFT JOIN latest c USING (${key}, ts)`,
    fromChanges: "FROM changes c",
    tickNames: "r.index_type, r.index_id, r.name",
    changeNames: "c.index_type, c.index_id, c.name",
    before: (entry) => `c.before ->> '$.${entry}'`,
  });
}
