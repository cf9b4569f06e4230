import type { DailyBar, DerivativeTick, ExchangeTick, IndexTick, MarketCap } from "../../model/records.ts";
import { indexTypes } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, startOfDay } from "../../model/time.ts";
import { toCanonicalJson } from "./json-source.ts";
import type { Properties, RecordReader } from "./record-reader.ts";

/** What the request knew that the record does not say. */
export interface DecodeContext {
  readonly derivativeType?: string | undefined;
}

export type ReadRecord<R> = (reader: RecordReader, fields: Properties, context: DecodeContext) => R;

const knownIndexTypes: ReadonlySet<string> = new Set(indexTypes);

const indexTickFields: ReadonlySet<string> = new Set([
  "event",
  "id",
  "indexId",
  "indexType",
  "price",
  "volume",
  "timestamp",
  "tickVolume",
  "name",
]);

export const readIndexTick: ReadRecord<IndexTick> = (reader, fields) => {
  // Nothing keeps the record's own id; what no id can be still shows a record that nobody should believe.
  reader.id("id", fields.id);
  return {
    indexType: indexType(reader, fields.indexType),
    indexId: reader.identity("indexId", fields.indexId),
    ts: reader.timestamp("timestamp", fields.timestamp),
    price: reader.coreAmount("price", fields.price),
    volume: reader.amount("volume", fields.volume),
    tickVolume: reader.optionalAmount("tickVolume", fields.tickVolume),
    name: reader.text("name", fields.name),
    quality: reader.quality(),
    extra: reader.extra(indexTickFields),
  };
};

function indexType(reader: RecordReader, value: unknown): string {
  if (typeof value === "string" && knownIndexTypes.has(value)) return value;
  const text = reader.identity("indexType", value);
  return text === "" ? text : (reader.oneOf("indexType", text, knownIndexTypes) ?? "");
}

const exchangeTickFields: ReadonlySet<string> = new Set([
  "event",
  "id",
  "exchangeId",
  "marketId",
  "last",
  "volume",
  "bid",
  "ask",
  "timestamp",
  "lastMoved",
]);

export const readExchangeTick: ReadRecord<ExchangeTick> = (reader, fields) => ({
  recordId: reader.id("id", fields.id),
  exchangeId: reader.identity("exchangeId", fields.exchangeId),
  marketId: reader.identity("marketId", fields.marketId),
  ts: reader.timestamp("timestamp", fields.timestamp),
  last: reader.coreAmount("last", fields.last),
  bid: reader.amount("bid", fields.bid),
  ask: reader.amount("ask", fields.ask),
  volume: reader.amount("volume", fields.volume),
  lastMoved: reader.moment("lastMoved", fields.lastMoved),
  quality: reader.quality(),
  extra: reader.extra(exchangeTickFields),
});

const dailyBarFields: ReadonlySet<string> = new Set([
  "id",
  "indexId",
  "indexType",
  "open",
  "high",
  "low",
  "close",
  "volume",
  "volumeUsd",
  "vwap",
  "twap",
  "startTimestamp",
  "endTimestamp",
  "timestamp",
]);

export const readDailyBar: ReadRecord<DailyBar> = (reader, fields) => {
  const bar = {
    recordId: reader.id("id", fields.id),
    indexType: indexType(reader, fields.indexType),
    indexId: reader.identity("indexId", fields.indexId),
    start: barStart(reader, fields),
    open: reader.coreAmount("open", fields.open),
    high: reader.coreAmount("high", fields.high),
    low: reader.coreAmount("low", fields.low),
    close: reader.coreAmount("close", fields.close),
    volume: reader.amount("volume", fields.volume),
    volumeUsd: reader.optionalAmount("volumeUsd", fields.volumeUsd),
    vwap: reader.optionalAmount("vwap", fields.vwap),
    twap: reader.optionalAmount("twap", fields.twap),
  };
  const { open, high, low, close } = bar;
  if (high && low && high.real < low.real) reader.note("high", "is below low");
  else {
    for (const [name, figure] of [["open", open] as const, ["close", close] as const]) {
      if (figure && high && figure.real > high.real) reader.note(name, "is above high");
      if (figure && low && figure.real < low.real) reader.note(name, "is below low");
    }
  }
  return { ...bar, quality: reader.quality(), extra: reader.extra(dailyBarFields) };
};

/** The day that a bar covers, from the first of its moments that can be read. */
function barStart(reader: RecordReader, fields: Properties): Micros {
  const end = reader.moment("endTimestamp", fields.endTimestamp);
  for (const name of ["startTimestamp", "timestamp"]) {
    const moment = reader.moment(name, fields[name]);
    if (moment === null) continue;
    const start = startOfDay(moment);
    if (start !== moment) reader.note(name, "is not the start of a UTC day", String(fields[name]));
    // An earlier end is today's unfinished bar; a later one is not a day.
    if (end !== null && endOfDay(end) > start + MICROS_PER_DAY)
      reader.note("endTimestamp", "is past the day", String(fields.endTimestamp));
    return reader.plausible(name, start);
  }
  if (end === null) {
    const named = ["startTimestamp", "timestamp", "endTimestamp"].find((name) => fields[name] != null);
    reader.rejection ??= named ? `${named} is not a UTC moment` : "startTimestamp is missing";
    return 0;
  }
  const midnight = endOfDay(end);
  if (midnight % MICROS_PER_DAY !== 0)
    reader.note("endTimestamp", "is not the end of a UTC day", String(fields.endTimestamp));
  return reader.plausible("endTimestamp", startOfDay(midnight - 1));
}

/** A bar's end comes as the next midnight or as the last second, millisecond or microsecond before it. */
function endOfDay(end: Micros): Micros {
  const next = startOfDay(end) + MICROS_PER_DAY;
  return next - end <= MICROS_PER_SECOND ? next : end;
}

const marketCapFields: ReadonlySet<string> = new Set([
  "id",
  "assetId",
  "timestamp",
  "marketCapRank",
  "volumeRank",
  "price",
  "volume",
  "totalSupply",
  "freeFloatSupply",
  "marketCap",
  "totalMarketCap",
  "marketCapPercentChange",
]);

const otherPercentChanges: ReadonlySet<string> = new Set([
  "totalMarketCapPercentChange",
  "volumePercentChange",
  "pricePercentChange",
]);

const percentChangeFields: ReadonlySet<string> = new Set(["change24h", "change7d", "change30d"]);

export const readMarketCap: ReadRecord<MarketCap> = (reader, fields) => ({
  recordId: reader.id("id", fields.id),
  assetId: reader.identity("assetId", fields.assetId),
  ts: reader.timestamp("timestamp", fields.timestamp),
  rank: reader.rank("marketCapRank", fields.marketCapRank),
  volumeRank: reader.rank("volumeRank", fields.volumeRank),
  price: reader.coreAmount("price", fields.price),
  volume: reader.amount("volume", fields.volume),
  marketCap: reader.coreAmount("marketCap", fields.marketCap),
  totalMarketCap: reader.amount("totalMarketCap", fields.totalMarketCap),
  freeFloatSupply: reader.amount("freeFloatSupply", fields.freeFloatSupply),
  totalSupply: reader.amount("totalSupply", fields.totalSupply),
  ...percentChange(reader, fields.marketCapPercentChange),
  quality: reader.quality(),
  extra: reader.extra(marketCapFields, otherPercentChanges),
});

function percentChange(reader: RecordReader, value: unknown) {
  const nested = reader.nested("marketCapPercentChange", value);
  if (!nested) return { change24h: null, change7d: null, change30d: null };
  const { reader: inner, properties } = nested;
  const change = {
    change24h: inner.rate("change24h", properties.change24h),
    change7d: inner.rate("change7d", properties.change7d),
    change30d: inner.rate("change30d", properties.change30d),
  };
  reader.adopt(inner.quality());
  if (inner.extra(percentChangeFields) !== null)
    reader.keep("marketCapPercentChange", toCanonicalJson(reader.sourceOf("marketCapPercentChange")));
  return change;
}

const derivativeTickFields: ReadonlySet<string> = new Set([
  "id",
  "contractId",
  "exchangeId",
  "marketId",
  "timestamp",
  "price",
  "volume",
  "volumeUsd",
  "bid",
  "ask",
  "openInterest",
  "openInterestUsd",
  "indexPrice",
  "markPrice",
  "fundingRate",
]);

export const readDerivativeTick: ReadRecord<DerivativeTick> = (reader, fields, context) => ({
  recordId: reader.id("id", fields.id),
  contractId: reader.identity("contractId", fields.contractId),
  derivativeType: reader.identity("derivativeType", context.derivativeType ?? fields.derivativeType),
  exchangeId: reader.id("exchangeId", fields.exchangeId),
  marketId: reader.id("marketId", fields.marketId),
  ts: reader.timestamp("timestamp", fields.timestamp),
  price: reader.coreAmount("price", fields.price),
  volume: reader.amount("volume", fields.volume),
  volumeUsd: reader.optionalAmount("volumeUsd", fields.volumeUsd),
  openInterest: reader.amount("openInterest", fields.openInterest),
  openInterestUsd: reader.optionalAmount("openInterestUsd", fields.openInterestUsd),
  bid: reader.amount("bid", fields.bid),
  ask: reader.amount("ask", fields.ask),
  indexPrice: reader.optionalAmount("indexPrice", fields.indexPrice),
  markPrice: reader.optionalAmount("markPrice", fields.markPrice),
  fundingRate: reader.rate("fundingRate", fields.fundingRate),
  quality: reader.quality(),
  extra: reader.extra(derivativeTickFields),
});
