import { emptyDetails, type RowDetails } from "../../model/answers/bar-aggregate.ts";
import { type CommittedTick, toCommittedTick } from "../../model/answers/ticks.ts";
import { type Column, inStoredOrder } from "../../model/column.ts";
import { type Decimal, toPlainNotation } from "../../model/decimal.ts";
import { propertyOf, type StreamRecords } from "../../model/records.ts";
import { keyColumns, type RowStream, streamTable } from "../../model/streams.ts";
import { collectPlainTicks, type TickColumns } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import { pastTable, storedTable } from "./row-parts.ts";
import type { Transaction } from "./transaction.ts";

export type SqlValue = number | string | null;

/** What every row has. */
export interface Moment {
  readonly ts: Micros;
}

/** How the records of one stream become rows of its table: key, `ts`, the columns, in this order. */
export interface RowTable<Row extends Moment> extends ReturnType<typeof deriveFromStream> {
  key(transaction: Transaction, record: Row): number;
  /** The plain records in columns; appends the others to `others`. */
  collectPlain?(records: readonly Row[], others: Row[]): TickColumns;
  /** The name that the record gives its series. */
  nameOf?(record: Row): string | null;
  /** What open pages show of it; undefined: nothing. */
  toTick?(record: Row): CommittedTick | undefined;
}

/** The columns of a stream's row table after key and `ts`, without `details`: the decimals first. */
export function rowColumns(stream: RowStream): readonly Column[] {
  const columns = inStoredOrder(streamTable[stream].columns).filter(({ source }) => source === "row");
  const isDecimal = ({ type }: Column) => type === "decimal";
  return [...columns.filter(isDecimal), ...columns.filter((column) => !isDecimal(column))];
}

/** The properties of a row table that follow from the stream table. */
function deriveFromStream(stream: RowStream) {
  const stored = rowColumns(stream);
  const decimals = stored.filter(({ type }) => type === "decimal");
  const names = stored.map(({ name }) => name);
  const { table, dictionary } = streamTable[stream];
  return {
    stream,
    table,
    /** What the writer changes: `table`, or the table below that view (row-parts.ts). */
    storedTable: storedTable(stream),
    /** Where earlier versions are kept. */
    pastTable: pastTable(stream),
    keyColumn: keyColumns[dictionary],
    /** The columns after key and `ts`: the decimals, the others, `details`. */
    columns: [...names, "details"] as readonly string[],
    /** How many of `columns`, from the first, are decimals. */
    decimals: decimals.length,
    /** The position of `source` in `columns`; -1 for streams without a live feed. */
    sourceAt: names.indexOf("source"),
    encode: encoder(decimals, stored.slice(decimals.length)),
  };
}

interface AnyRecord {
  readonly [property: string]: unknown;
  readonly quality: string | null;
  readonly extra: string | null;
}

/**
 * Appends the values of the columns. `source`: 0 REST, 1 live. The text in `details` is always the same for the same content, so that texts can be compared: exact digits in the order
 * of the columns, then `quality`, then `extra`.
 */
function encoder(decimals: readonly Column[], others: readonly Column[]) {
  const names = decimals.map(({ name }) => name);
  const properties = decimals.map(propertyOf);
  // Null marks the position of `source`, which is not a property of the record.
  const otherProperties = others.map((column) => (column.type === "source" ? null : propertyOf(column)));
  return (record: object, source: number, values: SqlValue[]): void => {
    const from = record as AnyRecord;
    let details: Record<string, string> | undefined;
    for (let i = 0; i < properties.length; i++) {
      const decimal = from[properties[i] as string] as Decimal | null;
      if (decimal === null) {
        values.push(null);
        continue;
      }
      values.push(decimal.real);
      if (decimal.exact === null) continue;
      details ??= {};
      details[names[i] as string] = decimal.exact;
    }
    for (let i = 0; i < otherProperties.length; i++) {
      const property = otherProperties[i] as string | null;
      values.push(property === null ? source : (from[property] as SqlValue));
    }
    if (from.quality !== null) details = { ...details, quality: from.quality };
    if (from.extra !== null) details = { ...details, extra: from.extra };
    values.push(details === undefined ? null : JSON.stringify(details));
  };
}

export const rowTables: { readonly [S in RowStream]: RowTable<StreamRecords[S]> } = {
  index_ticks: {
    ...deriveFromStream("index_ticks"),
    key: (transaction, tick) => transaction.dictionary.getSeriesKey(tick.indexType, tick.indexId),
    collectPlain: collectPlainTicks,
    // Only ticks of liquid indices have a name; the lookups name assets and markets.
    nameOf: (tick) => (tick.indexType === "LX" ? tick.name : null),
    toTick: toCommittedTick,
  },
  ohlcv: {
    ...deriveFromStream("ohlcv"),
    key: (transaction, bar) => transaction.dictionary.getSeriesKey(bar.indexType, bar.indexId),
  },
  exchange_ticks: {
    ...deriveFromStream("exchange_ticks"),
    key: (transaction, tick) => transaction.dictionary.getListingKey(tick.exchangeId, tick.marketId),
  },
  market_caps: {
    ...deriveFromStream("market_caps"),
    key: (transaction, cap) => transaction.dictionary.getSeriesKey("GWA", cap.assetId),
  },
  derivative_ticks: {
    ...deriveFromStream("derivative_ticks"),
    key: (transaction, tick) =>
      transaction.dictionary.getContractKey(tick.derivativeType, tick.contractId, {
        exchangeId: tick.exchangeId,
        marketId: tick.marketId,
        firstSeen: transaction.stamp(),
      }),
  },
};

/** The values of the table's columns. `source`: 0 REST, 1 live. */
export function encodeRow<Row extends Moment>(table: RowTable<Row>, record: Row, source = 0): SqlValue[] {
  const values: SqlValue[] = [];
  table.encode(record, source, values);
  return values;
}

/** What a row has beside its key: `ts`, the columns of the stream, and the commits that wrote and confirmed it. */
export function storedColumns(stream: RowStream): readonly string[] {
  const { columns, sourceAt } = rowTables[stream];
  return ["ts", ...columns, "since", ...(sourceAt >= 0 ? ["confirmed"] : [])];
}

export function parseRowDetails(details: string | null): RowDetails {
  return details === null ? emptyDetails : (JSON.parse(details) as RowDetails);
}

/** The exact digits of a stored decimal in plain notation: docs/decisions/exact-decimals.md. */
export function formatExact(real: number | null, digits?: string): string | null {
  if (real === null) return null;
  if (digits !== undefined) return digits;
  const text = String(real);
  return text.includes("e") ? (toPlainNotation(text) ?? text) : text;
}

/**
 * Whether two rows of the same timestamp have the same figures. Ignores what only one source sends: unknown fields
 * (`extra`), quality flags, and `last_moved`, which the websocket omits.
 */
export function hasSameValues(
  table: Pick<RowTable<never>, "columns">,
  before: readonly SqlValue[],
  after: readonly SqlValue[],
): boolean {
  return table.columns.every((column, i) => {
    const [old, latest] = [before[i] ?? null, after[i] ?? null];
    if (column === "source") return true;
    if (column === "details") return exactTextsOf(old) === exactTextsOf(latest);
    return old === latest || (column === "last_moved" && (old === null || latest === null));
  });
}

/** The exact decimals in `details`, without `quality` and `extra`. */
function exactTextsOf(details: SqlValue): string {
  if (typeof details !== "string") return "{}";
  const { quality: _quality, extra: _extra, ...digits } = JSON.parse(details) as Record<string, string>;
  return JSON.stringify(digits);
}
