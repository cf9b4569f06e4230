import { type CamelCase, type Column, camelCase, type FieldReading, type FieldValues } from "./column.ts";
import type { exchangeMarketColumns, exchangeSymbolColumns } from "./stream-columns.ts";
import type { Stream, streamTable } from "./streams.ts";

/*
 * Decoded records of the service. A property is null if the record lacks the field or its value cannot be read;
 * `quality` reports unreadable values and missing core fields. Enumerations stay text, because the service may add
 * values. The properties are those columns of the stream table that records contain, in camel case.
 */

/** The property of a column that records contain. */
type Property<C extends Column> = C["reading"] extends FieldReading ? CamelCase<C["name"]> : never;

type Properties<Columns extends readonly Column[]> = {
  readonly [C in Columns[number] as Property<C>]: C["reading"] extends FieldReading
    ? FieldValues[C["reading"]]
    : never;
};

interface RecordNotes {
  /** The problems with the record in words, with the raw values; null if there are none. */
  readonly quality: string | null;
  /** Properties that this version does not know, as a JSON object with sorted keys; null if there are none. */
  readonly extra: string | null;
}

type RecordOf<S extends Stream> = Properties<(typeof streamTable)[S]["columns"]> & RecordNotes;

export type ExchangeMarket = Properties<typeof exchangeMarketColumns> & Pick<RecordNotes, "extra">;
export type ExchangeSymbol = Properties<typeof exchangeSymbolColumns> & Pick<RecordNotes, "extra">;

export type Asset = RecordOf<"assets">;
export type Market = RecordOf<"markets">;
export type Exchange = RecordOf<"exchanges"> & {
  readonly markets: readonly ExchangeMarket[];
  readonly symbols: readonly ExchangeSymbol[];
};
export type DerivativeContract = RecordOf<"derivative_contracts">;
export type DailyBar = RecordOf<"ohlcv">;
export type IndexTick = RecordOf<"index_ticks">;
export type ExchangeTick = RecordOf<"exchange_ticks">;
export type MarketCap = RecordOf<"market_caps">;
export type DerivativeTick = RecordOf<"derivative_ticks">;

/** The record type of each stream. */
export type StreamRecords = { [S in Stream]: S extends "exchanges" ? Exchange : RecordOf<S> };

/** The property of a record that a column is read into. */
export function propertyOf({ name }: Column): string {
  return camelCase(name);
}

/** A record that could not be read at all, stored verbatim. */
export interface Reject {
  readonly reason: string;
  readonly raw: string;
}

/** A property that this version does not know, and how often it occurred. */
export interface UnknownField {
  readonly name: string;
  readonly count: number;
  readonly sample: string;
}
