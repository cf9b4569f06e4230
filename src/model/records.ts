import type { CamelCase, Column, FieldReading, FieldValues } from "./column.ts";
import { camelCase } from "./column.ts";
import type { exchangeMarketColumns, exchangeSymbolColumns } from "./stream-columns.ts";
import { type Stream, streamTable } from "./streams.ts";

/*
 * The records of the service, once decoded. A field that the record lacked is null, and so is a figure that could not be
 * read; `quality` then names it and the reason. Fields with a list of values hold the text as it came: the service may
 * add values. The properties are the columns of the stream table that have a field, in camel case.
 */

/** A column that records have a property for. The timestamp of a record is `ts`, also where its row has a day. */
type Property<C extends Column> = C["reading"] extends FieldReading
  ? C["source"] extends "time"
    ? "ts"
    : CamelCase<C["name"]>
  : never;

type Properties<Columns extends readonly Column[]> = {
  readonly [C in Columns[number] as Property<C>]: C["reading"] extends FieldReading
    ? FieldValues[C["reading"]]
    : never;
};

interface RecordNotes {
  /** What is doubtful about the record, in words, with the raw value; null when nothing is. */
  readonly quality: string | null;
  /** Properties that this version does not know, as a JSON object with sorted keys; null when there are none. */
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
export interface StreamRecords {
  assets: Asset;
  markets: Market;
  exchanges: Exchange;
  derivative_contracts: DerivativeContract;
  ohlcv: DailyBar;
  index_ticks: IndexTick;
  exchange_ticks: ExchangeTick;
  market_caps: MarketCap;
  derivative_ticks: DerivativeTick;
}

/** The property of a record that a column is read into. */
export function propertyOf({ name, source }: Column): string {
  return source === "time" ? "ts" : camelCase(name);
}

/** A record whose properties are all null: for callers that have only some of them. */
export function emptyRecord<S extends Stream>(stream: S): { [P in keyof StreamRecords[S]]: null } {
  const columns: readonly Column[] = streamTable[stream].columns;
  const names = columns.filter(({ reading }) => reading !== null).map(propertyOf);
  const entries = [...names, "quality", "extra"].map((name) => [name, null]);
  return Object.fromEntries(entries) as { [P in keyof StreamRecords[S]]: null };
}

/** A record that could not be read at all, stored verbatim. */
export interface Reject {
  readonly reason: string;
  readonly raw: string;
}

/** A property that this version does not know, counted where it was found. */
export interface UnknownField {
  readonly name: string;
  readonly count: number;
  readonly sample: string;
}
