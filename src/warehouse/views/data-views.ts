import { isDaily, keyColumns, type RowStream, rowStreams, streamTable } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../model/time.ts";
import { isParted, keyedRows, newestRow, partedStreams } from "../tables/row-parts.ts";
import { storedColumns } from "../tables/row-tables.ts";
import { isCovered, refreshPeriod, type SqlDialect } from "./sql-dialect.ts";
import { presentTs, sqliteDialect } from "./sqlite-dialect.ts";
import { repeatsPrice } from "./stale-price.ts";

/** A series whose newest row is this many refresh periods older than the newest of its stream is not live. */
export const MAX_LIVE_PERIODS = 10;

/** A row from further in the future never counts as the latest: the longest period of a stream. */
export const MAX_AHEAD_MICROS = 300 * MICROS_PER_SECOND;

/** The columns that a view computes, from `s`, the dictionary of keys, and `r`, the row. */
function computedColumns(dialect: SqlDialect): Readonly<Record<string, string>> {
  const { flag, real, seconds, moment, day, presentTs } = dialect;
  const dayEnd = `r.ts + ${MICROS_PER_DAY}`;
  const tickerPeriod = refreshPeriod(dialect, "exchange_ticks");
  return {
    time: moment("r.ts"),
    day: day("r.ts"),
    is_settled: flag(isCovered(dialect, "index_ticks", "r.series", "r.ts")),
    is_final: flag(
      `${dayEnd} <= ${presentTs} AND ${isCovered(dialect, "ohlcv", "r.series", "r.ts", dayEnd)}`,
    ),
    unmoved_seconds: real(seconds("r.ts - r.last_moved")),
    is_stale: flag(
      `CASE WHEN r.last_moved IS NULL THEN ${repeatsPrice(dialect, "r", tickerPeriod)} ELSE r.ts - r.last_moved > ${tickerPeriod} END`,
    ),
  };
}

export function viewColumns(dialect: SqlDialect, stream: RowStream, decimals: SqlDialect["decimals"]) {
  const computed = computedColumns(dialect);
  const { details, text, moment } = dialect;
  return streamTable[stream].columns.map(({ name, type, source, from }) => {
    const as = (sql: string) => (sql.endsWith(`.${name}`) ? sql : `${sql} AS ${name}`);
    if (source === "label") return as(`s.${from}`);
    if (source === "details") return as(text(details("r", name)));
    if (source === "computed") {
      const sql = computed[name];
      if (sql === undefined) throw new Error(`no view computes ${name}`);
      return as(sql);
    }
    if (type === "decimal") return decimals("r", name);
    if (type === "timestamp") return as(moment(`r.${name}`));
    if (type === "source") return as(text(`CASE r.${name} WHEN 0 THEN 'rest' ELSE 'live' END`));
    return `r.${name}`;
  });
}

/**
 * Each view reads `dictionary CROSS JOIN rows`: CROSS makes SQLite walk the (small) dictionary first and seek the rows
 * by their primary key, so that a range of one series is one range scan, and a cross-section one seek per series.
 * Without CROSS and without statistics the planner may scan all rows instead. The condition is a WHERE: DuckDB's parser
 * does not accept CROSS JOIN … ON.
 */
function selectRows({ table }: SqlDialect, stream: RowStream, columns: readonly string[]): string {
  const { table: rows, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  return `SELECT ${columns.join(",\n  ")}
FROM ${table(dictionary)} s CROSS JOIN ${table(rows)} r WHERE r.${key} = s.${key}`;
}

/** Read by the million: their exact digits take more text than those of the other streams, and half the time. */
const largeStreams: readonly RowStream[] = ["index_ticks", "exchange_ticks"];

function allRows(dialect: SqlDialect, stream: RowStream): string {
  const decimals = largeStreams.includes(stream) ? dialect.decimals : dialect.fewDecimals;
  return selectRows(dialect, stream, viewColumns(dialect, stream, decimals));
}

/** The first and the last tick of each series: two seeks, where min and max of a view would read every tick. */
const spans = `SELECT s.index_type, s.index_id, s.name, a.ts AS first_ts, ${sqliteDialect.moment("a.ts")} AS first_time,
  z.ts AS last_ts, ${sqliteDialect.moment("z.ts")} AS last_time
FROM series s CROSS JOIN index_tick_rows a CROSS JOIN index_tick_rows z
WHERE a.series = s.series AND a.ts = (SELECT min(n.ts) FROM index_tick_rows n WHERE n.series = s.series)
  AND z.series = s.series AND z.ts = (SELECT max(n.ts) FROM index_tick_rows n WHERE n.series = s.series)`;

const isPresent = `n.ts < ${presentTs} + ${MAX_AHEAD_MICROS}`;

/** The newest timestamp of a key that is not in the future. */
export const latestTs = (stream: RowStream, key: string) => newestRow(stream, key, isPresent);

/**
 * What a `latest_…` view has beside the columns of its stream. Whether a row is live is judged by the newest row of its stream, not by
 * now: a warehouse that is read offline still shows what was alive when it was last filled. `expirationTs`: of the contract, if the
 * stream has contracts.
 */
export function liveColumns(
  dialect: SqlDialect,
  stream: RowStream,
  newestOfStream: string,
  {
    ts = "r.ts",
    now = dialect.presentTs,
    period = refreshPeriod(dialect, stream),
    expirationTs = "s.expiration",
  } = {},
): string {
  const { yes, flag, real, seconds } = dialect;
  const isRecent = `${ts} >= ${newestOfStream} - ${MAX_LIVE_PERIODS} * ${period}`;
  const hasContracts = streamTable[stream].dictionary === "contracts";
  const isUnexpired = hasContracts ? ` AND coalesce(${expirationTs} > ${now}, ${yes})` : "";
  return `${real(seconds(`${now} - ${ts}`))} AS age_seconds, ${flag(`${isRecent}${isUnexpired}`)} AS is_live`;
}

/** The stream's view would look for the newest row in every part. */
function latestRows(stream: RowStream): string {
  const { dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  // It does not depend on the row, so SQLite computes it once per query.
  const newestOfStream = `(SELECT max(${newestRow(stream, `k.${key}`, isPresent)}) FROM ${dictionary} k)`;
  const columns = [
    ...viewColumns(sqliteDialect, stream, sqliteDialect.fewDecimals),
    liveColumns(sqliteDialect, stream, newestOfStream),
  ];
  const [place, newest] = isParted(stream) ? ["(r.part, r.ts)", "n.part, n.ts"] : ["r.ts", "n.ts"];
  return `${selectRows(sqliteDialect, stream, columns)} AND ${place} = ${newestRow(stream, `s.${key}`, isPresent, newest)}`;
}

/** Streams whose rows are ticks: they have `latest_…` views. */
export const tickStreams = rowStreams.filter((stream) => !isDaily(stream));

/** The rows of every stream, by its name. */
export function streamViews(dialect: SqlDialect): Record<string, string> {
  return Object.fromEntries(rowStreams.map((stream) => [stream, allRows(dialect, stream)]));
}

export const rowViews: Record<string, string> = {
  ...Object.fromEntries(
    partedStreams.map((stream) => [streamTable[stream].table, keyedRows(stream, storedColumns(stream))]),
  ),
  ...streamViews(sqliteDialect),
  ...Object.fromEntries([
    ...tickStreams.map((stream) => [`latest_${stream}`, latestRows(stream)]),
    ["index_tick_spans", spans],
  ]),
};
