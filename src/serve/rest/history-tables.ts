import type { HistoryStream } from "../../model/streams.ts";
import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { type RowTable, rowTables } from "../../warehouse/tables/row-tables.ts";
import { type CursorPosition, RowIds } from "./record-ids.ts";
import { decimalProperty, extraProperties, parseDetails, timestampText } from "./record-text.ts";
import type { SeriesFilter, ServedSeries } from "./series-directory.ts";

type Cell = number | string | null;
/** The stored time, then the columns of the table. */
export type HistoryRow = readonly [time: number | string, ...values: Cell[]];

interface ReadOptions {
  readonly from: Micros;
  /** Exclusive. */
  readonly to: Micros;
  readonly limit: number;
}

/** How the rows of one history stream are read, newest first, and written as records. */
export interface HistoryTable {
  readonly stream: HistoryStream;
  /** The name of the entity in error bodies. */
  readonly object: string;
  readonly scope: string;
  /** The distance of two neighbouring timestamps, at least. */
  readonly step: Micros;
  tsOf(row: HistoryRow): Micros;
  ids(series: ServedSeries): RowIds;
  writer(series: ServedSeries): (row: HistoryRow) => string;
  read(connection: Connection, series: number, options: ReadOptions): HistoryRow[];
  /** The newest record of each series before `until`: one from further in the future is never the latest. */
  readLatest(connection: Connection, filter: SeriesFilter, until: Micros): readonly LatestRecord[];
  hasRowsBelow(connection: Connection, series: number, ts: Micros): boolean;
  /** The position of the record with an id that the service gave it, of any form; of one series, or of all. */
  findByRecordId(
    connection: Connection,
    id: string,
    series?: number,
  ): Pick<CursorPosition, "key" | "ts"> | undefined;
}

interface LatestRecord {
  readonly series: ServedSeries;
  readonly row: HistoryRow;
}

type LatestCells = readonly [series: number, indexType: string, indexId: string, name: string, ...HistoryRow];

/** Separate statements: with an optional condition SQLite would scan instead of seek. */
function seriesCondition({ indexType, indexId }: SeriesFilter): { sql: string; values: readonly string[] } {
  const conditions = [
    ...(indexType === undefined ? ["s.index_type <> ''"] : ["s.index_type = ?"]),
    ...(indexId === undefined ? [] : ["s.index_id = ?"]),
  ];
  return {
    sql: conditions.join(" AND "),
    values: [indexType, indexId].filter((value) => value !== undefined),
  };
}

function deriveTable(stream: HistoryStream) {
  const { table, timeColumn, columns, storedTime, tsOfStored }: RowTable<never> = rowTables[stream];
  const select = `SELECT ${[timeColumn, ...columns].join(", ")} FROM ${table} WHERE series = ?`;
  const readSql = `${select} AND ${timeColumn} >= ? AND ${timeColumn} < ? ORDER BY ${timeColumn} DESC LIMIT ?`;
  const belowSql = `SELECT 1 FROM ${table} WHERE series = ? AND ${timeColumn} < ? LIMIT 1`;
  return {
    stream,
    tsOf: (row: HistoryRow) => tsOfStored(row[0]),
    ids: ({ series = 0, indexType, indexId }: ServedSeries) => new RowIds(stream, series, indexType, indexId),
    read: (connection: Connection, series: number, { from, to, limit }: ReadOptions) =>
      connection.tuples<HistoryRow>(readSql, [series, storedTime(from), storedTime(to), limit]),
    readLatest(connection: Connection, filter: SeriesFilter, until: Micros): LatestRecord[] {
      const { sql, values } = seriesCondition(filter);
      const cells = [timeColumn, ...columns].map((name) => `r.${name}`).join(", ");
      return connection
        .tuples<LatestCells>(
          `SELECT s.series, s.index_type, s.index_id, s.name, ${cells} FROM series s CROSS JOIN ${table} r
          WHERE ${sql} AND r.series = s.series AND r.${timeColumn} =
            (SELECT max(n.${timeColumn}) FROM ${table} n WHERE n.series = s.series AND n.${timeColumn} < ?) ORDER BY s.series`,
          [...values, storedTime(until)],
        )
        .map(([series, indexType, indexId, name, ...row]) => ({
          series: { series, indexType, indexId, name },
          row,
        }));
    },
    hasRowsBelow: (connection: Connection, series: number, ts: Micros) =>
      connection.findRow(belowSql, [series, storedTime(ts)]) !== undefined,
  };
}

/** What names the series, as properties: the same text for every record. Only liquid indices have names of their own. */
function seriesProperties({ indexType, indexId, name }: ServedSeries): string {
  const named = indexType === "LX" && name !== indexId ? `,"name":${JSON.stringify(name)}` : "";
  return `"indexId":${JSON.stringify(indexId)},"indexType":${JSON.stringify(indexType)}${named}`;
}

/** The columns of `index_tick_rows`: ts, price, volume, tick_volume, source, details. */
export type StoredTickRow = readonly [
  ts: number,
  price: number | null,
  volume: number | null,
  tickVolume: number | null,
  source: number,
  details: string | null,
];

/** The properties of a tick after its id. */
export function tickWriter(series: ServedSeries): (row: StoredTickRow) => string {
  const ofSeries = seriesProperties(series);
  return ([ts, price, volume, tickVolume, , detailsText]) => {
    const details = parseDetails(detailsText);
    const figures = `${decimalProperty("price", price, details.price)}${decimalProperty("volume", volume, details.volume)}${decimalProperty("tickVolume", tickVolume, details.tick_volume)}`;
    return `${ofSeries}${figures},"timestamp":"${timestampText(ts)}"${extraProperties(details.extra)}`;
  };
}

/** The decimals of a bar, in the order of the table's columns. */
const barFields = ["open", "high", "low", "close", "volume", "volumeUsd", "vwap", "twap"] as const;
const barColumns = ["open", "high", "low", "close", "volume", "volume_usd", "vwap", "twap"] as const;

const ticks = deriveTable("index_ticks");
const bars = deriveTable("ohlcv");
const RECORD_ID_AT = 1 + barFields.length;

export const historyTables: { readonly [S in HistoryStream]: HistoryTable } = {
  index_ticks: {
    ...ticks,
    object: "index-ticker",
    scope: "read:index-ticker",
    step: 1,
    writer(series) {
      const ids = ticks.ids(series);
      const write = tickWriter(series);
      return (row) => `{"id":"${ids.at(row[0] as number)}",${write(row as StoredTickRow)}}`;
    },
    findByRecordId: () => undefined,
  },
  ohlcv: {
    ...bars,
    object: "ohlcv",
    scope: "read:ohlcv",
    step: MICROS_PER_DAY,
    writer(series) {
      const ids = bars.ids(series);
      const ofSeries = seriesProperties(series);
      return (row) => {
        const [day] = row;
        const details = parseDetails(row[RECORD_ID_AT + 1] as string | null);
        const id = row[RECORD_ID_AT] as string | null;
        let figures = "";
        for (let i = 0; i < barFields.length; i++)
          figures += decimalProperty(
            barFields[i] as string,
            row[i + 1] as number | null,
            details[barColumns[i] as string],
          );
        const span = `"startTimestamp":"${day}T00:00:00.000Z","endTimestamp":"${day}T23:59:59.999Z"`;
        return `{"id":${id === null ? `"${ids.at(bars.tsOf(row))}"` : JSON.stringify(id)},${ofSeries}${figures},${span}${extraProperties(details.extra)}}`;
      };
    },
    findByRecordId(connection, id, series) {
      const [condition, keys] = series === undefined ? ["", []] : [" AND series = ?", [series]];
      const sql = `SELECT series, day FROM daily_bar_rows WHERE record_id = ?${condition}`;
      const found = connection.findTuple<[number, string]>(sql, [id, ...keys]);
      return found && { key: found[0], ts: rowTables.ohlcv.tsOfStored(found[1]) };
    },
  },
};
