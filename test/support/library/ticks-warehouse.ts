import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { addLookups } from "../cli/standard-content.ts";
import { DAY, fill, HOUR, midnight } from "../warehouse/filled-warehouse.ts";
import { decimal } from "../warehouse/records.ts";

export const MINUTE = HOUR / 60;
/** Two days ago, midnight. */
export const getStart = () => midnight - 2 * DAY;
/** A price with more digits than a double holds, and its neighbours. */
const prices = ["100.5", "123456789.123456789012", "123456789.123456789099", "99.25", "0.00000001234"];

/** BTC: ticks every minute for three hours, one hour of which is not proven. UNI twice; BTC/USD with daily bars only. */
export function fillTicks(transaction: Transaction): void {
  const start = getStart();
  addLookups(transaction);
  const dayAgo = (days: number) => midnight - days * DAY;
  fill(transaction, {
    series: [
      {
        from: start,
        rules: { settleDelay: 2 * MINUTE, period: MINUTE },
        rows: Array.from({ length: 180 }, (_, i) => ({
          ts: start + i * MINUTE,
          price: decimal(prices[i] ?? `${200 + (i % 7)}.5`),
          volume: i === 4 ? null : decimal(`${1000 + i}`),
          quality: i === 3 ? "odd" : null,
        })),
        settled: [
          [start, start + HOUR],
          [start + 2 * HOUR, start + 3 * HOUR],
        ],
      },
      {
        ...{ stream: "ohlcv", indexType: "MWA", indexId: "btc-usd-id", from: dayAgo(20) },
        rows: [20, 19, 18, 17].map((ago) => ({
          ts: dayAgo(ago),
          close: decimal(`${ago}.25`),
          high: decimal(`${30 + ago}`),
        })),
        settled: [[dayAgo(20), dayAgo(10)]],
      },
    ],
  });
}
