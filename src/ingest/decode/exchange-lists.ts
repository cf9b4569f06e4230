import type { Column } from "../../model/column.ts";
import type { ExchangeMarket, ExchangeSymbol } from "../../model/records.ts";
import { exchangeMarketColumns, exchangeSymbolColumns } from "../../model/stream-columns.ts";
import { createColumnReader } from "./column-reader.ts";
import { sliceElements, toCanonicalJson } from "./json-source.ts";
import { isProperties, type Properties, type RecordReader } from "./record-reader.ts";

type ReadElement<E> = (reader: RecordReader, fields: Properties) => E;

const readMarket = createElementReader<ExchangeMarket>(exchangeMarketColumns);
const readSymbol = createElementReader<ExchangeSymbol>(exchangeSymbolColumns);

/** Reads the two lists inside an exchange record. */
export function readExchangeLists(reader: RecordReader, fields: Properties) {
  return {
    markets: readList(reader, "markets", fields.markets, readMarket),
    symbols: readList(reader, "symbols", fields.symbols, readSymbol),
  };
}

function createElementReader<E>(columns: readonly Column[]): ReadElement<E> {
  const { fields: names, read } = createColumnReader(columns);
  const known: ReadonlySet<string> = new Set(names);
  return (reader, fields) => {
    const { quality: _quality, ...element } = read(reader, fields, {});
    return { ...element, extra: reader.extra(known) } as E;
  };
}

/** Stores elements that cannot be read in the record's `extra`, under the list's name. */
function readList<E>(reader: RecordReader, name: string, value: unknown, read: ReadElement<E>): E[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    reader.noteProblem(name, "is not a list");
    reader.addExtra(name, toCanonicalJson(reader.sourceOf(name)));
    return [];
  }
  let slices: string[] | undefined;
  const sliceOf = (index: number) => {
    slices ??= sliceElements(reader.sourceOf(name));
    return slices[index] ?? "";
  };
  const elements = reader.elements(name, sliceOf);
  const list: E[] = [];
  const unreadable: string[] = [];
  for (const [index, item] of value.entries()) {
    if (isProperties(item)) {
      elements.begin(item, index);
      const element = read(elements, item);
      reader.addQuality(elements.quality());
      if (elements.rejection === null) {
        list.push(element);
        continue;
      }
    }
    unreadable.push(toCanonicalJson(sliceOf(index)));
  }
  if (unreadable.length > 0) {
    reader.noteProblem(name, `has ${unreadable.length} elements that cannot be read`);
    reader.addExtra(name, `[${unreadable.join(",")}]`);
  }
  return list;
}
