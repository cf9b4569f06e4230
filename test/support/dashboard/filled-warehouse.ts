import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { HistoryStream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, startOfDay } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { settle } from "../../../src/warehouse/coverage/ledger.ts";
import { beginLiveSpans, extendLiveSpans } from "../../../src/warehouse/coverage/live-spans.ts";
import { settleSnapshot } from "../../../src/warehouse/coverage/snapshot-coverage.ts";
import { declareTargets } from "../../../src/warehouse/coverage/targets.ts";
import { writeLookup } from "../../../src/warehouse/lookups/lookup-writer.ts";
import { writeRecords } from "../../../src/warehouse/rows/row-writer.ts";
import { recordMissingScopes, recordStreamError } from "../../../src/warehouse/rows/stream-stats.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { emptyRecord } from "../empty-record.ts";
import { present as nowTs } from "../present.ts";
import { type AtEnd, temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse } from "../warehouse/empty-warehouse.ts";
import { bar, decimal, tick } from "../warehouse/records.ts";

export const HOUR = 3600 * MICROS_PER_SECOND;
export const DAY = MICROS_PER_DAY;
export { nowTs };

/** A name that runs a script if a page inserts it as markup. */
export const hostileName = `<img src=x onerror="document.title='taken'">`;

const symbols = [
  "BTC",
  "ETH",
  "XRP",
  "SOL",
  "ADA",
  "DOT",
  "LTC",
  "AVAX",
  "LINK",
  "UNI",
  "ATOM",
  "XLM",
  "ALGO",
];
const assets = [...symbols, hostileName];
const prices = ["61204.5", "3318.27", "0.5233", "148.02", "0.000012345678", "1.00012"];
const emptyFields = { quality: null, extra: null };

export function openFilledWarehouse(
  fill: (transaction: Transaction) => void = fillAll,
  atEnd: AtEnd = onTestFinished,
): WarehouseWriter {
  const path = join(temporaryFolder(atEnd), "mds.sqlite");
  copyEmptyWarehouse(path);
  const warehouse = openWriter(path, { clock: systemClock });
  atEnd(() => warehouse.close());
  warehouse.transaction(fill);
  return warehouse;
}

/** Adds series with their targets and settled ranges, and rows at both ends of each settled range. */
export function addSeries(
  transaction: Transaction,
  stream: HistoryStream,
  lines: readonly {
    indexType: string;
    indexId: string;
    from: Micros;
    settled: readonly [Micros, Micros][];
  }[],
): void {
  const rules =
    stream === "ohlcv"
      ? { settleDelay: 60 * MICROS_PER_SECOND, period: DAY, step: DAY, serviceWindow: null }
      : {
          settleDelay: 60 * MICROS_PER_SECOND,
          period: 30 * MICROS_PER_SECOND,
          step: 1,
          serviceWindow: 200 * DAY,
        };
  const keyed = lines.map((line) => ({
    ...line,
    line: { stream, series: transaction.dictionary.getSeriesKey(line.indexType, line.indexId) },
  }));
  declareTargets(
    transaction,
    stream,
    keyed.map(({ line, from }) => ({ key: line, from, ...rules })),
    nowTs,
  );
  for (const { line, indexType, indexId, settled } of keyed) {
    for (const [from, to] of settled) {
      if (stream === "ohlcv")
        writeRecords(transaction, stream, [bar(from, "5", { indexType, indexId })], "rest");
      else {
        const ticks = [from, to - 30 * MICROS_PER_SECOND].map((ts, i) =>
          tick(ts, prices[(indexId.length * 3 + indexId.charCodeAt(0) + i) % prices.length] ?? "1", {
            indexType,
            indexId,
          }),
        );
        writeRecords(transaction, stream, ticks, "rest");
      }
      settle(transaction, line, { from, to }, "rows");
    }
  }
}

/** Every state of a heat map, in every stream that has a ledger. */
function fillAll(transaction: Transaction): void {
  const idOf = (symbol: string) => `${symbol}-id`;
  writeLookup(
    transaction,
    "assets",
    assets.map((symbol) => ({
      id: idOf(symbol),
      symbol,
      name: symbol,
      status: "ACTIVE",
      type: "CRYPTO",
      url: null,
      contractAddress: null,
      ...emptyFields,
    })),
    { isComplete: true },
  );
  const exchanges = ["Kraken", "Bitstamp", "Coinbase"].map((name) => ({ id: `${name}-id`, name }));
  writeLookup(
    transaction,
    "exchanges",
    exchanges.map((exchange) => ({
      ...exchange,
      url: null,
      status: "ACTIVE",
      markets: [],
      symbols: [],
      ...emptyFields,
    })),
    { isComplete: true },
  );
  const head = nowTs - 20 * MICROS_PER_SECOND;
  addSeries(transaction, "index_ticks", [
    ...["BLX", "ELX", "XRPLX"].map((indexId, i) => ({
      indexType: "LX",
      indexId,
      from: nowTs - 199 * DAY,
      settled: [[nowTs - 199 * DAY, head - i * HOUR]] as [Micros, Micros][],
    })),
    ...assets.map((symbol, i) => ({
      indexType: "GWA",
      indexId: idOf(symbol),
      from: nowTs - (i === 5 ? 260 : 199) * DAY,
      settled: [
        [nowTs - (i === 4 ? 90 : 199) * DAY, nowTs - (40 + i) * DAY],
        [nowTs - (40 + i - (i % 3) * 0.6) * DAY, head - 1.5 * HOUR],
      ] as [Micros, Micros][],
    })),
  ]);
  addSeries(
    transaction,
    "ohlcv",
    assets.slice(0, 5).map((symbol, i) => ({
      indexType: "GWA",
      indexId: idOf(symbol),
      from: startOfDay(nowTs) - 2400 * DAY,
      settled: [[startOfDay(nowTs) - (2400 - i * 300) * DAY, startOfDay(nowTs)]],
    })),
  );
  beginLiveSpans(transaction, [{ indexType: "GWA", from: nowTs - 2 * HOUR }]);
  extendLiveSpans(transaction, "GWA", nowTs + DAY);
  for (let ago = 30; ago > 0; ago--) {
    const cadence = ago === 12 ? 0.4 * DAY : DAY;
    settleSnapshot(transaction, {
      stream: "market_caps",
      exchangeId: null,
      at: nowTs - ago * DAY,
      cadence,
    });
    for (const { id } of exchanges) {
      settleSnapshot(transaction, {
        stream: "exchange_ticks",
        exchangeId: id,
        at: nowTs - ago * DAY,
        cadence: DAY,
      });
    }
  }
  const caps = symbols.map((symbol, i) => ({
    ...emptyRecord("market_caps"),
    assetId: idOf(symbol),
    ts: nowTs - 120 * MICROS_PER_SECOND,
    rank: i + 1,
    price: decimal("1"),
  }));
  writeRecords(transaction, "market_caps", caps, "rest");
  recordStreamError(transaction, "derivative_ticks", "403 Forbidden: the token lacks read:derivatives");
  recordMissingScopes(transaction, "derivative_ticks", ["read:derivatives"]);
}
