import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { ExchangeTickRow } from "../schema/rows.ts";
import type { Connection } from "../sqlite/connection.ts";
import { timeOrder } from "../tables/row-parts.ts";
import type { SqlDialect } from "./sql-dialect.ts";

/*
 * The websocket does not send when a price last moved. A ticker repeats the price if its predecessor has the same one and
 * is at most two periods older. After a longer gap the result is unknown (null).
 */
const MAX_PERIODS_BACK = 2;

/** SQL: 1 if the ticker `row` repeats the price of its predecessor, null if there is none within two periods. One seek. */
export function repeatsPrice(
  { table, tickerOrder }: Pick<SqlDialect, "table" | "tickerOrder">,
  row: string,
  period: string,
): string {
  const isEarlier = tickerOrder.map(
    (column) => `p.${column} ${column === "ts" ? "<" : "<="} ${row}.${column}`,
  );
  return `(SELECT p.last = ${row}.last FROM ${table("exchange_tick_rows")} p WHERE p.listing = ${row}.listing AND ${isEarlier.join(" AND ")}
    AND p.ts >= ${row}.ts - ${MAX_PERIODS_BACK} * ${period} ORDER BY ${tickerOrder.map((column) => `p.${column} DESC`).join(", ")} LIMIT 1)`;
}

/** A quote does not compete for the best of its market if it has not moved for longer. */
const MAX_UNMOVED = 3600 * MICROS_PER_SECOND;

/** The first ticker of the hour before `row`: price and quotes, its timestamp, and when its price last moved, in microseconds. */
type HourStart = Readonly<Record<"last" | "bid" | "ask" | "ts" | "lastMoved", string>>;

/**
 * SQL: whether the ticker `row` has not moved for an hour. Where the service does not say, price and quotes are those of the
 * ticker an hour before, or of a later one whose price had not moved since then.
 */
export function standsStill(row: string, unmovedMicros: string, hourStart: HourStart, period: string) {
  const { last, bid, ask, ts, lastMoved } = hourStart;
  return `CASE WHEN ${unmovedMicros} IS NOT NULL THEN ${unmovedMicros} > ${MAX_UNMOVED}
    ELSE ${last} = ${row}.last AND ${bid} = ${row}.bid AND ${ask} = ${row}.ask
      AND (${ts} < ${row}.ts - ${MAX_UNMOVED} + ${MAX_PERIODS_BACK} * ${period} OR ${lastMoved} <= ${row}.ts - ${MAX_UNMOVED}) END`;
}

/** The same by one seek, in an engine with `exchange_tick_rows`. `from`: FROM and WHERE of the tickers `h` of the listing. */
export function seekStandsStill(
  { tickerOrder }: Pick<SqlDialect, "tickerOrder">,
  row: string,
  unmovedMicros: string,
  from: string,
  period: string,
): string {
  const hourStart = { last: "h.last", bid: "h.bid", ask: "h.ask", ts: "h.ts", lastMoved: "h.last_moved" };
  return `(SELECT ${standsStill(row, unmovedMicros, hourStart, period)}
      ${from} AND h.ts >= ${row}.ts - ${MAX_UNMOVED} ORDER BY ${tickerOrder.map((column) => `h.${column}`).join(", ")} LIMIT 1)`;
}

/** The tickers `h` of the listing of `t`, a row of `exchange_ticks`. */
export const tickersOfListing = ({ table }: Pick<SqlDialect, "table">) =>
  `FROM ${table("listings")} l CROSS JOIN ${table("exchange_tick_rows")} h
      WHERE l.exchange_id = t.exchange_id AND l.market_id = t.market_id AND h.listing = l.listing`;

/** ON of an ASOF join: the first ticker `h` of the hour before `row`. */
export const atHourStart = (row: string) => `h.ts >= ${row}.ts - ${MAX_UNMOVED}`;

type Ticker = Pick<ExchangeTickRow, "ts" | "last">;

/** The newest ticker before `ts`. */
export function tickerBefore(connection: Connection, listing: number, ts: Micros): Ticker | undefined {
  return connection.findRow<Ticker>(
    `SELECT ts, last FROM exchange_tick_rows WHERE listing = ? AND ts < ? ORDER BY ${timeOrder("exchange_ticks", "DESC")} LIMIT 1`,
    [listing, ts],
  );
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
