import type { Decimal } from "../../model/decimal.ts";
import type { IndexTick, StreamRecords } from "../../model/records.ts";
import { formatDay, formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Transaction } from "./transaction.ts";

/** The streams whose records are rows with a moment. */
export type RowStream = "index_ticks" | "ohlcv" | "exchange_ticks" | "market_caps" | "derivative_ticks";

export type Value = number | string | null;
type Moment = number | string;

/** How the records of one stream become rows of its table: key, moment, the columns below, in this order. */
export interface RowTable<Row> {
  readonly stream: RowStream;
  readonly table: string;
  readonly keyColumn: string;
  readonly momentColumn: string;
  /** The columns after key and moment; the last one is `aside`. */
  readonly columns: readonly string[];
  /** How many of `columns`, from the first, are decimals. */
  readonly decimals: number;
  /** Where `source` stands among `columns`, for streams that also come live; -1 for the others. */
  readonly sourceAt: number;
  key(transaction: Transaction, record: Row): number;
  ts(record: Row): Micros;
  /** A timestamp as the table's moment column holds it. */
  moment(ts: Micros): Moment;
  momentTs(moment: Moment): Micros;
  /** Whether two records certainly have the same key: spares a lookup for each row of a page. */
  alike(a: Row, b: Row): boolean;
  /** Appends the values of `columns`. `source`: 0 REST, 1 live. */
  encode(record: Row, source: number, values: Value[]): void;
  readonly lean?: LeanForm<Row>;
  /** What the record calls its series, where it does. */
  nameOf?(record: Row): string | null;
}

/**
 * The form of an ordinary REST row of the hot path: the columns left out are null, `source` is 0 and the key is bound
 * once for all rows of the statement. Half as many values to bind are a third of the time.
 */
export interface LeanForm<Row> {
  readonly columns: readonly string[];
  /** Puts moment and columns in the place of row number `row`, or returns false for a record that needs more than they hold. */
  encode(record: Row, values: Value[], row: number): boolean;
}

const byTs = {
  momentColumn: "ts",
  moment: (ts: Micros): Moment => ts,
  momentTs: (moment: Moment): Micros => moment as Micros,
};

/** Days are the moments of bars: a bound inside a day means the next one, as for any row that begins at midnight. */
const byDay = {
  momentColumn: "day",
  moment: (ts: Micros): Moment => formatDay(Math.ceil(ts / MICROS_PER_DAY) * MICROS_PER_DAY),
  momentTs: (moment: Moment): Micros => Date.parse(`${moment}T00:00:00Z`) * 1000,
};

interface Kept {
  readonly quality: string | null;
  readonly extra: string | null;
}

/** The row's nullable sidecar: always the same text for the same content, so that texts can be compared. */
function asideOf(names: readonly string[], decimals: readonly (Decimal | null)[], kept: Kept): string | null {
  let entries: Record<string, string> | undefined;
  for (let i = 0; i < decimals.length; i++) {
    const exact = decimals[i]?.exact;
    if (typeof exact !== "string") continue;
    entries ??= {};
    entries[names[i] as string] = exact;
  }
  if (kept.quality !== null) entries = { ...entries, quality: kept.quality };
  if (kept.extra !== null) entries = { ...entries, extra: kept.extra };
  return entries === undefined ? null : JSON.stringify(entries);
}

function pushDecimals(
  names: readonly string[],
  decimals: readonly (Decimal | null)[],
  rest: readonly Value[],
  kept: Kept,
  values: Value[],
): void {
  for (const decimal of decimals) values.push(decimal === null ? null : decimal.real);
  values.push(...rest, asideOf(names, decimals, kept));
}

const tickDecimals = ["price", "volume", "tick_volume"];

const leanTick: LeanForm<IndexTick> = {
  columns: ["price", "volume"],
  encode(tick, values, row) {
    const { price, volume } = tick;
    if (price === null || volume === null || price.exact !== null || volume.exact !== null) return false;
    if (tick.tickVolume !== null || tick.quality !== null || tick.extra !== null) return false;
    const at = row * 3;
    values[at] = tick.ts;
    values[at + 1] = price.real;
    values[at + 2] = volume.real;
    return true;
  },
};

const barDecimals = ["open", "high", "low", "close", "volume", "volume_usd", "vwap", "twap"];
const exchangeDecimals = ["last", "bid", "ask", "volume"];
const capDecimals = [
  "price",
  "volume",
  "market_cap",
  "total_market_cap",
  "free_float_supply",
  "total_supply",
  "change_24h",
  "change_7d",
  "change_30d",
];
const derivativeDecimals = [
  "price",
  "volume",
  "volume_usd",
  "open_interest",
  "open_interest_usd",
  "bid",
  "ask",
  "index_price",
  "mark_price",
  "funding_rate",
];

export const rowTables: { readonly [S in RowStream]: RowTable<StreamRecords[S]> } = {
  index_ticks: {
    ...byTs,
    stream: "index_ticks",
    table: "index_tick_rows",
    keyColumn: "series",
    columns: [...tickDecimals, "source", "aside"],
    decimals: tickDecimals.length,
    sourceAt: tickDecimals.length,
    key: (transaction, tick) => transaction.dictionary.getSeriesKey(tick.indexType, tick.indexId),
    ts: (tick) => tick.ts,
    alike: (a, b) => a.indexId === b.indexId && a.indexType === b.indexType,
    encode(t, source, values) {
      pushDecimals(tickDecimals, [t.price, t.volume, t.tickVolume], [source], t, values);
    },
    lean: leanTick,
    // Only the liquid indices are named by their ticks; assets and markets are named by the lookups.
    nameOf: (tick) => (tick.indexType === "LX" ? tick.name : null),
  },
  ohlcv: {
    ...byDay,
    stream: "ohlcv",
    table: "daily_bar_rows",
    keyColumn: "series",
    columns: [...barDecimals, "record_id", "aside"],
    decimals: barDecimals.length,
    sourceAt: -1,
    key: (transaction, bar) => transaction.dictionary.getSeriesKey(bar.indexType, bar.indexId),
    ts: (bar) => bar.start,
    alike: (a, b) => a.indexId === b.indexId && a.indexType === b.indexType,
    encode(b, _source, values) {
      const figures = [b.open, b.high, b.low, b.close, b.volume, b.volumeUsd, b.vwap, b.twap];
      pushDecimals(barDecimals, figures, [b.recordId], b, values);
    },
  },
  exchange_ticks: {
    ...byTs,
    stream: "exchange_ticks",
    table: "exchange_tick_rows",
    keyColumn: "listing",
    columns: [...exchangeDecimals, "last_moved", "source", "aside"],
    decimals: exchangeDecimals.length,
    sourceAt: exchangeDecimals.length + 1,
    key: (transaction, tick) => transaction.dictionary.getListingKey(tick.exchangeId, tick.marketId),
    ts: (tick) => tick.ts,
    alike: (a, b) => a.marketId === b.marketId && a.exchangeId === b.exchangeId,
    encode(t, source, values) {
      pushDecimals(exchangeDecimals, [t.last, t.bid, t.ask, t.volume], [t.lastMoved, source], t, values);
    },
  },
  market_caps: {
    ...byTs,
    stream: "market_caps",
    table: "market_cap_rows",
    keyColumn: "series",
    columns: [...capDecimals, "rank", "volume_rank", "aside"],
    decimals: capDecimals.length,
    sourceAt: -1,
    key: (transaction, cap) => transaction.dictionary.getSeriesKey("GWA", cap.assetId),
    ts: (cap) => cap.ts,
    alike: (a, b) => a.assetId === b.assetId,
    encode(c, _source, values) {
      const sizes = [c.price, c.volume, c.marketCap, c.totalMarketCap, c.freeFloatSupply, c.totalSupply];
      const changes = [c.change24h, c.change7d, c.change30d];
      pushDecimals(capDecimals, [...sizes, ...changes], [c.rank, c.volumeRank], c, values);
    },
  },
  derivative_ticks: {
    ...byTs,
    stream: "derivative_ticks",
    table: "derivative_tick_rows",
    keyColumn: "contract",
    columns: [...derivativeDecimals, "aside"],
    decimals: derivativeDecimals.length,
    sourceAt: -1,
    key: (transaction, tick) =>
      transaction.dictionary.getContractKey(tick.derivativeType, tick.contractId, {
        exchangeId: tick.exchangeId,
        marketId: tick.marketId,
        firstSeen: formatTimestamp(transaction.now),
      }),
    ts: (tick) => tick.ts,
    alike: (a, b) => a.contractId === b.contractId && a.derivativeType === b.derivativeType,
    encode(t, _source, values) {
      const trade = [t.price, t.volume, t.volumeUsd, t.openInterest, t.openInterestUsd];
      const marks = [t.bid, t.ask, t.indexPrice, t.markPrice, t.fundingRate];
      pushDecimals(derivativeDecimals, [...trade, ...marks], [], t, values);
    },
  },
};
