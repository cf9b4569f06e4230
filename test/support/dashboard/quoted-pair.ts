import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { writeLookup } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { exchangeTick } from "../export/sample-data.ts";
import { decimal, tick } from "../warehouse/records.ts";
import { DAY, HOUR, nowTs } from "./filled-warehouse.ts";

const STEP = 600 * MICROS_PER_SECOND;
const kept = { quality: null, extra: null };

/** How far each exchange quotes from the index, in basis points; `Dead` has not moved for hours. */
const offsets = { Near: 2, Same: -0.02, Under: -7, "Far Bitcoin Exchange": 290, Dead: -400 };

/** BTC/USD on five exchanges, each ten minutes of a day. */
export function fillQuotedPair(transaction: Transaction): void {
  const all = { isComplete: true };
  const asset = { name: null, status: "ACTIVE", url: null, contractAddress: null, ...kept };
  const assets = Object.entries({ BTC: "CRYPTO", USD: "FIAT" }).map(([symbol, type]) => ({
    ...{ ...asset, id: `${symbol}-id`, symbol, type },
  }));
  writeLookup(transaction, "assets", assets, all);
  const market = { id: "market", baseAssetId: "BTC-id", quoteAssetId: "USD-id", ...kept };
  writeLookup(transaction, "markets", [market], all);
  writeLookup(
    transaction,
    "exchanges",
    Object.keys(offsets).map((name) => ({
      ...{ id: name, name, url: null, status: "ACTIVE", markets: [], symbols: [], ...kept },
    })),
    all,
  );
  for (let at = nowTs - DAY + STEP; at <= nowTs; at += STEP) {
    const step = Math.round((nowTs - at) / STEP);
    const index = 60_000 + 9 * step;
    writeRecords(transaction, "index_ticks", [tick(at, String(index), { indexId: "BTC-id" })], "rest");
    const ticks = Object.entries(offsets).map(([exchangeId, offset]) => {
      const last = index * (1 + offset / 10_000);
      const half = last * (0.0001 + 0.00001 * (step % 7));
      const [bid, ask] = [last - half, last + half].map((price) => decimal(price.toFixed(2)));
      const lastMoved = exchangeId === "Dead" ? nowTs - 30 * HOUR : at;
      return exchangeTick(at, last.toFixed(2), {
        ...{ exchangeId, marketId: "market", lastMoved },
        ...{ bid: bid ?? null, ask: ask ?? null },
      });
    });
    writeRecords(transaction, "exchange_ticks", ticks, "rest");
  }
}
