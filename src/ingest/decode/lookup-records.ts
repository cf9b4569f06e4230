import type {
  Asset,
  DerivativeContract,
  Exchange,
  ExchangeMarket,
  ExchangeSymbol,
  Market,
} from "../../model/records.ts";
import { sliceElements, toCanonicalJson } from "./json-source.ts";
import { isProperties, type Properties, type RecordReader } from "./record-reader.ts";
import type { ReadRecord } from "./records.ts";

const assetFields: ReadonlySet<string> = new Set([
  "id",
  "name",
  "symbol",
  "status",
  "type",
  "url",
  "contractAddress",
]);
const assetStatuses: ReadonlySet<string> = new Set(["ACTIVE", "INACTIVE"]);
const assetTypes: ReadonlySet<string> = new Set(["FIAT", "CRYPTO"]);

export const readAsset: ReadRecord<Asset> = (reader, fields) => ({
  id: reader.identity("id", fields.id),
  name: reader.text("name", fields.name),
  symbol: reader.text("symbol", fields.symbol),
  status: reader.oneOf("status", fields.status, assetStatuses),
  type: reader.oneOf("type", fields.type, assetTypes),
  url: reader.text("url", fields.url),
  contractAddress: reader.text("contractAddress", fields.contractAddress),
  quality: reader.quality(),
  extra: reader.extra(assetFields),
});

const marketFields: ReadonlySet<string> = new Set(["id", "baseAssetId", "quoteAssetId"]);

export const readMarket: ReadRecord<Market> = (reader, fields) => ({
  id: reader.identity("id", fields.id),
  baseAssetId: reader.id("baseAssetId", fields.baseAssetId),
  quoteAssetId: reader.id("quoteAssetId", fields.quoteAssetId),
  quality: reader.quality(),
  extra: reader.extra(marketFields),
});

const exchangeFields: ReadonlySet<string> = new Set(["id", "name", "url", "status", "markets", "symbols"]);
const exchangeStatuses: ReadonlySet<string> = new Set(["ACTIVE", "INACTIVE", "MAINTENANCE"]);

export const readExchange: ReadRecord<Exchange> = (reader, fields) => ({
  id: reader.identity("id", fields.id),
  name: reader.text("name", fields.name),
  url: reader.text("url", fields.url),
  status: reader.oneOf("status", fields.status, exchangeStatuses),
  markets: readList(reader, "markets", fields.markets, readExchangeMarket),
  symbols: readList(reader, "symbols", fields.symbols, readExchangeSymbol),
  quality: reader.quality(),
  extra: reader.extra(exchangeFields),
});

const exchangeMarketFields: ReadonlySet<string> = new Set(["marketId", "marketStatus", "qualified"]);

function readExchangeMarket(reader: RecordReader, fields: Properties): ExchangeMarket {
  return {
    marketId: reader.identity("marketId", fields.marketId),
    status: reader.text("marketStatus", fields.marketStatus),
    qualified: reader.flag("qualified", fields.qualified),
    extra: reader.extra(exchangeMarketFields),
  };
}

const exchangeSymbolFields: ReadonlySet<string> = new Set(["assetId", "symbol"]);

function readExchangeSymbol(reader: RecordReader, fields: Properties): ExchangeSymbol {
  return {
    assetId: reader.identity("assetId", fields.assetId),
    symbol: reader.text("symbol", fields.symbol),
    extra: reader.extra(exchangeSymbolFields),
  };
}

/** Elements that cannot be read are kept, as they came, in the record's `extra` under the list's name. */
function readList<E>(
  reader: RecordReader,
  name: string,
  value: unknown,
  read: (reader: RecordReader, fields: Properties) => E,
): E[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    reader.note(name, "is not a list");
    reader.keep(name, toCanonicalJson(reader.sourceOf(name)));
    return [];
  }
  let slices: string[] | undefined;
  const sliceOf = (index: number) => {
    slices ??= sliceElements(reader.sourceOf(name));
    return slices[index] ?? "";
  };
  const elements = reader.elements(name, sliceOf);
  const list: E[] = [];
  const unread: string[] = [];
  for (const [index, item] of value.entries()) {
    if (isProperties(item)) {
      elements.begin(item, index);
      const element = read(elements, item);
      reader.adopt(elements.quality());
      if (elements.rejection === null) {
        list.push(element);
        continue;
      }
    }
    unread.push(toCanonicalJson(sliceOf(index)));
  }
  if (unread.length > 0) {
    reader.note(name, `has ${unread.length} elements that cannot be read`);
    reader.keep(name, `[${unread.join(",")}]`);
  }
  return list;
}

const contractFields: ReadonlySet<string> = new Set([
  "id",
  "exchangeId",
  "marketId",
  "exchangeName",
  "settlementCurrency",
  "contractValue",
  "valueCurrency",
  "optionType",
  "optionStrike",
  "listing",
  "expiration",
]);
const optionTypes: ReadonlySet<string> = new Set(["CALL", "PUT"]);

export const readDerivativeContract: ReadRecord<DerivativeContract> = (reader, fields, context) => ({
  id: reader.identity("id", fields.id),
  derivativeType: reader.identity("derivativeType", context.derivativeType ?? fields.derivativeType),
  exchangeId: reader.id("exchangeId", fields.exchangeId),
  marketId: reader.id("marketId", fields.marketId),
  exchangeName: reader.text("exchangeName", fields.exchangeName),
  settlementCurrency: reader.text("settlementCurrency", fields.settlementCurrency),
  contractValue: reader.amount("contractValue", fields.contractValue),
  valueCurrency: reader.text("valueCurrency", fields.valueCurrency),
  optionType: reader.oneOf("optionType", fields.optionType, optionTypes),
  optionStrike: reader.optionalAmount("optionStrike", fields.optionStrike),
  listing: reader.moment("listing", fields.listing),
  expiration: reader.moment("expiration", fields.expiration),
  quality: reader.quality(),
  extra: reader.extra(contractFields),
});
