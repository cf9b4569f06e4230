import { barWidths, MICROS_PER_DAY, type Micros } from "../../../src/model/time.ts";
import { postgresDialect } from "../../../src/share/schema/postgres-dialect.ts";
import { type BarTick, barColumns, barDecimals, tickOrders } from "../../../src/warehouse/views/bar-views.ts";
import { returnsView } from "../../../src/warehouse/views/research-views.ts";

/* The views of version 3, which kept no bars: what the views of today must answer, and what an upgrade finds. */

const { decimals, details, presentTs } = postgresDialect;

/** One bar of series `s` that begins at `start`, as a subquery; no row if it has no tick with a price. */
function barAt(start: string, length: Micros): string {
  const end = `(${start} + ${length})`;
  const pricedTicks = (what: string, rest = "") => `(SELECT ${what} FROM mds.index_tick_rows t
      WHERE t.series = s.series AND t.ts >= ${start} AND t.ts < ${end} AND t.price IS NOT NULL${rest})`;
  // LIMIT 1 instead of a join on the timestamp: without statistics a planner joins by the series alone.
  const oneTick = (tick: BarTick) =>
    `${pricedTicks("t.price, t.volume, t.details", ` ORDER BY ${tickOrders[tick]("t.price", "t.ts")} LIMIT 1`)} ${tick}`;
  const ofSeries = (alias: string) => `${alias}.stream = 'index_ticks' AND ${alias}.series = s.series`;
  const covered = `(SELECT coalesce(sum(least(g.to_ts, ${end}) - greatest(g.from_ts, ${start})), 0)::bigint AS micros
    FROM mds.settled_ranges g WHERE ${ofSeries("g")} AND g.from_ts < ${end} AND g.to_ts > ${start} AND g.proof <> 'lost'
      AND g.from_ts >= coalesce((SELECT p.from_ts FROM mds.settled_ranges p WHERE ${ofSeries("p")} AND p.from_ts <= ${start}
        ORDER BY p.from_ts DESC LIMIT 1), ${start}))`;
  const columns = barColumns(postgresDialect, {
    start,
    length: String(length),
    isDaily: length === MICROS_PER_DAY,
    decimals: barDecimals.map(({ name, column, tick }) => decimals(tick, column, name)).join(", "),
    count: "x.n_ticks",
    expected: "e.expected_ticks",
    covered: "c.micros",
    isDoubtful: "x.doubtful > 0",
    presentTs,
  });
  return `(SELECT ${columns}
  FROM ${oneTick("first")}
    CROSS JOIN LATERAL ${oneTick("last")}
    CROSS JOIN LATERAL ${oneTick("highest")}
    CROSS JOIN LATERAL ${oneTick("lowest")}
    CROSS JOIN LATERAL ${pricedTicks(`count(*) AS n_ticks, count(${details("t", "quality")}) AS doubtful`)} x
    CROSS JOIN LATERAL ${covered} c
    CROSS JOIN LATERAL (SELECT ${length} / coalesce((SELECT w.period FROM mds.targets w WHERE ${ofSeries("w")}
      ORDER BY w.from_ts DESC LIMIT 1), 30000000) AS expected_ticks) e)`;
}

/** Every start of a bar, as `d.day + o.shift`. The days with ticks are found by one seek each. */
const startsSql = (length: Micros) => {
  const next = (after: string) => `(SELECT t.ts FROM mds.index_tick_rows t WHERE t.series = s.series${after}
        ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY} * ${MICROS_PER_DAY}`;
  return `CROSS JOIN LATERAL (WITH RECURSIVE days(day) AS (
      SELECT ${next("")} UNION ALL
      SELECT ${next(` AND t.ts >= days.day + ${MICROS_PER_DAY}`)} FROM days WHERE days.day IS NOT NULL
    ) SELECT day FROM days WHERE day IS NOT NULL) d
  CROSS JOIN generate_series(0, ${MICROS_PER_DAY - length}, ${length}) o(shift)`;
};
const START = "(d.day + o.shift)";

const seriesNames = "s.index_type, s.index_id, s.name";

function barsView(length: Micros): string {
  return `SELECT ${seriesNames}, b.*
FROM mds.series s ${startsSql(length)}
  CROSS JOIN LATERAL ${barAt(START, length)} b`;
}

/** Computes the bar before too, instead of reading the view: an upgrade can replace the view. */
function returnsOfBars(): string {
  const length = barWidths["1h"];
  return returnsView(postgresDialect, {
    names: "s",
    before: (sql) => `CASE WHEN p.ts IS NOT NULL THEN ${sql} END`,
    digitsBefore: "p.close_exact",
    from: `FROM mds.series s ${startsSql(length)}
  CROSS JOIN LATERAL ${barAt(START, length)} b
  LEFT JOIN LATERAL ${barAt(`(${START} - ${length})`, length)} p ON true`,
  });
}

/** `bars_1m` … `bars_1d` and `returns_1h`. */
export const viewsOfVersion3: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(barWidths).map(([name, length]) => [`bars_${name}`, barsView(length)]),
  ),
  returns_1h: returnsOfBars(),
};

/** SQL that replaces the views of today. */
export const barsOfVersion3 = Object.entries(viewsOfVersion3)
  .map(([name, sql]) => `CREATE OR REPLACE VIEW mds.${name} AS ${sql}`)
  .join(";\n");

/** SQL that turns a schema of today into one of version 3. */
export const toVersion3 = [
  barsOfVersion3,
  "DROP TABLE mds.kept_bars",
  "UPDATE mds.schema_version SET version = 3, digest = 'of version 3'",
].join(";\n");
