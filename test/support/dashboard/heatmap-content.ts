import { startOfDay } from "../../../src/model/time.ts";
import { beginLiveSpans, extendLiveSpans } from "../../../src/warehouse/coverage/live-spans.ts";
import { recordStreamHealth } from "../../../src/warehouse/rows/stream-stats.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { DAY, fill, HOUR, nowTs, STEP } from "../warehouse/filled-warehouse.ts";
import { decimal } from "../warehouse/records.ts";

/** A name that runs a script if a page inserts it as markup. */
export const hostileName = `<img src=x onerror="document.title='taken'">`;

const symbols = "BTC ETH XRP SOL ADA DOT LTC AVAX LINK UNI ATOM XLM ALGO".split(" ");
const assets = [...symbols, hostileName];
const prices = ["61204.5", "3318.27", "0.5233", "148.02", "0.000012345678", "1.00012"];
const exchanges = ["Kraken", "Bitstamp", "Coinbase"];
const idOf = (name: string) => `${name}-id`;
const byId = (names: readonly string[]) => Object.fromEntries(names.map((name) => [idOf(name), name]));

/** A series of ticks with one at both ends of each settled range. */
function ticksOf(indexType: string, indexId: string, from: number, settled: readonly [number, number][]) {
  const first = indexId.length * 3 + indexId.charCodeAt(0);
  const rows = settled.flatMap(([start, end]) =>
    [start, end - STEP].map((ts, i) => ({ ts, price: decimal(prices[(first + i) % prices.length] ?? "1") })),
  );
  return { indexType, indexId, from, settled, rows };
}

/** Every state of a heat map, in every stream that has a ledger. */
export function fillEveryState(transaction: Transaction): void {
  const head = nowTs - 20e6;
  const today = startOfDay(nowTs);
  const dayAgo = (days: number) => nowTs - days * DAY;
  const days = Array.from({ length: 30 }, (_, i) => 30 - i);
  fill(transaction, {
    assets: byId(assets),
    exchanges: byId(exchanges),
    series: [
      ...["BLX", "ELX", "XRPLX"].map((id, i) =>
        ticksOf("LX", id, dayAgo(199), [[dayAgo(199), head - i * HOUR]]),
      ),
      ...assets.map((symbol, i) =>
        ticksOf("GWA", idOf(symbol), dayAgo(i === 5 ? 260 : 199), [
          [dayAgo(i === 4 ? 90 : 199), dayAgo(40 + i)],
          [dayAgo(40 + i - (i % 3) * 0.6), head - 1.5 * HOUR],
        ]),
      ),
      ...assets.slice(0, 5).map((symbol, i) => ({
        ...{ stream: "ohlcv" as const, indexId: idOf(symbol), from: today - 2400 * DAY },
        settled: [[today - (2400 - i * 300) * DAY, today] as const],
      })),
    ],
    snapshots: days.flatMap((ago) => [
      { stream: "market_caps" as const, at: dayAgo(ago), cadence: ago === 12 ? 0.4 * DAY : DAY },
      ...exchanges.map((name) => ({
        ...{ stream: "exchange_ticks" as const, exchangeId: idOf(name), at: dayAgo(ago), cadence: DAY },
      })),
    ]),
    records: {
      market_caps: symbols.map((symbol, i) => ({
        ...{ assetId: idOf(symbol), ts: nowTs - 120e6, rank: i + 1, price: decimal("1") },
      })),
    },
  });
  beginLiveSpans(transaction, [{ indexType: "GWA", from: nowTs - 2 * HOUR }]);
  extendLiveSpans(transaction, [{ indexType: "GWA", indexId: "", ts: nowTs + DAY }]);
  const error = "403 Forbidden: the token lacks read:derivatives";
  const missingScopes = ["read:derivatives"];
  recordStreamHealth(transaction, [{ stream: "derivative_ticks", error, missingScopes }]);
}
