import { barWidths, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { SqlDialect } from "./sql-dialect.ts";
import { decimalColumns, exactDigits, fromAside, slowExactDigits, sqliteDialect } from "./sqlite-dialect.ts";

/** What a bar shows besides its prices, in the terms of one engine. */
interface BarFigures {
  readonly start: string;
  /** A bar of a day has the column `day`. */
  readonly isDaily: boolean;
  readonly length: string;
  /** The columns open, high, low, close and volume_24h, each with its exact digits. */
  readonly prices: string;
  readonly count: string;
  readonly expected: string;
  /** The covered microseconds. */
  readonly covered: string;
  /** A quick test whether the ledger covers the whole bar. */
  readonly isWhole?: string;
  /** Whether a tick of the bar has a quality remark. */
  readonly isDoubtful: string;
  /** The number of ticks if none has a remark, found in one scan. */
  readonly plainCount?: string;
  readonly presentTs: string;
}

/**
 * The columns of every `bars_…` view after the names of the series. Bars are labelled by their start, and none is there for a
 * period without ticks; `coverage` is the part that the ledger covers. `volume` is a rolling 24-hour value, so a bar takes the last.
 */
export function barColumns(dialect: SqlDialect, bar: BarFigures): string {
  const { integer, real, flag, text, wholeMoment, day, yes } = dialect;
  const { start, length, covered, isWhole, count, expected, plainCount } = bar;
  // A stored column is not cast: a cast hides the key.
  const ts = /\.ts$/.test(start) ? `${start} AS ts` : `${integer(start)} AS ts`;
  const unlessWhole = (whole: string, otherwise: string) =>
    isWhole === undefined ? otherwise : `CASE WHEN ${isWhole} THEN ${whole} ELSE ${otherwise} END`;
  const isIncomplete = `${isWhole === undefined ? "" : `${isWhole} IS NOT TRUE AND `}${covered} < ${length}`;
  return `${ts}, ${wholeMoment(start)} AS time,
  ${bar.isDaily ? `${day(start)} AS day,\n  ` : ""}${bar.prices},
  ${integer(count)} AS n_ticks, ${integer(expected)} AS expected_ticks,
  ${real(unlessWhole("1.0", `${real(covered)} / ${length}`))} AS coverage,
  ${flag(unlessWhole(yes, `${covered} = ${length}`))} AS is_complete,
  ${text(`CASE WHEN ${start} + ${length} > ${bar.presentTs} THEN 'in progress' WHEN ${isIncomplete} THEN 'not proven whole'
    ${plainCount === undefined ? "" : `WHEN ${plainCount} = ${expected} THEN NULL\n    `}WHEN ${bar.isDoubtful} THEN 'doubtful ticks'
    WHEN ${count} < ${expected} THEN 'fewer ticks than expected' END`)} AS quality`;
}

/** The covered microseconds of [from, until). One seek finds the range that contains `from`; the index yields the rest. */
const coveredMicros = (stream: string, series: string, from: string, until: string) =>
  `coalesce((SELECT sum(min(g.to_ts, ${until}) - max(g.from_ts, ${from})) FROM settled_ranges g
    WHERE g.stream = '${stream}' AND g.series = ${series} AND g.from_ts < ${until} AND g.to_ts > ${from} AND g.proof <> 'lost'
      AND g.from_ts >= coalesce((SELECT p.from_ts FROM settled_ranges p WHERE p.stream = '${stream}'
        AND p.series = ${series} AND p.from_ts <= ${from} ORDER BY p.from_ts DESC LIMIT 1), ${from})), 0)`;

/** The days for which a series has rows of a table, as a JSON array of their midnights: one seek per day. */
export const daysWithRows = (table: string, series: string) => `(WITH RECURSIVE d(day) AS (
    SELECT (SELECT t.ts FROM ${table} t WHERE t.series = ${series} ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY}
    UNION ALL
    SELECT (SELECT t.ts FROM ${table} t WHERE t.series = ${series} AND t.ts >= (d.day + 1) * ${MICROS_PER_DAY}
      ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY} FROM d WHERE d.day IS NOT NULL
  ) SELECT json_group_array(d.day * ${MICROS_PER_DAY}) FROM d WHERE d.day IS NOT NULL)`;

const shiftsSql = (length: Micros) => `WITH RECURSIVE shifts(shift) AS (
  SELECT 0 UNION ALL SELECT shift + ${length} FROM shifts WHERE shift + ${length} < ${MICROS_PER_DAY}
)
`;

type Part = "open" | "high" | "low" | "close";
const parts: readonly Part[] = ["open", "high", "low", "close"];

/** A bar of `length` that begins at `start`, computed from the ticks of series `s`. */
function fromTicks(start: string, length: Micros) {
  const inBar = `t.series = s.series AND t.ts >= ${start} AND t.ts < ${start} + ${length}`;
  const ticks = (what: string, order = "") =>
    `(SELECT ${what} FROM index_tick_rows t WHERE ${inBar} AND t.price IS NOT NULL${order})`;
  // SQLite takes the bare column `ts` from the row that has the extreme. max and min ignore rows without a price.
  const extreme = (which: "max" | "min") =>
    `(SELECT x.ts FROM (SELECT ${which}(t.price), t.ts FROM index_tick_rows t WHERE ${inBar}) x)`;
  return {
    /** The timestamp of the tick that has the price. */
    ts: {
      open: ticks("t.ts", " ORDER BY t.ts LIMIT 1"),
      high: extreme("max"),
      low: extreme("min"),
      close: ticks("t.ts", " ORDER BY t.ts DESC LIMIT 1"),
    },
    count: ticks("count(*)"),
    /** The number of ticks, made too large by any value in `aside`. */
    plainCount: ticks("count(*) + 1000000 * count(t.aside)"),
    doubtful: ticks(`count(${fromAside("t", "quality")})`),
  };
}

/** The table rows that a bar takes its prices from: the alias of each, as the source of one price. */
const tickAliases: Readonly<Record<Part, string>> = { open: "a", high: "h", low: "l", close: "z" };

interface BarSql extends Pick<BarFigures, "start" | "prices" | "count" | "isDoubtful" | "plainCount"> {
  readonly length: Micros;
  /** What follows `FROM series s LEFT JOIN wanted_ranges w`. */
  readonly from: string;
  readonly where: string;
}

/**
 * Columns that a query does not select cost nothing: SQLite omits a LEFT JOIN on a full primary key if no column of it is
 * used. The period of a series that was never selected is 30 seconds.
 */
function barsSql({ from, where, ...bar }: BarSql): string {
  const { start, length } = bar;
  const end = `(${start} + ${length})`;
  const columns = barColumns(sqliteDialect, {
    ...bar,
    length: String(length),
    isDaily: length === MICROS_PER_DAY,
    expected: `(${length} / coalesce(w.period, 30000000))`,
    isWhole: `(g.to_ts >= ${end} AND g.proof <> 'lost')`,
    covered: coveredMicros("index_ticks", "s.series", start, end),
    presentTs: `(SELECT ${sqliteDialect.presentTs})`,
  });
  return `SELECT s.index_type, s.index_id, s.name, ${columns}
FROM series s
  LEFT JOIN wanted_ranges w ON w.stream = 'index_ticks' AND w.series = s.series AND w.from_ts = (
    SELECT max(n.from_ts) FROM wanted_ranges n WHERE n.stream = 'index_ticks' AND n.series = s.series)
  ${from}
  LEFT JOIN settled_ranges g ON g.stream = 'index_ticks' AND g.series = s.series AND g.from_ts = (
    SELECT max(p.from_ts) FROM settled_ranges p WHERE p.stream = 'index_ticks' AND p.series = s.series AND p.from_ts <= ${start})
WHERE ${where}`;
}

/**
 * Bars from ticks without GROUP BY: it would sort every tick of the series, and SQLite cannot push a condition through
 * it down to the ticks. Instead the view enumerates the bars (days with ticks × bars of a day), and each bar seeks
 * its first, highest, lowest and last tick by primary key. Bars that a query filters out read no ticks.
 */
function barsFromTicks(length: Micros): string {
  const start = "(d.value + o.shift)";
  const bar = fromTicks(start, length);
  return (
    shiftsSql(length) +
    barsSql({
      start,
      length,
      prices: [
        ...parts.map((part) => decimalColumns(tickAliases[part], "price", part)),
        decimalColumns("z", "volume", "volume_24h"),
      ].join(",\n  "),
      count: bar.count,
      isDoubtful: `${bar.doubtful} > 0`,
      plainCount: bar.plainCount,
      from: `CROSS JOIN json_each(${daysWithRows("index_tick_rows", "s.series")}) d CROSS JOIN shifts o
  CROSS JOIN index_tick_rows a
  ${(["high", "low", "close"] as const).map((part) => joinTick(part, bar.ts[part])).join("\n  ")}`,
      where: `a.series = s.series AND a.ts = ${bar.ts.open}`,
    })
  );
}

function joinTick(part: Part, ts: string): string {
  const alias = tickAliases[part];
  return `LEFT JOIN index_tick_rows ${alias} ON ${alias}.series = s.series AND ${alias}.ts = ${ts}`;
}

/** A price and its digits from the ticks if the bar is stale, else from a kept bar. */
function eitherColumns(
  isStale: string,
  tick: [string, string],
  kept: [string, string],
  name: string,
  keptDigits = slowExactDigits(...kept),
) {
  return `CAST(CASE WHEN ${isStale} THEN ${tick.join(".")} ELSE ${kept.join(".")} END AS REAL) AS ${name},
  CAST(CASE WHEN ${isStale} THEN ${slowExactDigits(...tick)} ELSE ${keptDigits} END AS TEXT) AS ${name}_exact`;
}

/**
 * Hourly bars are the rows of `kept_bars`. While a row is stale, the ticks are read instead; a stale hour may have none.
 */
function keptBars(): string {
  const start = "b.ts";
  const length = barWidths["1h"];
  const bar = fromTicks(start, length);
  const isStale = "b.n_ticks IS NULL";
  const ifStale = (sql: string) => `CASE WHEN ${isStale} THEN ${sql} END`;
  const either = (part: Part, column: string, name: string) =>
    eitherColumns(isStale, [tickAliases[part], column], ["b", name], name, exactDigits("b", name));
  return barsSql({
    start,
    length,
    prices: [
      ...parts.map((part) => either(part, "price", part)),
      either("close", "volume", "volume_24h"),
    ].join(",\n  "),
    count: `CASE WHEN ${isStale} THEN ${bar.count} ELSE b.n_ticks END`,
    isDoubtful: `CASE WHEN ${isStale} THEN ${bar.doubtful} ELSE b.n_doubtful END > 0`,
    from: `CROSS JOIN kept_bars b
  ${parts.map((part) => joinTick(part, ifStale(bar.ts[part]))).join("\n  ")}`,
    where: `b.series = s.series AND (b.n_ticks IS NOT NULL OR a.ts IS NOT NULL)`,
  });
}

/** Longer bars consist of kept ones, unless one of those is stale. */
function barsFromKept(length: Micros): string {
  const start = "(d.value + o.shift)";
  const bar = fromTicks(start, length);
  const inBar = `k.series = s.series AND k.ts >= ${start} AND k.ts < ${start} + ${length}`;
  const kept = (what: string, rest = "") => `(SELECT ${what} FROM kept_bars k WHERE ${inBar}${rest})`;
  const keptTs: Readonly<Record<Part, string>> = {
    open: kept("k.ts", " ORDER BY k.ts LIMIT 1"),
    // Equal prices may differ in their exact digits: the first hour counts, as the first tick does.
    high: kept("k.ts", " ORDER BY k.high DESC, k.ts LIMIT 1"),
    low: kept("k.ts", " ORDER BY k.low, k.ts LIMIT 1"),
    close: kept("k.ts", " ORDER BY k.ts DESC LIMIT 1"),
  };
  const isStale = "q.ts IS NOT NULL";
  const either = (part: Part, column: string, name: string) =>
    eitherColumns(isStale, [tickAliases[part], column], [`k${tickAliases[part]}`, name], name);
  const joinKept = (alias: string, ts: string) =>
    `LEFT JOIN kept_bars ${alias} ON ${alias}.series = s.series AND ${alias}.ts = ${ts}`;
  return (
    shiftsSql(length) +
    barsSql({
      start,
      length,
      prices: [
        ...parts.map((part) => either(part, "price", part)),
        either("close", "volume", "volume_24h"),
      ].join(",\n  "),
      count: `CASE WHEN ${isStale} THEN ${bar.count} ELSE ${kept("sum(k.n_ticks)")} END`,
      isDoubtful: `CASE WHEN ${isStale} THEN ${bar.doubtful} ELSE ${kept("sum(k.n_doubtful)")} END > 0`,
      from: `CROSS JOIN json_each(${daysWithRows("kept_bars", "s.series")}) d CROSS JOIN shifts o
  ${joinKept("q", kept("k.ts", " AND k.n_ticks IS NULL ORDER BY k.ts LIMIT 1"))}
  ${parts.map((part) => joinTick(part, `CASE WHEN ${isStale} THEN ${bar.ts[part]} END`)).join("\n  ")}
  ${parts.map((part) => joinKept(`k${tickAliases[part]}`, keptTs[part])).join("\n  ")}`,
      where: `CASE WHEN ${isStale} THEN a.ts ELSE ka.ts END IS NOT NULL`,
    })
  );
}

export const barViews: Record<string, string> = {
  bars_1m: barsFromTicks(barWidths["1m"]),
  bars_5m: barsFromTicks(barWidths["5m"]),
  bars_15m: barsFromTicks(barWidths["15m"]),
  bars_1h: keptBars(),
  bars_4h: barsFromKept(barWidths["4h"]),
  bars_1d: barsFromKept(barWidths["1d"]),
};
