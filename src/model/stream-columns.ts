import { computed, decimal, flag, label, rank, stored, text, timestamp } from "./column.ts";

/*
 * The columns of every stream, in the order of its SQL relation. Row tables, views, records, the decoder and the export derive
 * from these lists: a new column is one line here, its meaning in src/warehouse/schema/column-docs.yaml, and a migration.
 */

/** The index types that the client requests. Records of other types are stored under their own type. */
export const indexTypes = ["GWA", "MWA", "LX"] as const;
export type IndexType = (typeof indexTypes)[number];

/* Columns that several streams share. */

const indexType = label("index_type", "index_type", {
  field: "indexType",
  reading: "identity",
  known: indexTypes,
  isPartition: true,
});
const indexId = label("index_id", "index_id", { field: "indexId", reading: "identity" });
const ts = { ...stored("ts", "integer", "time"), field: "timestamp", reading: "timestamp" } as const;
const time = computed("time", "text");

const source = stored("source", "source");

const quality = stored("quality", "text", "details");
const extra = stored("extra", "text", "details");

const exchange = label("exchange", "exchange");
const pair = label("pair", "pair");

const derivativeTypeOptions = {
  field: "derivativeType",
  reading: "identity",
  isFromRequest: true,
  isPartition: true,
} as const;

/* History streams. */

export const indexTickColumns = [
  indexType,
  indexId,
  // Only LX ticks on the websocket have a name.
  label("name", "name", { field: "name", reading: "text" }),
  ts,
  time,
  decimal("price", "price", "coreAmount"),
  decimal("volume", "volume"),
  decimal("tick_volume", "tickVolume", "optionalAmount"),
  computed("is_settled", "integer"),
  source,
  quality,
  extra,
] as const;

export const ohlcvColumns = [
  indexType,
  indexId,
  label("name", "name"),
  computed("day", "text"),
  // The decoder finds the day in several fields.
  { ...ts, field: "" },
  time,
  decimal("open", "open", "coreAmount"),
  decimal("high", "high", "coreAmount"),
  decimal("low", "low", "coreAmount"),
  decimal("close", "close", "coreAmount"),
  decimal("volume", "volume"),
  decimal("vwap", "vwap", "optionalAmount"),
  decimal("twap", "twap", "optionalAmount"),
  decimal("volume_usd", "volumeUsd", "optionalAmount", { storedAfter: "volume" }),
  computed("is_final", "integer"),
  text("record_id", "id", "id"),
  quality,
  extra,
] as const;

/* Snapshot streams. */

export const exchangeTickColumns = [
  label("exchange_id", "exchange_id", { field: "exchangeId", reading: "identity" }),
  label("market_id", "market_id", { field: "marketId", reading: "identity" }),
  exchange,
  pair,
  ts,
  time,
  decimal("last", "last", "coreAmount"),
  decimal("bid", "bid"),
  decimal("ask", "ask"),
  decimal("volume", "volume"),
  timestamp("last_moved", "lastMoved"),
  computed("unmoved_seconds", "real"),
  computed("is_stale", "integer"),
  source,
  quality,
  extra,
] as const;

/** The percent changes of one value over three periods, from one nested object. */
function percentChanges<const Name extends string>(name: Name, outer: string) {
  return [
    decimal(`${name}_24h`, `${outer}.change24h`, "rate"),
    decimal(`${name}_7d`, `${outer}.change7d`, "rate"),
    decimal(`${name}_30d`, `${outer}.change30d`, "rate"),
  ] as const;
}

export const marketCapColumns = [
  label("asset_id", "index_id", { field: "assetId", reading: "identity" }),
  label("symbol", "name"),
  ts,
  time,
  rank("rank", "marketCapRank"),
  rank("volume_rank", "volumeRank"),
  decimal("price", "price", "coreAmount"),
  decimal("volume", "volume"),
  decimal("market_cap", "marketCap", "coreAmount"),
  decimal("total_market_cap", "totalMarketCap"),
  decimal("free_float_supply", "freeFloatSupply"),
  decimal("total_supply", "totalSupply"),
  ...percentChanges("change", "marketCapPercentChange"),
  ...percentChanges("price_change", "pricePercentChange"),
  ...percentChanges("volume_change", "volumePercentChange"),
  ...percentChanges("total_market_cap_change", "totalMarketCapPercentChange"),
  quality,
  extra,
] as const;

export const derivativeTickColumns = [
  label("contract_id", "id", { field: "contractId", reading: "identity" }),
  label("derivative_type", "derivative_type", derivativeTypeOptions),
  label("exchange_id", "exchange_id", { field: "exchangeId", reading: "id" }),
  label("market_id", "market_id", { field: "marketId", reading: "id" }),
  exchange,
  pair,
  label("exchange_name", "exchange_name"),
  ts,
  time,
  decimal("price", "price", "coreAmount"),
  decimal("volume", "volume"),
  decimal("volume_usd", "volumeUsd", "optionalAmount"),
  decimal("open_interest", "openInterest"),
  decimal("open_interest_usd", "openInterestUsd", "optionalAmount"),
  decimal("bid", "bid"),
  decimal("ask", "ask"),
  decimal("index_price", "indexPrice", "optionalAmount"),
  decimal("mark_price", "markPrice", "optionalAmount"),
  decimal("funding_rate", "fundingRate", "rate"),
  quality,
  extra,
] as const;

/* Lookups. The warehouse adds `lookupColumns` to each. */

export const assetColumns = [
  text("id", "id", "identity"),
  text("symbol", "symbol", "text"),
  text("name", "name", "text"),
  text("type", "type", "text", { known: ["CRYPTO", "FIAT"] }),
  text("status", "status", "text", { known: ["ACTIVE", "INACTIVE"] }),
  text("url", "url", "text"),
  text("contract_address", "contractAddress", "text"),
] as const;

export const marketColumns = [
  text("id", "id", "identity"),
  text("base_asset_id", "baseAssetId", "id"),
  text("quote_asset_id", "quoteAssetId", "id"),
  computed("base_symbol", "text"),
  computed("quote_symbol", "text"),
  computed("pair", "text"),
] as const;

export const exchangeColumns = [
  text("id", "id", "identity"),
  text("name", "name", "text"),
  text("url", "url", "text"),
  text("status", "status", "text", { known: ["ACTIVE", "INACTIVE", "MAINTENANCE"] }),
] as const;

/** The elements of an exchange's list `markets`. */
export const exchangeMarketColumns = [
  label("exchange_id", "exchange_id"),
  text("market_id", "marketId", "identity"),
  text("status", "marketStatus", "text"),
  flag("qualified", "qualified"),
] as const;

/** The elements of an exchange's list `symbols`. */
export const exchangeSymbolColumns = [
  label("exchange_id", "exchange_id"),
  text("asset_id", "assetId", "identity"),
  text("symbol", "symbol", "text"),
] as const;

export const derivativeContractColumns = [
  text("id", "id", "identity"),
  text("derivative_type", "derivativeType", "identity", { isFromRequest: true }),
  text("exchange_id", "exchangeId", "id"),
  text("market_id", "marketId", "id"),
  exchange,
  pair,
  text("exchange_name", "exchangeName", "text"),
  text("settlement_currency", "settlementCurrency", "text"),
  decimal("contract_value", "contractValue"),
  text("value_currency", "valueCurrency", "text"),
  text("option_type", "optionType", "text", { known: ["CALL", "PUT"] }),
  decimal("option_strike", "optionStrike", "optionalAmount"),
  timestamp("listing", "listing"),
  timestamp("expiration", "expiration"),
] as const;

/** The columns that the warehouse adds to every lookup; views omit `absences`. */
export const lookupColumns = [
  stored("first_seen", "text"),
  stored("delisted_at", "text"),
  stored("absences", "integer"),
  { ...quality, source: "row" },
  { ...extra, source: "row" },
] as const;
