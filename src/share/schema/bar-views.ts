import { barWidths, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { type BarTick, barColumns, barDecimals, tickOrders } from "../../warehouse/views/bar-views.ts";
import { returnsView } from "../../warehouse/views/research-views.ts";
import { postgresDialect } from "./postgres-dialect.ts";

/*
 * The bars of the warehouse. Those of an hour and longer are kept in `kept_bars`: each that has ticks has a row, which is
 * stale (`n_ticks` is null) from the transaction that changes one of its ticks until the forwarder computes it anew. A view
 * computes stale bars, and all shorter ones, from the ticks.
 */

const { decimals, details, presentTs } = postgresDialect;

/** The lengths of the bars that are kept. Each divides a day. */
export const keptLengths: readonly Micros[] = [barWidths["1h"], barWidths["4h"], barWidths["1d"]];

const figures = [...barDecimals.flatMap(({ name }) => [name, `${name}_exact`]), "n_ticks", "n_doubtful"];

const lengths = `(VALUES ${keptLengths.map((length) => `(${length})`).join(", ")}) l(length)`;

/** Enters every kept bar of a month's table as stale, from the first tick of a series to its last. */
export function enterStaleSql(month: string): string {
  const end = (which: "min" | "max") =>
    `(SELECT ${which}(r.ts) FROM mds.${month} r WHERE r.series = d.series)`;
  return `INSERT INTO mds.kept_bars (series, length, ts) SELECT x.series, l.length, g.ts
    FROM (SELECT d.series, ${end("min")} AS first, ${end("max")} AS last FROM mds.series d) x CROSS JOIN ${lengths}
    CROSS JOIN LATERAL generate_series(x.first / l.length * l.length, x.last, l.length) g(ts) ON CONFLICT DO NOTHING`;
}

/** Where someone has dropped the kept bars, and not the ticks. Impossible years have few ticks, far apart. */
export const enterAllStaleSql = `DO $$ DECLARE t text; BEGIN
    IF EXISTS (SELECT FROM mds.kept_bars) THEN RETURN; END IF;
    FOR t IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'mds.index_tick_rows'::regclass LOOP
      IF t ~ '_[0-9]{2}$' THEN EXECUTE replace($sql$${enterStaleSql("MONTH")}$sql$, 'MONTH', t);
      ELSE EXECUTE format('INSERT INTO mds.kept_bars (series, length, ts) SELECT DISTINCT r.series, l.length, r.ts / l.length * l.length
        FROM mds.%I r CROSS JOIN ${lengths}', t);
      END IF;
    END LOOP; END $$`;

/** One bar of series `s` that begins at `start`, computed from its ticks; no row if none has a price. */
function barOfTicks(start: string, length: Micros): string {
  const pricedTicks = (what: string, rest = "") => `(SELECT ${what} FROM mds.index_tick_rows t
      WHERE t.series = s.series AND t.ts >= ${start} AND t.ts < ${start} + ${length} AND t.price IS NOT NULL${rest})`;
  // LIMIT 1 instead of a join on the timestamp: without statistics a planner joins by the series alone.
  const oneTick = (tick: BarTick) =>
    `${pricedTicks("t.price, t.volume, t.details", ` ORDER BY ${tickOrders[tick]("t.price", "t.ts")} LIMIT 1`)} ${tick}`;
  return `(SELECT ${start} AS ts, ${barDecimals.map(({ name, column, tick }) => decimals(tick, column, name)).join(", ")}, x.n_ticks, x.n_doubtful
  FROM ${oneTick("first")}
    CROSS JOIN LATERAL ${oneTick("last")}
    CROSS JOIN LATERAL ${oneTick("highest")}
    CROSS JOIN LATERAL ${oneTick("lowest")}
    CROSS JOIN LATERAL ${pricedTicks(`count(*)::integer AS n_ticks, count(${details("t", "quality")})::integer AS n_doubtful`)} x)`;
}

/** Every start of a bar, as `d.day + o.shift`. The days with ticks are found by one seek each. */
const startsSql = (length: Micros) => {
  const next = (after: string) => `(SELECT t.ts FROM mds.index_tick_rows t WHERE t.series = s.series${after}
        ORDER BY t.ts LIMIT 1) / ${MICROS_PER_DAY} * ${MICROS_PER_DAY}`;
  return `(WITH RECURSIVE days(day) AS (
      SELECT ${next("")} UNION ALL
      SELECT ${next(` AND t.ts >= days.day + ${MICROS_PER_DAY}`)} FROM days WHERE days.day IS NOT NULL
    ) SELECT day FROM days WHERE day IS NOT NULL) d
  CROSS JOIN generate_series(0, ${MICROS_PER_DAY - length}, ${length}) o(shift)`;
};

/**
 * The figures of every bar of series `s`, or of one that begins at `start`. A view enumerates them, so that bars that a query
 * filters out read no ticks.
 */
function figuresSql(length: Micros, start?: string): string {
  if (!keptLengths.includes(length))
    return `(SELECT f.* FROM ${startsSql(length)} CROSS JOIN LATERAL ${barOfTicks("(d.day + o.shift)", length)} f)`;
  const kept = (what: string, isStale: boolean, more = "") =>
    `SELECT ${what} FROM mds.kept_bars k${more} WHERE k.series = s.series AND k.length = ${length} AND k.n_ticks IS ${isStale ? "" : "NOT "}NULL${start === undefined ? "" : ` AND k.ts = ${start}`}`;
  return `(${kept(["ts", ...figures].map((name) => `k.${name}`).join(", "), false)}
    UNION ALL ${kept("f.*", true, ` CROSS JOIN LATERAL ${barOfTicks("k.ts", length)} f`)})`;
}

const ofSeries = (alias: string) => `${alias}.stream = 'index_ticks' AND ${alias}.series = s.series`;

/** Each series `s`, with what is the same for all of its bars: OFFSET 0 lets PostgreSQL compute that once. */
const seriesSql = (length: Micros) => `mds.series s CROSS JOIN LATERAL (SELECT ${length} / coalesce(
      (SELECT w.period FROM mds.targets w WHERE ${ofSeries("w")} ORDER BY w.from_ts DESC LIMIT 1), 30000000) AS expected_ticks,
    (SELECT coalesce(range_agg(int8range(r.from_ts, r.to_ts)), '{}') FROM mds.settled_ranges r
      WHERE ${ofSeries("r")} AND r.proof <> 'lost') AS covered OFFSET 0) e`;

/** The bars of series `s` with the columns of the views, or the one that begins at `start`. */
function barsOfSeries(length: Micros, start?: string): string {
  const columns = barColumns(postgresDialect, {
    start: "f.ts",
    length: String(length),
    decimals: barDecimals.map(({ name }) => `f.${name}, f.${name}_exact`).join(", "),
    count: "f.n_ticks",
    expected: "e.expected_ticks",
    covered: "c.micros",
    isDoubtful: "f.n_doubtful > 0",
    // In a subquery it is computed once.
    presentTs: `(SELECT ${presentTs})`,
  });
  const time = `int8range(f.ts, f.ts + ${length})`;
  return `LATERAL (SELECT ${columns} FROM ${figuresSql(length, start)} f
    CROSS JOIN LATERAL (SELECT CASE WHEN e.covered @> ${time} THEN ${length} ELSE (SELECT coalesce(sum(upper(x) - lower(x)), 0)::bigint
      FROM unnest(e.covered * int8multirange(${time})) x) END AS micros OFFSET 0) c)`;
}

/** Computes the bar before too, instead of reading the view: an upgrade can replace the view. */
function returnsOfBars(): string {
  const length = barWidths["1h"];
  return returnsView(postgresDialect, {
    names: "s",
    before: (sql) => `CASE WHEN p.ts IS NOT NULL THEN ${sql} END`,
    digitsBefore: "p.close_exact",
    from: `FROM ${seriesSql(length)} CROSS JOIN ${barsOfSeries(length)} b
  LEFT JOIN ${barsOfSeries(length, `b.ts - ${length}`)} p ON true`,
  });
}

/** `bars_1m` … `bars_1d` and `returns_1h`. */
export const sharedBarViews: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    Object.entries(barWidths).map(([name, length]) => [
      `bars_${name}`,
      `SELECT s.index_type, s.index_id, s.name, b.* FROM ${seriesSql(length)} CROSS JOIN ${barsOfSeries(length)} b`,
    ]),
  ),
  returns_1h: returnsOfBars(),
};
