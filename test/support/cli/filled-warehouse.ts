import { join } from "node:path";
import type { HistoryStream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { settleSnapshot } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { declareTargets, type Target } from "../../../src/warehouse/coverage/targets.ts";
import { writeLookup } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { midnight, present as nowTs } from "../present.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse } from "../warehouse/empty-warehouse.ts";
import { bar, tick } from "../warehouse/records.ts";

export const HOUR = 3600 * MICROS_PER_SECOND;
export const DAY = MICROS_PER_DAY;
export { midnight, nowTs };

const emptyFields = { quality: null, extra: null };
const asset = (id: string, symbol: string, name: string) => ({
  id,
  symbol,
  name,
  status: "ACTIVE",
  type: "CRYPTO",
  url: null,
  contractAddress: null,
  ...emptyFields,
});

/** Creates a closed warehouse file; `fill` is its only transaction. */
export function createWarehouse(fill: (transaction: Transaction) => void = () => {}): string {
  const path = join(temporaryFolder(), "mds.sqlite");
  copyEmptyWarehouse(path);
  const warehouse = openWriter(path, { clock: systemClock });
  warehouse.transaction(fill);
  warehouse.close();
  return path;
}

/** Opens the writer again, as a running daemon would. */
export function openForWriting(path: string): WarehouseWriter {
  return openWriter(path, { clock: systemClock });
}

export function addLookups(transaction: Transaction): void {
  const complete = { isComplete: true };
  writeLookup(
    transaction,
    "assets",
    [
      asset("btc-id", "BTC", "Bitcoin"),
      asset("eth-id", "ETH", "Ether"),
      asset("usd-id", "USD", "US dollar"),
      asset("uni-1", "UNI", "Uniswap"),
      asset("uni-2", "UNI", "Unicorn"),
    ],
    complete,
  );
  writeLookup(
    transaction,
    "markets",
    [{ id: "btc-usd-id", baseAssetId: "btc-id", quoteAssetId: "usd-id", ...emptyFields }],
    complete,
  );
  writeLookup(
    transaction,
    "exchanges",
    [
      {
        id: "kraken-id",
        name: "Kraken",
        url: null,
        status: "ACTIVE",
        markets: [],
        symbols: [],
        ...emptyFields,
      },
    ],
    complete,
  );
}

/** Adds a series with a target from `from` on; each settled range has one row at its start. */
export function addSeries(
  transaction: Transaction,
  stream: HistoryStream,
  indexId: string,
  options: { from: Micros; settled?: readonly (readonly [Micros, Micros])[]; indexType?: string },
): void {
  const { from, settled = [], indexType = "GWA" } = options;
  const line = { stream, series: transaction.dictionary.getSeriesKey(indexType, indexId) };
  const rules: Omit<Target, "key" | "from"> =
    stream === "ohlcv"
      ? { settleDelay: 60 * MICROS_PER_SECOND, period: DAY, step: DAY, serviceWindow: null }
      : {
          settleDelay: 60 * MICROS_PER_SECOND,
          period: 30 * MICROS_PER_SECOND,
          step: 1,
          serviceWindow: 200 * DAY,
        };
  const others = transaction
    .statement("SELECT series, from_ts FROM targets WHERE stream = ? AND to_ts IS NULL")
    .all([stream]) as { series: number; from_ts: number }[];
  const wants = others.map(({ series, from_ts }) => ({ key: { stream, series }, from: from_ts, ...rules }));
  declareTargets(transaction, stream, [...wants, { key: line, from, ...rules }], nowTs);
  for (const [start, end] of settled) {
    if (stream === "ohlcv")
      writeRecords(transaction, "ohlcv", [bar(start, "5", { indexType, indexId })], "rest");
    else writeRecords(transaction, "index_ticks", [tick(start, "60000.25", { indexType, indexId })], "rest");
    settle(transaction, line, { from: start, to: end }, "rows");
  }
}

/**
 * Lookups; complete daily bars of BTC; ticks of BTC with a gap of one day that started five days ago, and an open head of one
 * hour; ticks of ETH with a target of 300 days and no rows; one snapshot of Kraken's tickers, a day ago.
 */
export function standardContent(transaction: Transaction): void {
  addLookups(transaction);
  addSeries(transaction, "ohlcv", "btc-id", {
    from: midnight - 30 * DAY,
    settled: [[midnight - 30 * DAY, midnight]],
  });
  addSeries(transaction, "index_ticks", "btc-id", {
    from: midnight - 10 * DAY,
    settled: [
      [midnight - 10 * DAY, midnight - 5 * DAY],
      [midnight - 4 * DAY, nowTs - HOUR],
    ],
  });
  addSeries(transaction, "index_ticks", "eth-id", { from: midnight - 300 * DAY });
  // An earlier target reached down to here, so that what left the window since then is lost.
  const eth = {
    stream: "index_ticks",
    series: transaction.dictionary.getSeriesKey("GWA", "eth-id"),
  } as const;
  settle(transaction, eth, { from: midnight - 301 * DAY, to: midnight - 300 * DAY }, "empty");
  settleSnapshot(transaction, {
    stream: "exchange_ticks",
    exchangeId: "kraken-id",
    at: midnight - DAY,
    cadence: 30 * MICROS_PER_SECOND,
  });
}
