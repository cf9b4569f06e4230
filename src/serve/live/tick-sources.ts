import { topicsOfIndex, topicsOfListing } from "../../api-server/subscription.ts";
import { formatShort, formatTimestamp, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { rowTables } from "../../warehouse/tables/row-tables.ts";
import { historyWriter, listServedSeries } from "../records/history.ts";
import type { LatestRow } from "../records/latest-rows.ts";
import { exchangeTickText } from "../records/snapshots.ts";

/** A tick as a message of the websocket. */
export interface TickMessage {
  readonly ts: Micros;
  readonly text: string;
}

/** One index, or one market on one exchange: reads its ticks and writes them as messages. */
export interface TickSource {
  readonly stream: "index_ticks" | "exchange_ticks";
  readonly key: number;
  readonly topics: readonly string[];
  /** What identifies it in a message about it. */
  readonly labels: Readonly<Record<string, string>>;
  /** The ticks of `[from, to)`, ascending, at most `limit`. */
  read(connection: Connection, from: Micros, to: Micros, limit: number): TickMessage[];
}

const ticksSql = `SELECT ts, ${rowTables.index_ticks.columns.join(", ")} FROM index_tick_rows
  WHERE series = ? AND ts >= ? AND ts < ? ORDER BY ts LIMIT ?`;
const tickersSql = `SELECT listing AS key, * FROM exchange_tick_rows
  WHERE listing = ? AND ts >= ? AND ts < ? ORDER BY ts LIMIT ?`;

/** Every source of the warehouse that belongs to one of the topics. */
export function findTickSources(connection: Connection, hasTopic: (topic: string) => boolean): TickSource[] {
  const indices = listServedSeries(connection, {}).flatMap((series): TickSource[] => {
    const { series: key, indexType, indexId } = series;
    const topics = topicsOfIndex(indexType, indexId);
    if (!topics.some(hasTopic)) return [];
    const write = historyWriter("index_ticks", series);
    return [
      {
        stream: "index_ticks",
        key,
        topics,
        labels: { indexType, indexId },
        read: (reader, from, to, limit) =>
          reader.tuples<Parameters<typeof write>[0]>(ticksSql, [key, from, to, limit]).map((row) => ({
            ts: Number(row[0]),
            text: `{"event":"INDEX_TICKER",${write(row)}}`,
          })),
      },
    ];
  });
  return [...indices, ...findListingSources(connection, hasTopic)];
}

interface ListingRow {
  readonly listing: number;
  readonly exchange_id: string;
  readonly market_id: string;
}

function findListingSources(connection: Connection, hasTopic: (topic: string) => boolean): TickSource[] {
  const listings = connection.rows<ListingRow>(
    "SELECT listing, exchange_id, market_id FROM listings ORDER BY listing",
  );
  return listings.flatMap(({ listing, exchange_id, market_id }): TickSource[] => {
    const topics = topicsOfListing(exchange_id, market_id);
    if (!topics.some(hasTopic)) return [];
    const labels = { exchange_id, market_id };
    return [
      {
        stream: "exchange_ticks",
        key: listing,
        topics,
        labels: { exchangeId: exchange_id, marketId: market_id },
        read: (reader, from, to, limit) =>
          reader.rows<LatestRow>(tickersSql, [listing, from, to, limit]).map((row) => ({
            ts: row.ts,
            text: `{"event":"EXCHANGE_TICKER",${exchangeTickText({ ...row, ...labels }, true)}}`,
          })),
      },
    ];
  });
}

/** The newest timestamp of a source before `until`; -1 if it has no tick. */
export function findNewestTick(connection: Connection, { stream, key }: TickSource, until: Micros): Micros {
  const [table, column] =
    stream === "index_ticks" ? ["index_tick_rows", "series"] : ["exchange_tick_rows", "listing"];
  const sql = `SELECT max(ts) FROM ${table} WHERE ${column} = ? AND ts < ?`;
  return connection.value<Micros | null>(sql, [key, until]) ?? -1;
}

/** A range of which ticks were not sent: `open` and `lost` as in the ledger, `filled` if they can be read by now. */
export interface Gap extends TimeRange {
  readonly state: "open" | "lost" | "filled";
  readonly reason: string;
}

export interface GapSubject {
  readonly stream: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** The message that announces it. */
export function gapText({ stream, labels }: GapSubject, { from, to, state, reason }: Gap): string {
  const [fromText, toText] = [formatTimestamp(from), formatTimestamp(to)];
  const range = { from: fromText, to: toText, state, reason, timestamp: formatShort(from) };
  return JSON.stringify({ event: "GAP", stream, ...labels, ...range });
}
