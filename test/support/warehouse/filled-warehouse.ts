import { join } from "node:path";
import { onTestFinished } from "vitest";
import type {
  Asset,
  DailyBar,
  DerivativeContract,
  Exchange,
  IndexTick,
  Market,
  StreamRecords,
} from "../../../src/model/records.ts";
import { type HistoryStream, historyStreams, type Stream } from "../../../src/model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { declareTargets, type StreamRules } from "../../../src/warehouse/coverage/targets.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { emptyRecord } from "../empty-record.ts";
import { midnight, present as nowTs } from "../present.ts";
import { type AtEnd, temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse, viewsBesideSync } from "./empty-warehouse.ts";
import { bar, tick } from "./records.ts";
import { settle } from "./settle.ts";
import { settleSnapshot } from "./settle-snapshot.ts";
import { writeContracts, writeLookup } from "./write-lists.ts";
import { writeRecords } from "./write-records.ts";

export const HOUR = 3600 * MICROS_PER_SECOND;
export const DAY = MICROS_PER_DAY;
export const STEP = 30 * MICROS_PER_SECOND;
export { midnight, nowTs };

type Ranges = readonly (readonly [from: Micros, to: Micros])[];

interface SeriesContent {
  readonly stream?: HistoryStream;
  readonly indexType?: string;
  readonly indexId?: string;
  /** The start of its target; without it the settings do not select the series. */
  readonly from?: Micros;
  /** What differs from the rules of its stream. */
  readonly rules?: Partial<StreamRules>;
  /** Default: one at the start of each settled range. */
  readonly rows?: readonly (Partial<IndexTick | DailyBar> & { ts: Micros })[];
  readonly settled?: Ranges;
  readonly empty?: Ranges;
  readonly lost?: Ranges;
}

/** What a warehouse holds. Lookups are by id, with a symbol or name, or with whatever differs from an ordinary entry. */
interface Content {
  readonly assets?: Readonly<Record<string, string | Partial<Asset>>>;
  readonly markets?: Readonly<Record<string, readonly [base: string, quote: string, more?: Partial<Market>]>>;
  readonly exchanges?: Readonly<Record<string, string | Partial<Exchange>>>;
  readonly contracts?: readonly (Partial<DerivativeContract> &
    Pick<DerivativeContract, "id" | "derivativeType" | "exchangeId">)[];
  readonly series?: readonly SeriesContent[];
  readonly records?: { readonly [S in Stream]?: readonly Partial<StreamRecords[S]>[] };
  readonly snapshots?: readonly {
    stream: "exchange_ticks" | "market_caps";
    exchangeId?: string;
    at: Micros;
    cadence?: Micros;
  }[];
}

const rulesOf: Readonly<Record<HistoryStream, StreamRules>> = {
  ohlcv: { settleDelay: 2 * STEP, period: DAY, step: DAY, serviceWindow: null },
  index_ticks: { settleDelay: 2 * STEP, period: STEP, step: 1, serviceWindow: 200 * DAY },
};
const complete = { isComplete: true };
const notes = { quality: null, extra: null };

/** Adds `content` to a warehouse. */
export function fill(transaction: Transaction, content: Content): void {
  fillLookups(transaction, content);
  for (const stream of historyStreams) {
    const series = content.series?.filter((one) => (one.stream ?? "index_ticks") === stream) ?? [];
    if (series.length > 0) fillStream(transaction, stream, series);
  }
  for (const [stream, records = []] of Object.entries(content.records ?? {}))
    writeRecords(
      transaction,
      stream as "index_ticks",
      records.map((record) => ({ ...emptyRecord(stream as Stream), ...record })) as IndexTick[],
    );
  for (const { stream, exchangeId = null, at, cadence = STEP } of content.snapshots ?? [])
    settleSnapshot(transaction, { stream, exchangeId, at, cadence });
}

function fillLookups(transaction: Transaction, { assets, markets, exchanges, contracts }: Content): void {
  if (assets) {
    const asset = { status: "ACTIVE", type: "CRYPTO", url: null, contractAddress: null, ...notes };
    const list = Object.entries(assets).map(([id, more]) => {
      const { symbol, ...others } = typeof more === "string" ? { symbol: more } : more;
      return { ...asset, id, symbol: symbol ?? id, name: symbol ?? id, ...others };
    });
    writeLookup(transaction, "assets", list, complete);
  }
  if (markets) {
    const list = Object.entries(markets).map(([id, [baseAssetId, quoteAssetId, more]]) => ({
      ...{ id, baseAssetId, quoteAssetId, ...notes, ...more },
    }));
    writeLookup(transaction, "markets", list, complete);
  }
  if (exchanges) {
    const exchange = { url: null, status: "ACTIVE", markets: [], symbols: [], ...notes };
    const list = Object.entries(exchanges).map(([id, more]) => ({
      ...{ ...exchange, id, name: id, ...(typeof more === "string" ? { name: more } : more) },
    }));
    writeLookup(transaction, "exchanges", list, complete);
  }
  const kinds = Map.groupBy(contracts ?? [], (one) => `${one.derivativeType} ${one.exchangeId}`);
  for (const ofKind of kinds.values()) {
    const [{ derivativeType, exchangeId }] = ofKind as [DerivativeContract];
    const list = ofKind.map((more) => ({
      ...{ ...emptyRecord("derivative_contracts"), exchangeName: more.id, ...more },
    }));
    writeContracts(transaction, list, { ...complete, derivativeType, exchangeId: exchangeId ?? "" });
  }
}

function fillStream(transaction: Transaction, stream: HistoryStream, list: readonly SeriesContent[]): void {
  const rules = rulesOf[stream];
  const keyed = list.map((one) => {
    const { indexType = "GWA", indexId = "btc-id" } = one;
    const series = transaction.dictionary.getSeriesKey(indexType, indexId);
    return { ...one, indexType, indexId, key: { stream, series } };
  });
  const isOther = (series: number) => !keyed.some(({ key }) => key.series === series);
  // A declaration ends every target that it does not name.
  const earlier = transaction
    .statement<{ series: number; from: Micros }>(
      'SELECT series, from_ts AS "from" FROM targets WHERE stream = ? AND to_ts IS NULL',
    )
    .all([stream])
    .filter(({ series }) => isOther(series))
    .map(({ series, from }) => ({ key: { stream, series }, from, ...rules }));
  const declared = keyed.flatMap(({ key, from, rules: more }) =>
    from === undefined ? [] : [{ key, from, ...rules, ...more }],
  );
  if (declared.length > 0) declareTargets(transaction, stream, [...earlier, ...declared], nowTs);
  for (const { key, indexType, indexId, settled = [], empty = [], lost = [], ...one } of keyed) {
    const names = { indexType, indexId };
    const rows = one.rows ?? settled.map(([ts]) => ({ ts }));
    if (stream === "ohlcv")
      writeRecords(
        transaction,
        stream,
        rows.map(({ ts, ...more }) => bar(ts, "5", { ...names, ...more })),
      );
    else
      writeRecords(
        transaction,
        stream,
        rows.map(({ ts, ...more }) => tick(ts, "60000.25", { ...names, ...more })),
      );
    transaction.markWritten(stream, key.series);
    for (const [from, to] of settled) settle(transaction, key, { from, to }, "rows");
    for (const [from, to] of empty) settle(transaction, key, { from, to }, "empty", "the service has none");
    for (const [from, to] of lost) settle(transaction, key, { from, to }, "lost", "aged out");
  }
}

/** Opens a new warehouse after its first transaction. */
export function openFilledWarehouse(
  first: (transaction: Transaction) => void,
  atEnd: AtEnd = onTestFinished,
): WarehouseWriter {
  const path = join(temporaryFolder(atEnd), "mds.sqlite");
  copyEmptyWarehouse(path);
  const warehouse = openForWriting(path);
  atEnd(() => warehouse.close());
  warehouse.transaction(first);
  return warehouse;
}

/** Creates a closed warehouse file; `first` is its only transaction. Each command opens it, so it has few views. */
export function createWarehouse(
  first: (transaction: Transaction) => void = () => {},
  { hasAllViews = false, atEnd = onTestFinished as AtEnd } = {},
): string {
  const path = join(temporaryFolder(atEnd), "mds.sqlite");
  copyEmptyWarehouse(path, hasAllViews ? undefined : viewsBesideSync);
  commitTo(path, first);
  return path;
}

/** Commits to a closed warehouse file. */
export function commitTo(path: string, work: (transaction: Transaction) => void): void {
  const warehouse = openForWriting(path);
  warehouse.transaction(work);
  warehouse.close();
}

/** Opens the writer again, as a running daemon would. */
export function openForWriting(path: string): WarehouseWriter {
  return openWriter(path, { clock: systemClock });
}
