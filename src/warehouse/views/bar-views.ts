import { barLengths, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { digitsOf, fromAside, presentTs, timeText } from "./sql-fragments.ts";

/**
 * How many microseconds of [from, until) the ledger proves as rows or empty. The range that holds `from` is found by one
 * seek; those after it follow in the index.
 */
export const provenMicros = (stream: string, series: string, from: string, until: string) =>
  `coalesce((SELECT sum(min(g.to_ts, ${until}) - max(g.from_ts, ${from})) FROM settled_ranges g
    WHERE g.stream = '${stream}' AND g.series = ${series} AND g.from_ts < ${until} AND g.to_ts > ${from} AND g.proof <> 'lost'
      AND g.from_ts >= coalesce((SELECT p.from_ts FROM settled_ranges p WHERE p.stream = '${stream}'
        AND p.series = ${series} AND p.from_ts <= ${from} ORDER BY p.from_ts DESC LIMIT 1), ${from})), 0)`;

/** The days on which a series has ticks, as a JSON array of their midnights: one seek a day. */
const daysOf = (series: string) => `(WITH RECURSIVE d(day) AS (
    SELECT (SELECT t.ts FROM index_tick_rows t WHERE t.series = ${series} ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY}
    UNION ALL
    SELECT (SELECT t.ts FROM index_tick_rows t WHERE t.series = ${series} AND t.ts >= (d.day + 1) * ${MICROS_PER_DAY}
      ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY} FROM d WHERE d.day IS NOT NULL
  ) SELECT json_group_array(d.day * ${MICROS_PER_DAY}) FROM d WHERE d.day IS NOT NULL)`;

const price = (row: string, column: string) =>
  `${row}.price AS ${column}, coalesce(${fromAside(row, "price")}, ${digitsOf(`${row}.price`)}) AS ${column}_exact`;

/**
 * Bars from ticks, without GROUP BY: it would sort every tick of the series, and a condition on its result cannot be
 * pushed down to the ticks. Instead the grid of bars is walked (the days that have ticks, times the bars of a day), and
 * each bar finds its first, highest, lowest and last tick by their primary key. So only bars that the conditions leave
 * over look at ticks at all, and a part that is not asked for costs nothing: SQLite leaves out a LEFT JOIN on a whole
 * primary key that nothing is read from.
 *
 * The refresh period is half of the settle delay of what is wanted (see `settleDelay` in sync): so it is known also
 * to those who have no settings at hand. 30 seconds where a series was never selected.
 */
function bars(length: Micros): string {
  const start = "(d.value + o.shift)";
  const end = `(d.value + o.shift + ${length})`;
  const inBar = `t.series = s.series AND t.ts >= ${start} AND t.ts < ${end}`;
  const priced = `${inBar} AND t.price IS NOT NULL`;
  const ticks = (what: string, order = "") =>
    `(SELECT ${what} FROM index_tick_rows t WHERE ${priced}${order})`;
  // The bare column is of the row that has the extreme; what has no price is none.
  const extreme = (which: "max" | "min") =>
    `(SELECT x.ts FROM (SELECT ${which}(t.price), t.ts FROM index_tick_rows t WHERE ${inBar}) x)`;
  const expected = `(${length} / coalesce(w.settle_delay / 2, 30000000))`;
  const isProven = `(g.to_ts >= ${end} AND g.proof <> 'lost')`;
  const proven = provenMicros("index_ticks", "s.series", start, end);
  return `WITH RECURSIVE shifts(shift) AS (
  SELECT 0 UNION ALL SELECT shift + ${length} FROM shifts WHERE shift + ${length} < ${MICROS_PER_DAY}
)
SELECT s.index_type, s.index_id, s.name, ${start} AS ts, ${timeText(start)} AS time,
  ${price("a", "open")}, ${price("h", "high")}, ${price("l", "low")}, ${price("z", "close")},
  z.volume AS volume_24h, coalesce(${fromAside("z", "volume")}, ${digitsOf("z.volume")}) AS volume_24h_exact,
  ${ticks("count(*)")} AS n_ticks, ${expected} AS expected_ticks,
  CASE WHEN ${isProven} THEN 1.0 ELSE ${proven} * 1.0 / ${length} END AS coverage,
  CASE WHEN ${isProven} THEN 1 ELSE ${proven} = ${length} END AS is_complete,
  CASE WHEN ${end} > (SELECT ${presentTs}) THEN 'in progress'
    WHEN ${isProven} IS NOT 1 AND ${proven} < ${length} THEN 'not proven whole'
    -- In one look, whether all is as it should be: anything aside makes the sum too large.
    WHEN ${ticks("count(*) + 1000000 * count(t.aside)")} = ${expected} THEN NULL
    WHEN ${ticks(`count(${fromAside("t", "quality")})`)} > 0 THEN 'doubtful ticks'
    WHEN ${ticks("count(*)")} < ${expected} THEN 'fewer ticks than expected' END AS quality
FROM series s
  LEFT JOIN wanted_ranges w ON w.stream = 'index_ticks' AND w.series = s.series AND w.from_ts = (
    SELECT max(n.from_ts) FROM wanted_ranges n WHERE n.stream = 'index_ticks' AND n.series = s.series)
  CROSS JOIN json_each(${daysOf("s.series")}) d CROSS JOIN shifts o
  CROSS JOIN index_tick_rows a ON a.series = s.series AND a.ts = ${ticks("t.ts", " ORDER BY t.ts LIMIT 1")}
  LEFT JOIN index_tick_rows z ON z.series = s.series AND z.ts = ${ticks("t.ts", " ORDER BY t.ts DESC LIMIT 1")}
  LEFT JOIN index_tick_rows h ON h.series = s.series AND h.ts = ${extreme("max")}
  LEFT JOIN index_tick_rows l ON l.series = s.series AND l.ts = ${extreme("min")}
  LEFT JOIN settled_ranges g ON g.stream = 'index_ticks' AND g.series = s.series AND g.from_ts = (
    SELECT max(p.from_ts) FROM settled_ranges p WHERE p.stream = 'index_ticks' AND p.series = s.series AND p.from_ts <= ${start})`;
}

export const barViews: Record<string, string> = Object.fromEntries(
  Object.entries(barLengths).map(([name, length]) => [`bars_${name}`, bars(length)]),
);
