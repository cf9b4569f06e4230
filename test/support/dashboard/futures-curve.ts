import { writeContracts, writeLookup } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { emptyRecord } from "../empty-record.ts";
import { decimal } from "../warehouse/records.ts";
import { DAY, nowTs } from "./filled-warehouse.ts";

const kept = { quality: null, extra: null };
const all = { isComplete: true };

/** Futures of BTC/USD on seven exchanges, two expiries each; on an eighth they have no index to compare them with. */
export function fillFuturesCurve(transaction: Transaction): void {
  const asset = { name: null, status: "ACTIVE", type: "CRYPTO", url: null, contractAddress: null, ...kept };
  const assets = ["BTC", "USD"].map((symbol) => ({ ...asset, id: `${symbol}-id`, symbol }));
  writeLookup(transaction, "assets", assets, all);
  const market = { id: "market", baseAssetId: "BTC-id", quoteAssetId: "USD-id", ...kept };
  writeLookup(transaction, "markets", [market], all);
  const exchanges = Array.from({ length: 8 }, (_, i) => `Exchange ${i + 1}`);
  const exchange = { url: null, status: "ACTIVE", markets: [], symbols: [], ...kept };
  writeLookup(
    transaction,
    "exchanges",
    exchanges.map((name) => ({ ...exchange, id: name, name })),
    all,
  );
  for (const [i, exchangeId] of exchanges.entries()) {
    const key = { exchangeId, derivativeType: "futures" as const };
    const contracts = [30, 90].map((days) => ({
      ...{ ...key, ...kept, id: `${exchangeId} ${days}`, marketId: "market", exchangeName: `BTC ${days}` },
      ...{ settlementCurrency: "USD", contractValue: decimal("1"), valueCurrency: "USD" },
      ...{ optionType: null, optionStrike: null, listing: null, expiration: nowTs + days * DAY },
    }));
    writeContracts(transaction, contracts, { ...all, ...key });
    const ticks = contracts.map(({ id }, at) => ({
      ...{ ...emptyRecord("derivative_ticks"), ...key, contractId: id, ts: nowTs },
      price: decimal(String(60_100 + 10 * i + 100 * at)),
      indexPrice: i < 7 ? decimal("60000") : null,
    }));
    writeRecords(transaction, "derivative_ticks", ticks, "rest");
  }
}
