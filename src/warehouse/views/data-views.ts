import { type Column, isSlim } from "../../model/column.ts";
import { isDaily, keyColumns, type RowStream, rowStreams, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../model/time.ts";
import { daysWithRows } from "./bar-views.ts";
import {
  decimalColumns,
  fewDecimalColumns,
  fromAside,
  isSettled,
  presentTs,
  timeText,
} from "./sql-fragments.ts";
import { repeatsPrice } from "./stale-price.ts";

const dayTs = "CAST(strftime('%s', r.day) AS INTEGER) * 1000000";
const dayEnd = `${dayTs} + 86400000000`;

/** The refresh period of a stream. SQLite reads it once per query. */
export const refreshPeriod = (stream: RowStream) =>
  `(SELECT coalesce(max(w.period), 30000000) FROM wanted_ranges w WHERE w.stream = '${stream}')`;

const tickerPeriod = refreshPeriod("exchange_ticks");

/** A series whose newest row is this many refresh periods older than the newest of its stream is not live. */
export const MAX_LIVE_PERIODS = 10;

/** The columns that a view computes, from `s`, the dictionary of keys, and `r`, the row. */
const computed: Readonly<Record<string, string>> = {
  time: timeText("r.ts"),
  is_settled: isSettled("index_ticks", "r.series", "r.ts"),
  is_final: `${dayEnd} <= ${presentTs} AND ${isSettled("ohlcv", "r.series", dayTs, dayEnd)}`,
  unmoved_seconds: "(r.ts - r.last_moved) / 1000000.0",
  is_stale: `CASE WHEN r.last_moved IS NULL THEN ${repeatsPrice("r", tickerPeriod)} ELSE r.ts - r.last_moved > ${tickerPeriod} END`,
};

/** The timestamps of a daily bar, which is stored by its day. */
const computedFromDay: Readonly<Record<string, string>> = {
  ts: dayTs,
  time: "r.day || 'T00:00:00.000000Z'",
};

function columnSql(
  { name, type, source, from }: Column,
  stream: RowStream,
  decimal = decimalColumns,
): string {
  const as = (sql: string) => (sql.endsWith(`.${name}`) ? sql : `${sql} AS ${name}`);
  if (source === "label") return as(`s.${from}`);
  if (source === "aside") return as(`CAST(${fromAside("r", name)} AS TEXT)`);
  if (source === "computed") {
    const sql = (isDaily(stream) ? computedFromDay[name] : undefined) ?? computed[name];
    if (sql === undefined) throw new Error(`no view computes ${name}`);
    return as(`CAST(${sql} AS ${type.toUpperCase()})`);
  }
  if (type === "decimal") return decimal("r", name);
  if (type === "timestamp") return as(timeText(`r.${name}`));
  if (type === "source") return as(`CAST(CASE r.${name} WHEN 0 THEN 'rest' ELSE 'live' END AS TEXT)`);
  return `r.${name}`;
}

/**
 * Each view reads `dictionary CROSS JOIN rows`: CROSS makes SQLite walk the (small) dictionary first and seek the rows
 * by their primary key, so that a range of one series is one range scan, and a cross-section one seek per series.
 * Without CROSS and without statistics the planner may scan all rows instead. The condition is a WHERE: DuckDB's parser
 * does not accept CROSS JOIN … ON.
 */
function allRows(stream: RowStream, added: readonly string[] = [], decimal = decimalColumns): string {
  const { columns, table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const selected = [...columns.map((column) => columnSql(column, stream, decimal)), ...added].join(",\n  ");
  return `SELECT ${selected}\nFROM ${dictionary} s CROSS JOIN ${table} r WHERE r.${key} = s.${key}`;
}

/** The rows without what must be computed: `time`, exact digits, flags. */
function slimRows(stream: RowStream): string {
  const { columns, table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const selected = columns
    .filter(isSlim)
    .map((column) => (column.type === "decimal" ? `r.${column.name}` : columnSql(column, stream)))
    .join(", ");
  return `SELECT ${selected}\nFROM ${dictionary} s CROSS JOIN ${table} r WHERE r.${key} = s.${key}`;
}

/** The first and the last tick of each series: two seeks, where min and max of a view would read every tick. */
const spans = `SELECT s.index_type, s.index_id, s.name, a.ts AS first_ts, ${timeText("a.ts")} AS first_time,
  z.ts AS last_ts, ${timeText("z.ts")} AS last_time
FROM series s CROSS JOIN index_tick_rows a CROSS JOIN index_tick_rows z
WHERE a.series = s.series AND a.ts = (SELECT min(n.ts) FROM index_tick_rows n WHERE n.series = s.series)
  AND z.series = s.series AND z.ts = (SELECT max(n.ts) FROM index_tick_rows n WHERE n.series = s.series)`;

/**
 * The ticks with the day of each. A condition on `day` is checked once per day of a series, before its ticks are read: a range of
 * days costs what the same range of the key costs, in any SQLite tool.
 */
const ticksByDay = `SELECT CAST(strftime('%Y-%m-%d', d.value / ${MICROS_PER_SECOND}, 'unixepoch') AS TEXT) AS day,
  ${streamTable.index_ticks.columns.map((column) => columnSql(column, "index_ticks")).join(",\n  ")}
FROM series s CROSS JOIN json_each(${daysWithRows("index_tick_rows", "s.series")}) d CROSS JOIN index_tick_rows r
WHERE r.series = s.series AND r.ts >= d.value AND r.ts < d.value + ${MICROS_PER_DAY}`;

/** A row from further in the future never counts as the latest: the longest period of a stream. */
export const MAX_AHEAD_MICROS = 300 * MICROS_PER_SECOND;

/** The newest timestamp of `entry` of the dictionary: a seek. */
export function newestTs(stream: RowStream, entry: string): string {
  const { table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  return `(SELECT max(n.ts) FROM ${table} n WHERE n.${key} = ${entry}.${key} AND n.ts < ${presentTs} + ${MAX_AHEAD_MICROS})`;
}

/**
 * Whether a row is live is judged by the newest row of its stream, not by now: a warehouse that is read offline still
 * tells what was alive when it was last filled.
 */
function latestRows(stream: RowStream): string {
  const { dictionary } = streamTable[stream];
  // It does not depend on the row, so SQLite computes it once per query.
  const newestOfStream = `(SELECT max(${newestTs(stream, "k")}) FROM ${dictionary} k)`;
  const isRecent = `r.ts >= ${newestOfStream} - ${MAX_LIVE_PERIODS} * ${refreshPeriod(stream)}`;
  const isUnexpired = dictionary === "contracts" ? ` AND coalesce(s.expiration > ${presentTs}, 1)` : "";
  const added = [
    `CAST((${presentTs} - r.ts) / 1000000.0 AS REAL) AS age_seconds`,
    `CAST(${isRecent}${isUnexpired} AS INTEGER) AS is_live`,
  ];
  return `${allRows(stream, added, fewDecimalColumns)}
  AND r.ts = ${newestTs(stream, "s")}`;
}

/** Streams whose rows are ticks: the stream table has a summary for their `latest_…` view. */
const tickStreams = rowStreams.filter((stream) => streamTable[stream].latestSummary !== null);

export const rowViews: Record<string, string> = Object.fromEntries([
  ...rowStreams.map((stream) => [stream, allRows(stream)]),
  ...tickStreams.map((stream) => [`latest_${stream}`, latestRows(stream)]),
  ...tickStreams.map((stream) => [`${stream}_slim`, slimRows(stream)]),
  ["index_tick_spans", spans],
  ["index_ticks_by_day", ticksByDay],
]);
