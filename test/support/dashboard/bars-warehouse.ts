import type { Micros } from "../../../src/model/time.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { declareWanted } from "../../../src/warehouse/coverage/targets.ts";
import { writeAssets } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { tick } from "../warehouse/records.ts";
import { DAY, HOUR, hostileName, present } from "./filled-warehouse.ts";

const REFRESH = 30_000_000;
const MINUTE = 60_000_000;

/** The last whole hour, from which the stretches below are counted back. */
export const lastHour: Micros = Math.floor(present / HOUR) * HOUR;
const beginning = lastHour - 3 * DAY;
const settledTo = lastHour - 40 * MINUTE;

/** What is missing of BTC, in hours before the last whole hour. */
export const stretches = {
  lost: { from: lastHour - 50 * HOUR, to: lastHour - 47 * HOUR },
  open: { from: lastHour - 30 * HOUR, to: lastHour - 26 * HOUR },
  empty: { from: lastHour - 14 * HOUR, to: lastHour - 12 * HOUR },
  /** Shorter than a bar. */
  sliver: { from: lastHour - 6.5 * HOUR, to: lastHour - 6.5 * HOUR + 5 * MINUTE },
};

/** Smooth enough to look like a market, and the same on every run. */
function priceAt(ts: Micros, level: number): string {
  const hours = (ts - beginning) / HOUR;
  const waves = Math.sin(hours / 9) * 0.02 + Math.sin(hours * 1.7) * 0.006 + Math.sin(hours * 31) * 0.002;
  return (level * (1 + waves)).toFixed(level > 100 ? 2 : 6);
}

function fill(
  transaction: Transaction,
  indexId: string,
  level: number,
  missing: { from: Micros; to: Micros }[],
) {
  const ticks = [];
  for (let ts = beginning; ts <= Math.max(lastHour, present - 5_000_000); ts += REFRESH) {
    if (!missing.some(({ from, to }) => ts >= from && ts < to))
      ticks.push(tick(ts, priceAt(ts, level), { indexType: "GWA", indexId }));
  }
  writeRecords(transaction, "index_ticks", ticks, "rest");
  const line = { stream: "index_ticks", series: transaction.dictionary.series("GWA", indexId) } as const;
  let from = beginning;
  for (const hole of [...missing, { from: settledTo, to: settledTo }]) {
    settle(transaction, line, { from, to: hole.from }, "rows");
    from = hole.to;
  }
  return line;
}

/** Three days of ticks every 30 seconds, with every kind of gap in BTC and none in the others. */
export function fillBars(transaction: Transaction): void {
  const kept = { url: null, contractAddress: null, quality: null, extra: null };
  const names = { "btc-id": "BTC", "eth-id": "ETH", "odd-id": hostileName };
  writeAssets(
    transaction,
    Object.entries(names).map(([id, symbol]) => ({
      ...{ id, symbol, name: symbol, status: "ACTIVE", type: "CRYPTO" },
      ...kept,
    })),
    { complete: true },
  );
  const btc = fill(transaction, "btc-id", 61_000, Object.values(stretches));
  const others = [fill(transaction, "eth-id", 3_300, []), fill(transaction, "odd-id", 0.00042, [])];
  const { lost, empty } = stretches;
  settle(transaction, btc, lost, "lost", "aged out");
  settle(transaction, btc, empty, "empty", "the service has none");
  // A step as long as all of time so far keeps the claim where it is: the head awaits its confirmation, however slow a test.
  const rules = { from: beginning, settleDelay: 2 * REFRESH, step: settledTo, keptFor: 200 * DAY };
  declareWanted(
    transaction,
    "index_ticks",
    [btc, ...others].map((line) => ({ line, ...rules })),
    present,
  );
}
