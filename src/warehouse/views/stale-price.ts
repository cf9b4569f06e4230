import type { Micros } from "../../model/time.ts";
import type { ExchangeTickRow } from "../schema/rows.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { SqlDialect } from "./sql-dialect.ts";

/*
 * The websocket does not send when a price last moved. A ticker repeats the price if its predecessor has the same one and
 * is at most two periods older. After a longer gap the result is unknown (null).
 */
const MAX_PERIODS_BACK = 2;

/** SQL: 1 if the ticker `row` repeats the price of its predecessor, null if there is none within two periods. One seek. */
export function repeatsPrice({ table }: Pick<SqlDialect, "table">, row: string, period: string): string {
  return `(SELECT p.last = ${row}.last FROM ${table("exchange_tick_rows")} p WHERE p.listing = ${row}.listing AND p.ts < ${row}.ts
    AND p.ts >= ${row}.ts - ${MAX_PERIODS_BACK} * ${period} ORDER BY p.ts DESC LIMIT 1)`;
}

type Ticker = Pick<ExchangeTickRow, "ts" | "last">;

/** The newest ticker before `ts`. */
export function tickerBefore(connection: Connection, listing: number, ts: Micros): Ticker | undefined {
  return connection
    .statement<Ticker>(
      "SELECT ts, last FROM exchange_tick_rows WHERE listing = ? AND ts < ? ORDER BY ts DESC LIMIT 1",
    )
    .get([listing, ts]);
}

/** `repeatsPrice` as a function: call it with the tickers of one market in ascending order after `before`. */
export function repetitions(before: Ticker | undefined, period: Micros): (ticker: Ticker) => boolean | null {
  let previous = before;
  return (ticker) => {
    const compared = previous;
    previous = ticker;
    if (compared === undefined || compared.ts < ticker.ts - MAX_PERIODS_BACK * period) return null;
    return compared.last === null || ticker.last === null ? null : compared.last === ticker.last;
  };
}
