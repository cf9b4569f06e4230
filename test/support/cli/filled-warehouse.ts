import { join } from "node:path";
import type { HistoryStream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, startOfDay } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { observe } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { declareWanted, type Want } from "../../../src/warehouse/coverage/targets.ts";
import { writeAssets, writeExchanges, writeMarkets } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { openWarehouse, type Warehouse } from "../../../src/warehouse/writer.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { bar, tick } from "../warehouse/records.ts";

export const HOUR = 3600 * MICROS_PER_SECOND;
export const DAY = MICROS_PER_DAY;

/** The commands look at the real clock, so the warehouse is filled around it. */
export const present: Micros = Math.floor(Date.now() / 1000) * MICROS_PER_SECOND;
export const midnight = startOfDay(present);

const kept = { quality: null, extra: null };
const asset = (id: string, symbol: string, name: string) => ({
  id,
  symbol,
  name,
  status: "ACTIVE",
  type: "CRYPTO",
  url: null,
  contractAddress: null,
  ...kept,
});

/** A warehouse file that nobody writes any more; `fill` is its one transaction. */
export function warehouseWith(fill: (transaction: Transaction) => void = () => {}): string {
  const path = join(temporaryFolder(), "mds.sqlite");
  const warehouse = openWarehouse(path, { clock: systemClock });
  warehouse.transaction(fill);
  warehouse.close();
  return path;
}

/** The same, with its writer still there, as beside a daemon. */
export function openWith(path: string): Warehouse {
  return openWarehouse(path, { clock: systemClock });
}

export function lookups(transaction: Transaction): void {
  const complete = { complete: true };
  writeAssets(
    transaction,
    [
      asset("btc-id", "BTC", "Bitcoin"),
      asset("eth-id", "ETH", "Ether"),
      asset("usd-id", "USD", "US dollar"),
      asset("uni-1", "UNI", "Uniswap"),
      asset("uni-2", "UNI", "Unicorn"),
    ],
    complete,
  );
  writeMarkets(
    transaction,
    [{ id: "btc-usd-id", baseAssetId: "btc-id", quoteAssetId: "usd-id", ...kept }],
    complete,
  );
  writeExchanges(
    transaction,
    [{ id: "kraken-id", name: "Kraken", url: null, status: "ACTIVE", markets: [], symbols: [], ...kept }],
    complete,
  );
}

/** Follows a series from `from` on; what is settled of it holds a row at its first moment. */
export function follow(
  transaction: Transaction,
  stream: HistoryStream,
  indexId: string,
  options: { from: Micros; settled?: readonly (readonly [Micros, Micros])[]; indexType?: string },
): void {
  const { from, settled = [], indexType = "GWA" } = options;
  const line = { stream, series: transaction.dictionary.series(indexType, indexId) };
  const rules: Omit<Want, "line" | "from"> =
    stream === "ohlcv"
      ? { settleDelay: 60 * MICROS_PER_SECOND, step: DAY, keptFor: null }
      : { settleDelay: 60 * MICROS_PER_SECOND, step: 1, keptFor: 200 * DAY };
  const others = transaction
    .statement("SELECT series, from_ts FROM wanted_ranges WHERE stream = ? AND to_ts IS NULL")
    .all([stream]) as { series: number; from_ts: number }[];
  const wants = others.map(({ series, from_ts }) => ({ line: { stream, series }, from: from_ts, ...rules }));
  declareWanted(transaction, stream, [...wants, { line, from, ...rules }], present);
  for (const [start, end] of settled) {
    if (stream === "ohlcv")
      writeRecords(transaction, "ohlcv", [bar(start, "5", { indexType, indexId })], "rest");
    else writeRecords(transaction, "index_ticks", [tick(start, "60000.25", { indexType, indexId })], "rest");
    settle(transaction, line, { from: start, to: end }, "rows");
  }
}

/**
 * Lookups; daily bars of BTC whole; ticks of BTC with one hole of a day that began five days ago, and an open head of an
 * hour; ticks of ETH wanted for 300 days and never fetched; exchange tickers of Kraken observed once, a day ago.
 */
export function usualContent(transaction: Transaction): void {
  lookups(transaction);
  follow(transaction, "ohlcv", "btc-id", {
    from: midnight - 30 * DAY,
    settled: [[midnight - 30 * DAY, midnight]],
  });
  follow(transaction, "index_ticks", "btc-id", {
    from: midnight - 10 * DAY,
    settled: [
      [midnight - 10 * DAY, midnight - 5 * DAY],
      [midnight - 4 * DAY, present - HOUR],
    ],
  });
  follow(transaction, "index_ticks", "eth-id", { from: midnight - 300 * DAY });
  observe(transaction, {
    stream: "exchange_ticks",
    exchangeId: "kraken-id",
    at: midnight - DAY,
    cadence: 30 * MICROS_PER_SECOND,
  });
}
