import type { Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

/*
 * The websocket does not say when a price last moved. Whether a ticker repeats the price of the one before it can be seen
 * from the rows themselves, where that one is at most two periods older: across a longer silence it would be a guess.
 */
const PERIODS_BACK = 2;

/** 1 where the ticker `row` repeats the price of the one before; null where there is none in reach. One seek. */
export function repeatsPrice(row: string, period: string): string {
  return `(SELECT p.last = ${row}.last FROM exchange_tick_rows p WHERE p.listing = ${row}.listing AND p.ts < ${row}.ts
    AND p.ts >= ${row}.ts - ${PERIODS_BACK} * ${period} ORDER BY p.ts DESC LIMIT 1)`;
}

export interface Ticker {
  readonly ts: Micros;
  readonly last: number | null;
}

/** The newest ticker before a moment. */
export function tickerBefore(connection: Connection, listing: number, ts: Micros): Ticker | undefined {
  return connection
    .statement(
      "SELECT ts, last FROM exchange_tick_rows WHERE listing = ? AND ts < ? ORDER BY ts DESC LIMIT 1",
    )
    .get([listing, ts]) as Ticker | undefined;
}

/** The same, for tickers of one market that are asked about in order, after `before`. */
export function repetitions(before: Ticker | undefined, period: Micros): (ticker: Ticker) => boolean | null {
  let previous = before;
  return (ticker) => {
    const compared = previous;
    previous = ticker;
    if (compared === undefined || compared.ts < ticker.ts - PERIODS_BACK * period) return null;
    return compared.last === null || ticker.last === null ? null : compared.last === ticker.last;
  };
}
