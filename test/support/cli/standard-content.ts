import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { DAY, fill, HOUR, midnight, nowTs } from "../warehouse/filled-warehouse.ts";
import { settle } from "../warehouse/settle.ts";
import { recordService } from "../warehouse/write-lists.ts";

export function addLookups(transaction: Transaction): void {
  fill(transaction, {
    assets: {
      "btc-id": { symbol: "BTC", name: "Bitcoin" },
      "eth-id": { symbol: "ETH", name: "Ether" },
      "usd-id": { symbol: "USD", name: "US dollar" },
      "uni-1": { symbol: "UNI", name: "Uniswap" },
      "uni-2": { symbol: "UNI", name: "Unicorn" },
    },
    markets: { "btc-usd-id": ["btc-id", "usd-id"] },
    exchanges: { "kraken-id": "Kraken" },
  });
}

/**
 * Lookups; complete daily bars of BTC; ticks of BTC with a gap of one day that started five days ago, and an open head of one
 * hour; ticks of ETH with a target of 300 days and no rows; one snapshot of Kraken's tickers, a day ago.
 */
export function standardContent(transaction: Transaction): void {
  addLookups(transaction);
  const dayAgo = (days: number) => midnight - days * DAY;
  fill(transaction, {
    series: [
      { stream: "ohlcv", from: dayAgo(30), settled: [[dayAgo(30), midnight]] },
      {
        from: dayAgo(10),
        settled: [
          [dayAgo(10), dayAgo(5)],
          [dayAgo(4), nowTs - HOUR],
        ],
      },
      { indexId: "eth-id", from: dayAgo(300) },
    ],
    snapshots: [{ stream: "exchange_ticks", exchangeId: "kraken-id", at: dayAgo(1) }],
  });
  // An earlier target reached down to here, so that what left the window since then is lost.
  const series = transaction.dictionary.getSeriesKey("GWA", "eth-id");
  settle(transaction, { stream: "index_ticks", series }, { from: dayAgo(301), to: dayAgo(300) }, "empty");
}

/** `standardContent`, from a service that no test starts. */
export function contentOfOtherService(transaction: Transaction): void {
  standardContent(transaction);
  recordService(transaction, "", { url: "https://prod.test", stream: "assets", ids: ["btc-id", "eth-id"] });
}
