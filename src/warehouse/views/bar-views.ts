import { barWidths, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { SqlDialect } from "./sql-dialect.ts";
import { fromDetails, keepJoins, quickDigitsOf, sqliteDialect } from "./sqlite-dialect.ts";

/** The tick of a bar that has one of its figures. */
export type BarTick = "first" | "highest" | "lowest" | "last";

/** The decimals of a bar, and which tick has them. `volume` is a rolling 24-hour value, so a bar takes the last. */
export const barDecimals: readonly {
  readonly name: string;
  readonly column: "price" | "volume";
  readonly tick: BarTick;
}[] = [
  { name: "open", column: "price", tick: "first" },
  { name: "high", column: "price", tick: "highest" },
  { name: "low", column: "price", tick: "lowest" },
  { name: "close", column: "price", tick: "last" },
  { name: "volume_24h", column: "volume", tick: "last" },
];

/** ORDER BY: the tick is the first. Of equal prices the first counts: they may differ in their exact digits. */
export const tickOrders: Readonly<Record<BarTick, (price: string, ts: string) => string>> = {
  first: (_, ts) => ts,
  highest: (price, ts) => `${price} DESC, ${ts}`,
  lowest: (price, ts) => `${price}, ${ts}`,
  last: (_, ts) => `${ts} DESC`,
};

/** What a bar shows, in the terms of one engine. */
interface BarFigures {
  readonly start: string;
  readonly length: string;
  /** The columns of `barDecimals`, each with its exact digits. */
  readonly decimals: string;
  readonly count: string;
  readonly expected: string;
  /** The covered microseconds. */
  readonly covered: string;
  /** A quick test whether the ledger covers the whole bar. */
  readonly isWhole?: string;
  /** Whether a tick of the bar has a quality remark. */
  readonly isDoubtful: string;
  readonly presentTs: string;
}

/**
 * The columns of every `bars_…` view after the names of the series. Bars are labelled by their start, those of a day by the day too,
 * and none is there for a period without ticks; `coverage` is the part that the ledger covers.
 */
export function barColumns(dialect: SqlDialect, bar: BarFigures): string {
  const { integer, real, flag, text, wholeMoment, day, yes } = dialect;
  const { start, length, covered, isWhole, count, expected } = bar;
  const unlessWhole = (whole: string, otherwise: string) =>
    isWhole === undefined ? otherwise : `CASE WHEN ${isWhole} THEN ${whole} ELSE ${otherwise} END`;
  const isIncomplete = `${isWhole === undefined ? "" : `${isWhole} IS NOT TRUE AND `}${covered} < ${length}`;
  return `${start} AS ts, ${wholeMoment(start)} AS time,
  ${length === String(MICROS_PER_DAY) ? `${day(start)} AS day,\n  ` : ""}${bar.decimals},
  ${integer(count)} AS n_ticks, ${integer(expected)} AS expected_ticks,
  ${real(unlessWhole("1.0", `${real(covered)} / ${length}`))} AS coverage,
  ${flag(unlessWhole(yes, `${covered} = ${length}`))} AS is_complete,
  ${text(`CASE WHEN ${start} + ${length} > ${bar.presentTs} THEN 'in progress' WHEN ${isIncomplete} THEN 'not proven whole'
    WHEN ${bar.isDoubtful} THEN 'doubtful ticks'
    WHEN ${count} < ${expected} THEN 'fewer ticks than expected' END`)} AS quality`;
}

/** The covered microseconds of [from, until). One seek finds the range that contains `from`; the index yields the rest. */
const coveredMicros = (stream: string, series: string, from: string, until: string) =>
  `coalesce((SELECT sum(min(g.to_ts, ${until}) - max(g.from_ts, ${from})) FROM settled_ranges g
    WHERE g.stream = '${stream}' AND g.series = ${series} AND g.from_ts < ${until} AND g.to_ts > ${from} AND g.proof <> 'lost'
      AND g.from_ts >= coalesce((SELECT p.from_ts FROM settled_ranges p WHERE p.stream = '${stream}'
        AND p.series = ${series} AND p.from_ts <= ${from} ORDER BY p.from_ts DESC LIMIT 1), ${from})), 0)`;

/** The days for which a series has rows of a table, as a JSON array of their midnights: one seek per day. */
const daysWithRows = (table: string, series: string) => `(WITH RECURSIVE d(day) AS (
    SELECT (SELECT t.ts FROM ${table} t WHERE t.series = ${series} ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY}
    UNION ALL
    SELECT (SELECT t.ts FROM ${table} t WHERE t.series = ${series} AND t.ts >= (d.day + 1) * ${MICROS_PER_DAY}
      ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY} FROM d WHERE d.day IS NOT NULL
  ) SELECT json_group_array(d.day * ${MICROS_PER_DAY}) FROM d WHERE d.day IS NOT NULL)`;

const shiftsSql = (length: Micros) => `WITH RECURSIVE shifts(shift) AS (
  SELECT 0 UNION ALL SELECT shift + ${length} FROM shifts WHERE shift + ${length} < ${MICROS_PER_DAY}
)
`;

/** A bar of `length` that begins at `start`, computed from the ticks of series `s`. */
function fromTicks(start: string, length: Micros) {
  const inBar = `t.series = s.series AND t.ts >= ${start} AND t.ts < ${start} + ${length}`;
  const ticks = (what: string, order = "") =>
    `(SELECT ${what} FROM index_tick_rows t WHERE ${inBar} AND t.price IS NOT NULL${order})`;
  // SQLite takes the bare column `ts` from the row that has the extreme. max and min ignore rows without a price.
  const extreme = (which: "max" | "min") =>
    `(SELECT x.ts FROM (SELECT ${which}(t.price), t.ts FROM index_tick_rows t WHERE ${inBar}) x)`;
  const endTick = (tick: "first" | "last") =>
    ticks("t.ts", ` ORDER BY ${tickOrders[tick]("t.price", "t.ts")} LIMIT 1`);
  return {
    ts: { first: endTick("first"), highest: extreme("max"), lowest: extreme("min"), last: endTick("last") },
    count: ticks("count(*)"),
    doubtful: ticks(`count(${fromDetails("t", "quality")})`),
  };
}

/** The aliases of the ticks that a bar takes its decimals from. */
const tickAliases: Readonly<Record<BarTick, string>> = { first: "a", highest: "h", lowest: "l", last: "z" };
const barTicks = Object.keys(tickAliases) as BarTick[];

/** The newest target `w` of series `s`. Read before the bars it costs one seek per series, but see `keepJoins`. */
const joinTarget = `LEFT JOIN targets w ON w.stream = 'index_ticks' AND w.series = s.series AND w.from_ts = (
    SELECT max(n.from_ts) FROM targets n WHERE n.stream = 'index_ticks' AND n.series = s.series)`;

interface BarSql extends Pick<BarFigures, "start" | "decimals" | "count"> {
  readonly length: Micros;
  /** The number of ticks with a quality remark. */
  readonly doubtful: string;
  /** What follows `FROM series s`, with `joinTarget`. */
  readonly from: string;
  readonly where: string;
}

/**
 * Columns that a query does not select cost nothing: SQLite merges both SELECTs, and omits a LEFT JOIN on a full primary key if
 * no column of it is used. The period of a series that was never selected is 30 seconds.
 */
function barsSql({ start, length, decimals, count, doubtful, from, where }: BarSql): string {
  const end = `(${start} + ${length})`;
  const columns = barColumns(sqliteDialect, {
    start: "x.ts",
    length: String(length),
    decimals: barDecimals
      .map(
        ({ name }) =>
          `x.${name}, CAST(coalesce(x.${name}_text, ${quickDigitsOf(`x.${name}`)}) AS TEXT) AS ${name}_exact`,
      )
      .join(", "),
    count: "x.n_ticks",
    expected: "x.expected",
    covered: "x.covered",
    isWhole: "x.is_whole",
    isDoubtful: "x.doubtful > 0",
    presentTs: `(SELECT ${sqliteDialect.presentTs})`,
  });
  // A stored column is not cast: a cast hides the key.
  const ts = start === "b.ts" ? start : sqliteDialect.integer(start);
  return `SELECT x.index_type, x.index_id, x.name, ${columns}
FROM (SELECT s.index_type, s.index_id, s.name, ${ts} AS ts, ${decimals},
  ${count} AS n_ticks, ${length} / coalesce(w.period, 30000000) AS expected,
  ${doubtful} AS doubtful, g.to_ts >= ${end} AND g.proof <> 'lost' AS is_whole,
  ${coveredMicros("index_ticks", "s.series", start, end)} AS covered
FROM series s ${from}
  LEFT JOIN settled_ranges g ON g.stream = 'index_ticks' AND g.series = s.series AND g.from_ts = (
    SELECT max(p.from_ts) FROM settled_ranges p WHERE p.stream = 'index_ticks' AND p.series = s.series AND p.from_ts <= ${start})
WHERE ${where}) x`;
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
      decimals: barDecimals
        .map(({ name, column, tick }) =>
          decimalWithText(name, `${tickAliases[tick]}.${column}`, fromDetails(tickAliases[tick], column)),
        )
        .join(",\n  "),
      count: bar.count,
      doubtful: bar.doubtful,
      from: `${joinTarget}
  CROSS JOIN json_each(${daysWithRows("index_tick_rows", "s.series")}) d CROSS JOIN shifts o
  CROSS JOIN index_tick_rows a
  ${(["highest", "lowest", "last"] as const).map((tick) => joinTick(tick, bar.ts[tick])).join("\n  ")}`,
      where: `${keepJoins("w.period")} AND a.series = s.series AND a.ts = ${bar.ts.first}`,
    })
  );
}

function joinTick(tick: BarTick, ts: string): string {
  const alias = tickAliases[tick];
  return `LEFT JOIN index_tick_rows ${alias} ON ${alias}.series = s.series AND ${alias}.ts = ${ts}`;
}

/** A decimal of a bar, and the text of its digits where the number has lost some. */
const decimalWithText = (name: string, value: string, text: string) =>
  `${value} AS ${name}, ${text} AS ${name}_text`;

/** The decimals of a bar from its ticks if it is stale, else from kept bars: `keptOf` is the alias of the one that has them. */
function eitherDecimals(isStale: string, keptOf: (tick: BarTick) => string): string {
  return barDecimals
    .map(({ name, column, tick }) => {
      const [ticks, kept] = [tickAliases[tick], keptOf(tick)];
      return decimalWithText(
        name,
        `CAST(CASE WHEN ${isStale} THEN ${ticks}.${column} ELSE ${kept}.${name} END AS REAL)`,
        `CASE WHEN ${isStale} THEN ${fromDetails(ticks, column)} ELSE ${fromDetails(kept, name)} END`,
      );
    })
    .join(",\n  ");
}

/**
 * Hourly bars are the rows of `kept_bars`. While a row is stale, the ticks are read instead; a stale hour may have none.
 */
function keptBars(): string {
  const start = "b.ts";
  const length = barWidths["1h"];
  const bar = fromTicks(start, length);
  const isStale = "b.n_ticks IS NULL";
  return barsSql({
    start,
    length,
    decimals: eitherDecimals(isStale, () => "b"),
    count: `CASE WHEN ${isStale} THEN ${bar.count} ELSE b.n_ticks END`,
    doubtful: `CASE WHEN ${isStale} THEN ${bar.doubtful} ELSE b.n_doubtful END`,
    from: `CROSS JOIN kept_bars b ${joinTarget}
  ${barTicks.map((tick) => joinTick(tick, `CASE WHEN ${isStale} THEN ${bar.ts[tick]} END`)).join("\n  ")}`,
    where: `b.series = s.series AND (b.n_ticks IS NOT NULL OR a.ts IS NOT NULL)`,
  });
}

/** Longer bars consist of kept ones, unless one of those is stale. */
function barsFromKept(length: Micros): string {
  const start = "(d.value + o.shift)";
  const bar = fromTicks(start, length);
  const inBar = `k.series = s.series AND k.ts >= ${start} AND k.ts < ${start} + ${length}`;
  const kept = (what: string, rest = "") => `(SELECT ${what} FROM kept_bars k WHERE ${inBar}${rest})`;
  const isStale = "q.ts IS NOT NULL";
  const joinKept = (alias: string, ts: string) =>
    `LEFT JOIN kept_bars ${alias} ON ${alias}.series = s.series AND ${alias}.ts = ${ts}`;
  const keptOf = (tick: BarTick) => `k${tickAliases[tick]}`;
  /** The extreme of a longer bar is that of the hour with the same extreme. */
  const keptTs = (tick: BarTick) =>
    kept("k.ts", ` ORDER BY ${tickOrders[tick](`k.${tick === "highest" ? "high" : "low"}`, "k.ts")} LIMIT 1`);
  return (
    shiftsSql(length) +
    barsSql({
      start,
      length,
      decimals: eitherDecimals(isStale, keptOf),
      count: `CASE WHEN ${isStale} THEN ${bar.count} ELSE ${kept("sum(k.n_ticks)")} END`,
      doubtful: `CASE WHEN ${isStale} THEN ${bar.doubtful} ELSE ${kept("sum(k.n_doubtful)")} END`,
      from: `${joinTarget}
  CROSS JOIN json_each(${daysWithRows("kept_bars", "s.series")}) d CROSS JOIN shifts o
  ${joinKept("q", kept("k.ts", " AND k.n_ticks IS NULL ORDER BY k.ts LIMIT 1"))}
  ${barTicks.map((tick) => joinTick(tick, `CASE WHEN ${isStale} THEN ${bar.ts[tick]} END`)).join("\n  ")}
  ${barTicks.map((tick) => joinKept(keptOf(tick), keptTs(tick))).join("\n  ")}`,
      where: `${keepJoins("w.period")} AND CASE WHEN ${isStale} THEN a.ts ELSE ka.ts END IS NOT NULL`,
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
