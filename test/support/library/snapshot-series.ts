import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { addLookups } from "../cli/standard-content.ts";
import { fill, midnight } from "../warehouse/filled-warehouse.ts";
import { decimal } from "../warehouse/records.ts";
import { settleSnapshot } from "../warehouse/settle-snapshot.ts";

export const MINUTE = 60 * MICROS_PER_SECOND;
export const SNAPSHOTS_FROM = midnight - 2 * 24 * 60 * MINUTE;
/** More digits than a double holds. */
export const EXACT_BID = "100.123456789012345678901";

/**
 * Ten minutes of an exchange's ticker, of a perpetual and of market caps, one of each a minute, and of BTC. The snapshot of the
 * fifth minute is missing.
 */
export function fillSnapshots(transaction: Transaction): void {
  addLookups(transaction);
  const minutes = Array.from({ length: 10 }, (_, n) => n).filter((n) => n !== 5);
  const at = (n: number) => SNAPSHOTS_FROM + n * MINUTE;
  const market = { exchangeId: "kraken-id", marketId: "btc-usd-id" };
  const perpetual = { ...market, derivativeType: "perpetuals" };
  fill(transaction, {
    contracts: [{ id: "perp-id", exchangeName: "BTCUSD-PERP", ...perpetual }],
    records: {
      exchange_ticks: minutes.map((n) => ({
        ...{ ...market, ts: at(n), last: decimal(`${100 + n}`), volume: decimal("7") },
        ...{ bid: decimal(n === 0 ? EXACT_BID : `${99 + n}`), ask: decimal(`${(n === 3 ? 101 : 102) + n}`) },
      })),
      derivative_ticks: minutes.map((n) => ({
        ...{ contractId: "perp-id", ...perpetual, ts: at(n), price: decimal(`${200 + n}`) },
        ...{ fundingRate: decimal(`0.00${10 + n}`), openInterest: decimal(`${5000 + n}`) },
      })),
      market_caps: minutes.map((n) => ({
        ...{ assetId: "btc-id", ts: at(n), rank: 1 },
        ...{ price: decimal(`${300 + n}`), marketCap: decimal(`${9e9 + n}`) },
      })),
    },
    series: [
      {
        from: at(0),
        rules: { settleDelay: 2 * MINUTE, period: MINUTE },
        rows: minutes.map((n) => ({ ts: at(n), price: decimal(`${400 + n}`) })),
        settled: [[at(0), at(10)]],
      },
    ],
  });
  for (const n of minutes)
    for (const [stream, exchangeId] of [
      ["exchange_ticks", "kraken-id"],
      // The settings first selected all exchanges.
      ["derivative_ticks", n < 3 ? null : "kraken-id"],
      ["market_caps", null],
    ] as const)
      settleSnapshot(transaction, { stream, exchangeId, at: at(n), cadence: MINUTE });
}
