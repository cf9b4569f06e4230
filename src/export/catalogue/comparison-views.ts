import { barWidths, type Micros } from "../../model/time.ts";
import { type BarTick, barColumns, barDecimals } from "../../warehouse/views/bar-views.ts";
import { comparisonViews } from "../../warehouse/views/comparison-views.ts";
import { duckDbDialect } from "./duckdb-dialect.ts";

/** A column of one tick of a bar. An aggregate that skips nulls gets a struct, or an empty text for them; no price is null. */
const tickValues: Readonly<Record<BarTick, (column: string) => string>> = {
  first: (column) => (column === "price" ? "arg_min(price, ts)" : `arg_min({v: ${column}}, ts).v`),
  highest: (column) =>
    column === "price" ? "max(price)" : `nullif(arg_max(coalesce(${column}, ''), price), '')`,
  lowest: (column) =>
    column === "price" ? "min(price)" : `nullif(arg_min(coalesce(${column}, ''), price), '')`,
  last: (column) => (column === "price" ? "arg_max(price, ts)" : `arg_max({v: ${column}}, ts).v`),
};

const tickFigures = [
  ...barDecimals.flatMap(({ name, column, tick }) => [
    [name, tickValues[tick](column)],
    [`${name}_digits`, tickValues[tick](`${column}_digits`)],
  ]),
  ["n_ticks", "count(*)"],
  ["doubtful", "count(quality)"],
] as const;

/** The bars of `ticks`; `length`: an expression. */
function bars(length: string, ticks: string, present: Micros): string {
  const columns = barColumns(duckDbDialect(present), {
    start: "b.ts",
    length,
    decimals: barDecimals
      .map(({ name }) => `b.${name}, coalesce(b.${name}_digits, exact_digits(b.${name})) AS ${name}_exact`)
      .join(", "),
    count: "b.n_ticks",
    expected: "b.expected_ticks",
    covered: "b.covered",
    isDoubtful: "b.doubtful > 0",
    presentTs: String(present),
  });
  return `SELECT b.index_type, b.index_id, b.name, ${columns}
  FROM (
    -- any_value lets DuckDB skip the columns that a query does not select; GROUP BY would compute all.
    SELECT t.index_type, t.index_id, t.name, t.ts, ${tickFigures.map(([name]) => `any_value(t.${name}) AS ${name}`).join(", ")},
      ${length} // any_value(s.refresh_us) AS expected_ticks,
      -- DuckDB's least and greatest skip nulls: without the filter a bar without coverage would count as complete.
      coalesce(CAST(sum(least(g.to_ts, t.ts + ${length}) - greatest(g.from_ts, t.ts))
        FILTER (WHERE g.from_ts IS NOT NULL) AS BIGINT), 0) AS covered
    FROM (
      SELECT index_type, index_id, name, ts // ${length} * ${length} AS ts,
        ${tickFigures.map(([name, sql]) => `${sql} AS ${name}`).join(", ")}
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

/** Computed values compared with the service's. */
export function catalogueComparisonViews(present: Micros): Record<string, string> {
  return comparisonViews(duckDbDialect(present), {
    fromBars: `FROM bars_1d b LEFT JOIN ohlcv r
  ON r.index_type = b.index_type AND r.index_id = b.index_id AND r.ts = b.ts`,
    isServiceBarFinal: "coalesce(r.is_final, false)",
    fromMarketCaps: `FROM market_caps r ASOF LEFT JOIN (SELECT * FROM index_ticks WHERE index_type = 'GWA') t
  ON t.index_id = r.asset_id AND t.ts <= r.ts`,
    asset: "r.asset_id, r.symbol",
  });
}
