import type { HistoryRecord } from "../../api-server/source.ts";
import { topicsOfIndex, topicsOfListing } from "../../api-server/subscription.ts";
import { formatShort, formatTimestamp, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { newestRow, timeOrder } from "../../warehouse/tables/row-parts.ts";
import { rowTables } from "../../warehouse/tables/row-tables.ts";
import { historyWriter, listServedSeries } from "../records/history.ts";
import type { LatestRow } from "../records/latest-rows.ts";
import { exchangeTickText } from "../records/snapshots.ts";

/** One index, or one market on one exchange: reads its ticks and writes them as messages. */
export interface TickSource {
  readonly stream: "index_ticks" | "exchange_ticks";
  readonly key: number;
  readonly topics: readonly string[];
  /** What identifies it in a message about it. */
  readonly labels: Readonly<Record<string, string>>;
  /** The ticks of `[from, to)` as messages of the websocket, ascending. */
  read(connection: Connection, from: Micros, to: Micros): HistoryRecord[];
}

const ticksSql = `SELECT ts, ${rowTables.index_ticks.columns.join(", ")} FROM index_tick_rows
  WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts`;
const tickersSql = `SELECT listing AS key, * FROM exchange_tick_rows
  WHERE listing = ? AND ts >= ? AND ts < ? ORDER BY ${timeOrder("exchange_ticks")}`;

interface ListingRow {
  readonly listing: number;
  readonly exchange_id: string;
  readonly market_id: string;
}

/** Every source of the warehouse that belongs to one of the topics. */
export function findTickSources(connection: Connection, hasTopic: (topic: string) => boolean): TickSource[] {
  const indices = listServedSeries(connection, {}).map((series): TickSource => {
    const { series: key, indexType, indexId } = series;
    return {
      stream: "index_ticks",
      key,
      topics: topicsOfIndex(indexType, indexId),
      labels: { indexType, indexId },
      read(reader, from, to) {
        const write = historyWriter("index_ticks", series);
        return reader
          .tuples<Parameters<typeof write>[0]>(ticksSql, [key, from, to])
          .map((row) => ({ ts: Number(row[0]), text: `{"event":"INDEX_TICKER",${write(row)}}` }));
      },
    };
  });
  const sql = "SELECT listing, exchange_id, market_id FROM listings ORDER BY listing";
  const listings = connection.rows<ListingRow>(sql).map(
    ({ listing, ...ids }): TickSource => ({
      stream: "exchange_ticks",
      key: listing,
      topics: topicsOfListing(ids.exchange_id, ids.market_id),
      labels: { exchangeId: ids.exchange_id, marketId: ids.market_id },
      read: (reader, from, to) =>
        reader.rows<LatestRow>(tickersSql, [listing, from, to]).map((row) => ({
          ts: row.ts,
          text: `{"event":"EXCHANGE_TICKER",${exchangeTickText({ ...row, ...ids }, true)}}`,
        })),
    }),
  );
  return [...indices, ...listings].filter(({ topics }) => topics.some(hasTopic));
}

/** The newest timestamp of a source before `until`; -1 if it has no tick. */
export function findNewestTick(connection: Connection, { stream, key }: TickSource, until: Micros): Micros {
  const sql = `SELECT ${newestRow(stream, "?", "n.ts < ?")}`;
  return connection.value<Micros | null>(sql, [key, until]) ?? -1;
}

/** A range of which ticks were not sent: `open` and `lost` as in the ledger, `filled` if they can be read by now. */
export interface Gap extends TimeRange {
  readonly state: "open" | "lost" | "filled";
  readonly reason: string;
}

export type GapSubject = Pick<TickSource, "labels"> & { readonly stream: string };

/** The message that announces it. */
export function gapText({ stream, labels }: GapSubject, { from, to, state, reason }: Gap): string {
  const [fromText, toText] = [formatTimestamp(from), formatTimestamp(to)];
  const range = { from: fromText, to: toText, state, reason, timestamp: formatShort(from) };
  return JSON.stringify({ event: "GAP", stream, ...labels, ...range });
}
