import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { DAY, fill, HOUR, nowTs } from "../warehouse/filled-warehouse.ts";
import { decimal, exchangeTick } from "../warehouse/records.ts";

const STEP = 600e6;
const pair = {
  assets: { "BTC-id": "BTC", "USD-id": { symbol: "USD", type: "FIAT" } },
  markets: { market: ["BTC-id", "USD-id"] },
} as const;

/** How far each exchange quotes from the index, in basis points; `Dead` has not moved for hours. */
const offsets = { Near: 2, Same: -0.02, Under: -7, "Far Bitcoin Exchange": 290, Dead: -400 };

/** BTC/USD on five exchanges, each ten minutes of a day. */
export function fillQuotedPair(transaction: Transaction): void {
  const steps = Array.from({ length: DAY / STEP }, (_, i) => DAY / STEP - 1 - i);
  const moments = steps.map((step) => ({ ts: nowTs - step * STEP, step, index: 60_000 + 9 * step }));
  fill(transaction, {
    ...pair,
    exchanges: Object.fromEntries(Object.keys(offsets).map((name) => [name, name])),
    series: [
      { indexId: "BTC-id", rows: moments.map(({ ts, index }) => ({ ts, price: decimal(String(index)) })) },
    ],
    records: {
      exchange_ticks: moments.flatMap(({ ts, step, index }) =>
        Object.entries(offsets).map(([exchangeId, offset]) => {
          const last = index * (1 + offset / 10_000);
          const half = last * (0.0001 + 0.00001 * (step % 7));
          return exchangeTick(ts, last.toFixed(2), {
            ...{ exchangeId, marketId: "market" },
            lastMoved: exchangeId === "Dead" ? nowTs - 30 * HOUR : ts,
            bid: decimal((last - half).toFixed(2)),
            ask: decimal((last + half).toFixed(2)),
          });
        }),
      ),
    },
  });
}

const HOURS_OF_WEEK = Array.from({ length: 7 * 24 + 1 }, (_, i) => 7 * 24 - i);

/** A perpetual of BTC/USD on each of two exchanges, each hour of a week: Near always pays a hundredth, Far half of it since a day. */
export function fillFunding(transaction: Transaction): void {
  const exchanges = ["Near", "Far"];
  fill(transaction, {
    ...pair,
    exchanges: Object.fromEntries(exchanges.map((name) => [name, name])),
    contracts: exchanges.map((exchangeId) => ({
      ...{ id: `${exchangeId}-perp`, exchangeId, derivativeType: "perpetuals", marketId: "market" },
      ...{ exchangeName: `BTC ${exchangeId}`, contractValue: decimal("1"), valueCurrency: "USD" },
    })),
    records: {
      derivative_ticks: exchanges.flatMap((exchangeId) =>
        HOURS_OF_WEEK.map((hours) => ({
          ...{ exchangeId, derivativeType: "perpetuals", contractId: `${exchangeId}-perp` },
          ...{ ts: nowTs - hours * HOUR, price: decimal("60000"), indexPrice: decimal("60000") },
          openInterestUsd: decimal(exchangeId === "Near" ? "2000000" : "1000000"),
          fundingRate: decimal(exchangeId === "Far" && hours < 24 ? "0.00005" : "0.0001"),
        })),
      ),
    },
  });
}

/** Futures of BTC/USD on seven exchanges, two expiries each; on an eighth they have no index to compare them with. */
export function fillFuturesCurve(transaction: Transaction): void {
  const exchanges = Array.from({ length: 8 }, (_, i) => `Exchange ${i + 1}`);
  const contracts = exchanges.flatMap((exchangeId, i) =>
    [30, 90].map((days, at) => ({ exchangeId, days, at, i, id: `${exchangeId} ${days}` })),
  );
  fill(transaction, {
    ...pair,
    exchanges: Object.fromEntries(exchanges.map((name) => [name, name])),
    contracts: contracts.map(({ exchangeId, days, id }) => ({
      ...{ id, exchangeId, derivativeType: "futures", marketId: "market", exchangeName: `BTC ${days}` },
      ...{ settlementCurrency: "USD", contractValue: decimal("1"), valueCurrency: "USD" },
      expiration: nowTs + days * DAY,
    })),
    records: {
      derivative_ticks: contracts.map(({ exchangeId, id, at, i }) => ({
        ...{ exchangeId, derivativeType: "futures", contractId: id, ts: nowTs },
        price: decimal(String(60_100 + 10 * i + 100 * at)),
        indexPrice: i < 7 ? decimal("60000") : null,
      })),
    },
  });
}
