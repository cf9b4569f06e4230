import { createRowIds } from "../../api-server/record-ids.ts";
import type { HistorySeries, SeriesFilter } from "../../api-server/source.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import { type HistoryStream, isDaily, streamDefinition } from "../../model/streams.ts";
import { formatDay, formatShort, type Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { parseRowDetails, type RowTable, rowTables } from "../../warehouse/tables/row-tables.ts";
import { MAX_AHEAD_MICROS } from "../../warehouse/views/data-views.ts";
import { conditionsOf } from "./latest-rows.ts";
import { readSegments } from "./page-coverage.ts";
import { decimalProperty, extraProperties } from "./record-text.ts";

/** An index, and its key in the warehouse. */
export interface ServedSeries {
  readonly series: number;
  readonly indexType: string;
  readonly indexId: string;
  readonly name: string;
}

type Cell = number | string | null;
/** The timestamp, then the columns of the table. */
type HistoryRow = readonly [ts: Micros, ...values: Cell[]];

/** The indices that have a key. */
export function listServedSeries(
  connection: Connection,
  { indexType, indexId }: SeriesFilter,
): readonly ServedSeries[] {
  const { condition, values } = conditionsOf([
    [indexType === undefined ? "index_type <> ?" : "index_type = ?", indexType ?? ""],
    ["index_id = ?", indexId],
  ]);
  return connection.rows<ServedSeries>(
    `SELECT series, index_type AS indexType, index_id AS indexId, name FROM series
      WHERE ${condition} ORDER BY series`,
    values,
  );
}

/** The series that a request selects. An asset or market of which nothing was synced is one open range. */
export function findHistorySeries(
  connection: Connection,
  stream: HistoryStream,
  filter: SeriesFilter,
  now: Micros,
): readonly HistorySeries[] {
  const known = listServedSeries(connection, filter);
  const { indexType, indexId } = filter;
  const [unsynced] =
    indexId === undefined || known.length > 0
      ? []
      : indexTypes.filter((type) => (indexType ?? type) === type && isListed(connection, type, indexId));
  const selected = unsynced && indexId ? [{ series: -1, indexType: unsynced, indexId, name: "" }] : known;
  const until = now + MAX_AHEAD_MICROS;
  let newest: ReadonlyMap<number, HistoryRow> | undefined;
  // One statement per series would take three times as long.
  const readNewest = (key: number) => {
    newest ??= new Map(
      connection
        .tuples<[number, ...HistoryRow]>(tables[stream].latestSql, [until, indexType ?? null])
        .map(([each, ...row]) => [each, row]),
    );
    return newest.get(key);
  };
  const isOne = selected.length === 1;
  return selected.map((series) =>
    openSeries(connection, stream, series, now, isOne ? undefined : readNewest),
  );
}

function isListed(connection: Connection, type: IndexType, id: string): boolean {
  if (type === "LX") return false;
  const table = type === "GWA" ? "assets" : "market_rows";
  return connection.findRow(`SELECT 1 FROM ${table} WHERE id = ?`, [id]) !== undefined;
}

const tables = { index_ticks: deriveTable("index_ticks"), ohlcv: deriveTable("ohlcv") };

function deriveTable(stream: HistoryStream) {
  const { table, columns, decimals }: RowTable<never> = rowTables[stream];
  const cells = ["ts", ...columns];
  const select = `SELECT ${cells.join(", ")} FROM ${table} WHERE series = ?`;
  return {
    readSql: `${select} AND ts >= ? AND ts < ? ORDER BY ts DESC LIMIT ?`,
    latestSql: `SELECT s.series, ${cells.map((name) => `r.${name}`).join(", ")} FROM series s CROSS JOIN ${table} r
      WHERE r.series = s.series AND r.ts = (SELECT max(n.ts) FROM ${table} n
        WHERE n.series = s.series AND n.ts < ?) AND s.index_type = coalesce(?, s.index_type)`,
    decimals: columns.slice(0, decimals).map((name) => ({ name, field: fieldOf(stream, name) })),
    detailsAt: cells.indexOf("details"),
    /** -1: the warehouse keeps no ids. */
    idAt: cells.indexOf("record_id"),
  };
}

function fieldOf(stream: HistoryStream, name: string): string {
  return streamDefinition(stream).columns.find((column) => column.name === name)?.field ?? name;
}

/** What names the series, as properties: the same text for every record. Only liquid indices have names of their own. */
function seriesProperties({ indexType, indexId, name }: ServedSeries): string {
  const named = indexType === "LX" && name !== indexId ? `,"name":${JSON.stringify(name)}` : "";
  return `"indexId":${JSON.stringify(indexId)},"indexType":${JSON.stringify(indexType)}${named}`;
}

/** Writes the properties of a record, without braces. */
export function historyWriter(stream: HistoryStream, series: ServedSeries): (row: HistoryRow) => string {
  const { decimals, detailsAt, idAt } = tables[stream];
  const ids = createRowIds(series.series, stream, series.indexType, series.indexId);
  const ofSeries = seriesProperties(series);
  return (row) => {
    const [ts] = row;
    const details = parseRowDetails(row[detailsAt] as string | null);
    const ownId = idAt < 0 ? null : (row[idAt] as string | null);
    let text = `"id":${ownId === null ? `"${ids(ts)}"` : JSON.stringify(ownId)},${ofSeries}`;
    for (let at = 0; at < decimals.length; at++) {
      const { field, name } = decimals[at] as (typeof decimals)[0];
      text += decimalProperty(field, row[at + 1] as number | null, details[name]);
    }
    const day = isDaily(stream) && formatDay(ts);
    const moments = day
      ? `"startTimestamp":"${day}T00:00:00.000Z","endTimestamp":"${day}T23:59:59.999Z"`
      : `"timestamp":"${formatShort(ts)}"`;
    return `${text},${moments}${extraProperties(details.extra)}`;
  };
}

function openSeries(
  connection: Connection,
  stream: HistoryStream,
  series: ServedSeries,
  now: Micros,
  readNewest?: (key: number) => HistoryRow | undefined,
): HistorySeries {
  const { series: key, indexType, indexId } = series;
  const { readSql } = tables[stream];
  const write = historyWriter(stream, series);
  const toRecord = (row: HistoryRow) => ({ ts: row[0], text: `{${write(row)}}` });
  const read = (from: Micros, to: Micros, limit: number) =>
    connection.tuples<HistoryRow>(readSql, [key, from, to, limit]).map(toRecord);
  return {
    indexType,
    rank: key,
    read,
    latest() {
      if (!readNewest) return read(0, now + MAX_AHEAD_MICROS, 1)[0];
      const row = readNewest(key);
      return row && toRecord(row);
    },
    cursorAt: (ts) => createRowIds(key, stream, indexType, indexId)(ts),
    // Bars have the service's ids. Of one series few rows are compared; there is no index for a search of all.
    findRecord(id) {
      if (stream !== "ohlcv") return undefined;
      const sql = "SELECT ts FROM daily_bar_rows WHERE series = ? AND record_id = ?";
      return connection.findValue<Micros>(sql, [key, id]);
    },
    segments: (end) => readSegments(connection, { stream, series: key }, end, now),
  };
}
