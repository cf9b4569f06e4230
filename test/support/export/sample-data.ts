import { existsSync } from "node:fs";
import { join } from "node:path";
import type { DerivativeTick, IndexTick, MarketCap } from "../../../src/model/records.ts";
import type { Micros } from "../../../src/model/time.ts";
import { periodOf, periodRange } from "../../../src/warehouse/read/export-periods.ts";
import { countUnknownEvent, countUnknownFields, storeRejects } from "../../../src/warehouse/rows/rejects.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { emptyRecord } from "../empty-record.ts";
import { present } from "../present.ts";
import { copyEmptyWarehouse } from "../warehouse/empty-warehouse.ts";
import { DAY, fill, HOUR, midnight, openForWriting, STEP } from "../warehouse/filled-warehouse.ts";
import { bar, decimal, exchangeTick, tick } from "../warehouse/records.ts";
import { settleSnapshot } from "../warehouse/settle-snapshot.ts";
import { writeRecords, writeTicks } from "../warehouse/write-records.ts";

/** The first moment of the month that lies so many months back, counted from the newest that has at least ten days. */
export function monthStart(back: number): Micros {
  let { from } = periodRange(monthOf(present - 10 * DAY));
  for (let i = 0; i < back; i++) from = periodRange(monthOf(from - DAY)).from;
  return from;
}

const monthOf = (ts: Micros) => periodOf("month", ts);
export const month = (back: number) => monthOf(monthStart(back));

/** `withoutViews`: views that a new warehouse lacks. */
export function openAt(folder: string, withoutViews?: RegExp): WarehouseWriter {
  const path = join(folder, "mds.sqlite");
  if (!existsSync(path)) copyEmptyWarehouse(path, withoutViews);
  return openForWriting(path);
}

export function ticks(count: number, from: Micros, more: Partial<IndexTick> = {}): IndexTick[] {
  return Array.from({ length: count }, (_, i) =>
    tick(from + i * STEP, (60_000 + Math.sin(i / 9) * 500).toFixed(2), {
      volume: decimal((1000 + i * 1.25).toFixed(3)),
      ...more,
    }),
  );
}

export function lookups(transaction: Transaction, status = "ACTIVE"): void {
  const asset = (symbol: string) => ({ symbol, name: `The ${symbol}`, status });
  fill(transaction, {
    assets: { "btc-id": asset("BTC"), "eth-id": asset("ETH"), "usd-id": asset("USD") },
    markets: { "btc-usd-id": ["btc-id", "usd-id", { quality: "odd", extra: '{"a":1}' }] },
    exchanges: {
      "kraken-id": {
        name: "Kraken's",
        markets: [{ marketId: "btc-usd-id", status: "ACTIVE", qualified: true, extra: null }],
        symbols: [{ assetId: "btc-id", symbol: "XBT", extra: null }],
      },
    },
    contracts: [
      {
        ...{ id: "perp-1", derivativeType: "perpetuals", exchangeId: "kraken-id", marketId: "btc-usd-id" },
        ...{ exchangeName: "PI_XBTUSD", settlementCurrency: "BTC", valueCurrency: "USD" },
        contractValue: decimal("0.00000000000000000001234567890123456789"),
        listing: midnight - 400 * DAY,
      },
    ],
  });
}

/** The figures that are hard to keep: more digits than a double, than DECIMAL(38, 18), or in another form. */
export const extremes = `0.0000001 0.000000123456789012345 0.00012345678901234 0.001 999999999999999 1e15
  123456789012345678901234567890123456789012345.123456789012345678901234567890
  0.1234567890123456789012345678901234567890123456789 99999999999999999999.999999999999999999
  -0.00000012 -0 1e-30 67012.123456789012345678`.split(/\s+/);

/** The public relations that `fillEverything` fills, but for bars and gaps. */
export const filledRelations: readonly string[] = [
  ...["assets", "markets", "exchanges", "exchange_markets", "exchange_symbols", "derivative_contracts"],
  ...["ohlcv", "index_ticks", "exchange_ticks", "market_caps", "derivative_ticks"],
  ...["latest_index_ticks", "latest_exchange_ticks", "latest_market_caps", "latest_derivative_ticks"],
  ...["coverage", "revisions", "status_changes", "rejects", "unknown_fields", "unknown_events"],
];

/** Something of everything: three months of ticks, bars, observations, doubts, corrections. */
export function fillEverything(transaction: Transaction): void {
  lookups(transaction);
  lookups(transaction, "INACTIVE");
  const [old, recent] = [monthStart(3), monthStart(2)];
  // From before a month's end to after it, the second half of it not settled and only heard live.
  const half = [recent - 200 * STEP, recent + 100 * STEP] as const;
  fill(transaction, { series: [{ from: old, rows: ticks(400, half[0]), settled: [half] }] });
  writeTicks(transaction, ticks(50, recent + 400 * STEP), "live");
  writeTicks(transaction, ticks(120, midnight - DAY, { indexType: "MWA", indexId: "btc-usd-id" }));
  const oddIndex = { indexType: "LX", indexId: "lx/1 %", name: "BLX" };
  writeTicks(
    transaction,
    extremes.map((text, i) =>
      tick(old + i * STEP + 123_457, text, {
        ...oddIndex,
        volume: i % 2 ? null : decimal(extremes.at(-1 - i) as string),
        tickVolume: decimal("17.5"),
        quality: i === 3 ? "a doubt about 'it'" : null,
        extra: i === 4 ? '{"x":"ü"}' : null,
      }),
    ),
  );
  writeTicks(transaction, [tick(old, "1", { ...oddIndex, price: null, quality: "price: NaN" })]);
  // From the far future: kept, and nobody's latest.
  writeTicks(transaction, [tick(present + 900 * DAY, "5")]);
  // A correction.
  writeTicks(transaction, [tick(recent, "61000.5")]);

  const bars = Array.from({ length: 70 }, (_, i) => bar(midnight - (70 - i) * DAY, `${100 + i}.25`));
  const odd = bar(midnight, "1e-30", { quality: "high < low", recordId: null });
  fill(transaction, {
    series: [{ stream: "ohlcv", rows: [...bars, odd], settled: [[midnight - 70 * DAY, midnight - 2 * DAY]] }],
  });

  // Heard live, without a word of when the price moved, across the end of a month.
  const heard = ["1", "1", "2", "2", "2"].map((last, i) =>
    exchangeTick(monthStart(0) + (i - 2) * STEP, last, { lastMoved: null, marketId: "live" }),
  );
  writeRecords(transaction, "exchange_ticks", heard, "live");

  for (const back of [0, 1]) {
    const ts = monthStart(back) + 5 * HOUR;
    const unheard = exchangeTick(ts + STEP, "1e-9", { lastMoved: null, marketId: "unheard-of" });
    writeRecords(transaction, "exchange_ticks", [exchangeTick(ts, "60000.5"), unheard]);
    settleSnapshot(transaction, { stream: "exchange_ticks", exchangeId: "kraken-id", at: ts, cadence: STEP });
    writeRecords(transaction, "market_caps", [cap(ts, "btc-id"), cap(ts, "eth-id")]);
    writeRecords(transaction, "derivative_ticks", [derivative(ts, "perp-1"), derivative(ts, "undescribed")]);
  }
  const reject = { reason: "no timestamp", raw: '{"price":"1\\u0000"}' };
  storeRejects(transaction, "index_ticks", [reject], "GET /index-ticker");
  countUnknownFields(transaction, "assets", [{ name: "colour", count: 3, sample: '"red"' }]);
  countUnknownEvent(transaction, { name: "TRADE", count: 1, sample: "{}" });
}

function cap(ts: Micros, assetId: string): MarketCap {
  const [big, change] = [decimal("1190000000000.123456"), decimal("-1.25")];
  return {
    ...{ ...emptyRecord("market_caps"), assetId, ts, rank: assetId === "btc-id" ? 1 : null, volumeRank: 2 },
    ...{ price: decimal("60000.5"), volume: big, marketCap: big, totalMarketCap: big, totalSupply: big },
    ...{ change24h: change, change30d: change },
  };
}

function derivative(ts: Micros, contractId: string): DerivativeTick {
  const some = decimal("60000.5");
  const derivativeType = contractId === "perp-1" ? "perpetuals" : "options";
  return {
    ...{ ...emptyRecord("derivative_ticks"), contractId, derivativeType, exchangeId: "kraken-id", ts },
    ...{ price: some, volume: some, bid: some, ask: some, indexPrice: some, markPrice: some },
    ...{ openInterest: decimal("123456789012345678.5"), fundingRate: decimal("0.000012345") },
  };
}
