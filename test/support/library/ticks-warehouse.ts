import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { addLookups, addSeries, DAY, HOUR, midnight, nowTs } from "../cli/filled-warehouse.ts";
import { bar, decimal, tick } from "../warehouse/records.ts";

export const MINUTE = HOUR / 60;
/** Two days ago, midnight. */
export const getStart = () => midnight - 2 * DAY;
/** A price with more digits than a double holds, and its neighbours. */
const prices = ["100.5", "123456789.123456789012", "123456789.123456789099", "99.25", "0.00000001234"];

/** BTC: ticks every minute for three hours, one hour of which is not proven. UNI twice; BTC/USD with daily bars only. */
export function fillTicks(transaction: Transaction): void {
  const start = getStart();
  addLookups(transaction);
  const stream = "index_ticks" as const;
  const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
  const ticks = Array.from({ length: 180 }, (_, i) =>
    tick(start + i * MINUTE, i < prices.length ? (prices[i] ?? "") : `${200 + (i % 7)}.5`, {
      volume: i === 4 ? null : decimal(`${1000 + i}`),
      ...(i === 3 ? { quality: "odd" } : {}),
    }),
  );
  writeRecords(transaction, stream, ticks, "rest");
  declareTargets(
    transaction,
    stream,
    [
      {
        key: { stream, series },
        from: start,
        settleDelay: 2 * MINUTE,
        period: MINUTE,
        step: 1,
        serviceWindow: 200 * DAY,
      },
    ],
    nowTs,
  );
  settle(transaction, { stream, series }, { from: start, to: start + HOUR }, "rows");
  settle(transaction, { stream, series }, { from: start + 2 * HOUR, to: start + 3 * HOUR }, "rows");
  addSeries(transaction, "ohlcv", "btc-usd-id", {
    indexType: "MWA",
    from: midnight - 20 * DAY,
    settled: [[midnight - 20 * DAY, midnight - 10 * DAY]],
  });
  const days = [20, 19, 18, 17].map((ago) =>
    bar(midnight - ago * DAY, `${ago}.25`, {
      indexType: "MWA",
      indexId: "btc-usd-id",
      high: decimal(`${30 + ago}`),
    }),
  );
  writeRecords(transaction, "ohlcv", days, "rest");
}
