import type { Micros } from "../model/instant.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { Transaction } from "./transaction.ts";

/** The newest tick of a series in the range that only the websocket has told of so far. */
export function newestLiveRow(
  transaction: Transaction,
  series: number,
  range: TimeRange,
): Micros | undefined {
  const sql = "SELECT max(ts) FROM index_tick_rows WHERE series = ? AND ts >= ? AND ts < ? AND source = 1";
  const found = transaction.statement(sql).pluck().get([series, range.from, range.to]);
  return typeof found === "number" ? found : undefined;
}
