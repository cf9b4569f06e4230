import { barWidths, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { decimalColumns, fromAside, presentTs, timeText } from "./sql-fragments.ts";

/** The covered microseconds of [from, until). One seek finds the range that contains `from`; the index yields the rest. */
const coveredMicros = (stream: string, series: string, from: string, until: string) =>
  `coalesce((SELECT sum(min(g.to_ts, ${until}) - max(g.from_ts, ${from})) FROM settled_ranges g
    WHERE g.stream = '${stream}' AND g.series = ${series} AND g.from_ts < ${until} AND g.to_ts > ${from} AND g.proof <> 'lost'
      AND g.from_ts >= coalesce((SELECT p.from_ts FROM settled_ranges p WHERE p.stream = '${stream}'
        AND p.series = ${series} AND p.from_ts <= ${from} ORDER BY p.from_ts DESC LIMIT 1), ${from})), 0)`;

/** The days on which a series has ticks, as a JSON array of their midnights: one seek per day. */
const daysWithTicks = (series: string) => `(WITH RECURSIVE d(day) AS (
    SELECT (SELECT t.ts FROM index_tick_rows t WHERE t.series = ${series} ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY}
    UNION ALL
    SELECT (SELECT t.ts FROM index_tick_rows t WHERE t.series = ${series} AND t.ts >= (d.day + 1) * ${MICROS_PER_DAY}
      ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY} FROM d WHERE d.day IS NOT NULL
  ) SELECT json_group_array(d.day * ${MICROS_PER_DAY}) FROM d WHERE d.day IS NOT NULL)`;

/**
 * Bars from ticks without GROUP BY: it would sort every tick of the series, and SQLite cannot push a condition through
 * it down to the ticks. Instead the view enumerates the bars (days with ticks × bars of a day), and each bar seeks
 * its first, highest, lowest and last tick by primary key. Bars that a query filters out read no ticks, and columns that
 * it does not select cost nothing: SQLite omits a LEFT JOIN on a full primary key if no column of it is used.
 *
 * The refresh period is half of the target's settle delay (see `settleDelay` in sync), so that readers need no settings.
 * It is 30 seconds for a series that was never selected.
 */
function barsSql(length: Micros): string {
  const start = "(d.value + o.shift)";
  const end = `(d.value + o.shift + ${length})`;
  const inBar = `t.series = s.series AND t.ts >= ${start} AND t.ts < ${end}`;
  const priced = `${inBar} AND t.price IS NOT NULL`;
  const ticks = (what: string, order = "") =>
    `(SELECT ${what} FROM index_tick_rows t WHERE ${priced}${order})`;
  // SQLite takes the bare column `ts` from the row that has the extreme. max and min ignore rows without a price.
  const extreme = (which: "max" | "min") =>
    `(SELECT x.ts FROM (SELECT ${which}(t.price), t.ts FROM index_tick_rows t WHERE ${inBar}) x)`;
  const expected = `(${length} / coalesce(w.settle_delay / 2, 30000000))`;
  const isCovered = `(g.to_ts >= ${end} AND g.proof <> 'lost')`;
  const covered = coveredMicros("index_ticks", "s.series", start, end);
  return `WITH RECURSIVE shifts(shift) AS (
  SELECT 0 UNION ALL SELECT shift + ${length} FROM shifts WHERE shift + ${length} < ${MICROS_PER_DAY}
)
SELECT s.index_type, s.index_id, s.name, CAST(${start} AS INTEGER) AS ts, ${timeText(start)} AS time,
  ${decimalColumns("a", "price", "open")}, ${decimalColumns("h", "price", "high")},
  ${decimalColumns("l", "price", "low")}, ${decimalColumns("z", "price", "close")},
  ${decimalColumns("z", "volume", "volume_24h")},
  CAST(${ticks("count(*)")} AS INTEGER) AS n_ticks, CAST(${expected} AS INTEGER) AS expected_ticks,
  CAST(CASE WHEN ${isCovered} THEN 1.0 ELSE ${covered} * 1.0 / ${length} END AS REAL) AS coverage,
  CAST(CASE WHEN ${isCovered} THEN 1 ELSE ${covered} = ${length} END AS INTEGER) AS is_complete,
  CAST(CASE WHEN ${end} > (SELECT ${presentTs}) THEN 'in progress'
    WHEN ${isCovered} IS NOT TRUE AND ${covered} < ${length} THEN 'not proven whole'
    -- One scan for the usual case: any value in aside makes the sum too large.
    WHEN ${ticks("count(*) + 1000000 * count(t.aside)")} = ${expected} THEN NULL
    WHEN ${ticks(`count(${fromAside("t", "quality")})`)} > 0 THEN 'doubtful ticks'
    WHEN ${ticks("count(*)")} < ${expected} THEN 'fewer ticks than expected' END AS TEXT) AS quality
FROM series s
  LEFT JOIN wanted_ranges w ON w.stream = 'index_ticks' AND w.series = s.series AND w.from_ts = (
    SELECT max(n.from_ts) FROM wanted_ranges n WHERE n.stream = 'index_ticks' AND n.series = s.series)
  CROSS JOIN json_each(${daysWithTicks("s.series")}) d CROSS JOIN shifts o
  CROSS JOIN index_tick_rows a
  LEFT JOIN index_tick_rows z ON z.series = s.series AND z.ts = ${ticks("t.ts", " ORDER BY t.ts DESC LIMIT 1")}
  LEFT JOIN index_tick_rows h ON h.series = s.series AND h.ts = ${extreme("max")}
  LEFT JOIN index_tick_rows l ON l.series = s.series AND l.ts = ${extreme("min")}
  LEFT JOIN settled_ranges g ON g.stream = 'index_ticks' AND g.series = s.series AND g.from_ts = (
    SELECT max(p.from_ts) FROM settled_ranges p WHERE p.stream = 'index_ticks' AND p.series = s.series AND p.from_ts <= ${start})
WHERE a.series = s.series AND a.ts = ${ticks("t.ts", " ORDER BY t.ts LIMIT 1")}`;
}

export const barViews: Record<string, string> = Object.fromEntries(
  Object.entries(barWidths).map(([name, length]) => [`bars_${name}`, barsSql(length)]),
);
