import { computed, decimal, flag, label, rank, stored, text, timestamp } from "./column.ts";

/*
 * The columns of every stream, in the order of its SQL relation. Row tables, views, records, the decoder, the export and
 * docs/dictionary.md derive from these lists: a new column is one line here and a migration.
 */

/** The index types that the client requests. Records of other types are stored under their own type. */
export const indexTypes = ["GWA", "MWA", "LX"] as const;
export type IndexType = (typeof indexTypes)[number];

/* Columns that several streams share. */

const indexType = label(
  "index_type",
  "index_type",
  "GWA (an asset in USD), MWA (a market) or LX (a liquid index)",
  {
    field: "indexType",
    reading: "identity",
    known: indexTypes,
    isPartition: true,
  },
);
const indexId = label(
  "index_id",
  "index_id",
  "id of the asset (GWA), of the market (MWA) or of the index itself (LX)",
  {
    field: "indexId",
    reading: "identity",
  },
);
const seriesName =
  "readable name: BTC (GWA), BTC/USD (MWA), BLX (LX); the id while no name is known" as const;

const ts = {
  ...stored("ts", "integer", "the timestamp, microseconds since 1970 UTC", "time"),
  field: "timestamp",
  reading: "timestamp",
} as const;
const time = computed("time", "text", "ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ");

const source = stored(
  "source",
  "source",
  "rest: a current page wrote or confirmed the row; live: only the websocket or an outdated (cached) page did",
);

const qualityMeaning = "problems with the row, in words; NULL if there are none";
const quality = stored("quality", "text", qualityMeaning, "details");
const extra = stored(
  "extra",
  "text",
  "properties without a column of their own, a JSON object; NULL if there are none",
  "details",
);

const exchange = label("exchange", "exchange", "the exchange's name; its id while the name is unknown");
const pair = label("pair", "pair", "the market's pair, such as BTC/USD; its id while the pair is unknown");

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
  label("name", "name", seriesName, { field: "name", reading: "text" }),
  ts,
  time,
  decimal("price", "price", "the value of the index", "coreAmount"),
  decimal("volume", "volume", "rolling 24-hour volume: never sum it"),
  decimal("tick_volume", "tickVolume", "LX only: the volume of this tick", "optionalAmount"),
  computed("is_settled", "integer", "1: the ledger covers this timestamp; 0: no page has confirmed it yet"),
  source,
  quality,
  extra,
] as const;

export const ohlcvColumns = [
  indexType,
  indexId,
  label("name", "name", seriesName),
  // The decoder finds the day in several fields.
  { ...stored("day", "text", "the UTC day that the bar covers, YYYY-MM-DD", "time"), reading: "timestamp" },
  computed("ts", "integer", "the start of the day, microseconds since 1970 UTC; the key is day: bound that"),
  time,
  decimal("open", "open", "the first price of the day", "coreAmount"),
  decimal("high", "high", "the highest price of the day", "coreAmount"),
  decimal("low", "low", "the lowest price of the day", "coreAmount"),
  decimal("close", "close", "the last price of the day", "coreAmount"),
  decimal("volume", "volume", "the day's volume in units of the base asset"),
  decimal("vwap", "vwap", "the average price, weighted by volume", "optionalAmount"),
  decimal("twap", "twap", "the average price, weighted by time", "optionalAmount"),
  decimal("volume_usd", "volumeUsd", "the day's volume in USD", "optionalAmount", { storedAfter: "volume" }),
  computed("is_final", "integer", "1: the day is over and the ledger covers all of it"),
  text("record_id", "id", "the service's own id of the record", "id"),
  quality,
  extra,
] as const;

/* Snapshot streams. */

export const exchangeTickColumns = [
  label("exchange_id", "exchange_id", "the exchange", { field: "exchangeId", reading: "identity" }),
  label("market_id", "market_id", "the market", { field: "marketId", reading: "identity" }),
  exchange,
  pair,
  ts,
  time,
  decimal("last", "last", "the last price", "coreAmount"),
  decimal("bid", "bid", "the best bid"),
  decimal("ask", "ask", "the best ask"),
  decimal("volume", "volume", "rolling 24-hour volume in units of the base asset: never sum it"),
  timestamp(
    "last_moved",
    "lastMoved",
    "when the price last moved at the exchange; NULL if the service does not send it, as in live tickers",
  ),
  computed("unmoved_seconds", "real", "seconds since last_moved at this tick; NULL if last_moved is NULL"),
  computed(
    "is_stale",
    "integer",
    "1: the price did not move within the refresh period before this tick. If last_moved is NULL: 1 if the previous ticker has the same price; NULL if there is no previous ticker within two periods",
  ),
  source,
  {
    ...quality,
    meaning: `${qualityMeaning}. It does not report missing markets of the same timestamp: coverage lists only complete timestamps, gaps lists the others`,
  },
  extra,
] as const;

const inOlderRows = "; rows written by earlier versions have it in extra";

/** The percent changes of one value over three periods, from one nested object. */
function percentChanges<const Name extends string>(name: Name, outer: string, value: string, note = "") {
  const meaning = (period: string) => `percent change of ${value} over ${period}${note}`;
  return [
    decimal(`${name}_24h`, `${outer}.change24h`, meaning("24 hours"), "rate"),
    decimal(`${name}_7d`, `${outer}.change7d`, meaning("7 days"), "rate"),
    decimal(`${name}_30d`, `${outer}.change30d`, meaning("30 days"), "rate"),
  ] as const;
}

export const marketCapColumns = [
  label("asset_id", "index_id", "the asset", { field: "assetId", reading: "identity" }),
  label("symbol", "name", "the asset's symbol; its id while the symbol is unknown"),
  ts,
  time,
  rank("rank", "marketCapRank", "the rank by market_cap; 1 is the largest"),
  rank("volume_rank", "volumeRank", "the rank by volume"),
  decimal("price", "price", "price in USD", "coreAmount"),
  decimal("volume", "volume", "rolling 24-hour volume: never sum it"),
  decimal("market_cap", "marketCap", "free-float supply × price, as the service computes it", "coreAmount"),
  decimal("total_market_cap", "totalMarketCap", "total supply × price, as the service computes it"),
  decimal("free_float_supply", "freeFloatSupply", "units in circulation"),
  decimal("total_supply", "totalSupply", "units that exist"),
  ...percentChanges("change", "marketCapPercentChange", "market_cap"),
  ...percentChanges("price_change", "pricePercentChange", "price", inOlderRows),
  ...percentChanges("volume_change", "volumePercentChange", "volume", inOlderRows),
  ...percentChanges(
    "total_market_cap_change",
    "totalMarketCapPercentChange",
    "total_market_cap",
    inOlderRows,
  ),
  quality,
  extra,
] as const;

export const derivativeTickColumns = [
  label("contract_id", "id", "the contract, derivative_contracts.id", {
    field: "contractId",
    reading: "identity",
  }),
  label("derivative_type", "derivative_type", "futures, perpetuals or options", derivativeTypeOptions),
  label("exchange_id", "exchange_id", "the exchange", { field: "exchangeId", reading: "id" }),
  label("market_id", "market_id", "the market", { field: "marketId", reading: "id" }),
  exchange,
  pair,
  label("exchange_name", "exchange_name", "the contract's name at the exchange"),
  ts,
  time,
  decimal("price", "price", "the last price", "coreAmount"),
  decimal("volume", "volume", "rolling 24-hour volume: never sum it"),
  decimal("volume_usd", "volumeUsd", "volume in USD", "optionalAmount"),
  decimal("open_interest", "openInterest", "contracts outstanding"),
  decimal("open_interest_usd", "openInterestUsd", "open_interest in USD", "optionalAmount"),
  decimal("bid", "bid", "the best bid"),
  decimal("ask", "ask", "the best ask"),
  decimal("index_price", "indexPrice", "the price of the underlying index", "optionalAmount"),
  decimal("mark_price", "markPrice", "the price at which positions are valued", "optionalAmount"),
  decimal(
    "funding_rate",
    "fundingRate",
    "perpetuals: the fraction of a position that longs pay to shorts in the current funding period; below zero shorts pay; see Units in docs/dictionary.md",
    "rate",
  ),
  quality,
  extra,
] as const;

/** The columns that `latest_…` views add. */
export const latestColumns = [
  computed("age_seconds", "real", "seconds from ts to now, by the service's clock"),
  computed(
    "is_live",
    "integer",
    "1: in the newest state that the warehouse has: at most ten refresh periods older than the stream's newest row, and not expired; 0: a delisted market, an expired contract, a series that has gone quiet",
  ),
] as const;

/* Lookups. The warehouse adds `lookupColumns` to each. */

export const assetColumns = [
  text("id", "id", "id of the asset; index_id of its GWA index", "identity"),
  text("symbol", "symbol", "its ticker symbol; several assets may share one", "text"),
  text("name", "name", "its name", "text"),
  text("type", "type", "CRYPTO or FIAT", "text", { known: ["CRYPTO", "FIAT"] }),
  text("status", "status", "ACTIVE or INACTIVE", "text", { known: ["ACTIVE", "INACTIVE"] }),
  text("url", "url", "a web page about it", "text"),
  text("contract_address", "contractAddress", "a token's contract on the chain where it was issued", "text"),
] as const;

export const marketColumns = [
  text("id", "id", "id of the market; index_id of its MWA index", "identity"),
  text("base_asset_id", "baseAssetId", "the asset that is priced", "id"),
  text("quote_asset_id", "quoteAssetId", "the asset that it is priced in", "id"),
  computed("base_symbol", "text", "the base asset's symbol"),
  computed("quote_symbol", "text", "the quote asset's symbol"),
  computed("pair", "text", "both symbols, BTC/USD"),
] as const;

export const exchangeColumns = [
  text("id", "id", "id of the exchange", "identity"),
  text("name", "name", "its name", "text"),
  text("url", "url", "its web address", "text"),
  text("status", "status", "ACTIVE, INACTIVE or MAINTENANCE", "text", {
    known: ["ACTIVE", "INACTIVE", "MAINTENANCE"],
  }),
] as const;

/** The elements of an exchange's list `markets`. */
export const exchangeMarketColumns = [
  label("exchange_id", "exchange_id", "the exchange"),
  text("market_id", "marketId", "the market", "identity"),
  text("status", "marketStatus", "the market's status on the exchange", "text"),
  flag("qualified", "qualified", "1: the market takes part in the service's averages"),
] as const;

/** The elements of an exchange's list `symbols`. */
export const exchangeSymbolColumns = [
  label("exchange_id", "exchange_id", "the exchange"),
  text("asset_id", "assetId", "the asset", "identity"),
  text("symbol", "symbol", "the exchange's symbol for the asset", "text"),
] as const;

export const derivativeContractColumns = [
  text("id", "id", "id of the contract", "identity"),
  text("derivative_type", "derivativeType", "futures, perpetuals or options", "identity", {
    isFromRequest: true,
  }),
  text("exchange_id", "exchangeId", "the exchange", "id"),
  text("market_id", "marketId", "its market", "id"),
  exchange,
  pair,
  text("exchange_name", "exchangeName", "its name at the exchange", "text"),
  text("settlement_currency", "settlementCurrency", "the currency in which it settles", "text"),
  decimal("contract_value", "contractValue", "its size in units of value_currency"),
  text("value_currency", "valueCurrency", "the currency of contract_value", "text"),
  text("option_type", "optionType", "options: CALL or PUT", "text", { known: ["CALL", "PUT"] }),
  decimal("option_strike", "optionStrike", "options: the strike price", "optionalAmount"),
  timestamp("listing", "listing", "futures and options: when it was listed"),
  timestamp("expiration", "expiration", "futures and options: when it expires"),
] as const;

/** The columns that the warehouse adds to every lookup; views omit `absences`. */
export const lookupColumns = [
  stored("first_seen", "text", "when the warehouse first saw it listed"),
  stored(
    "delisted_at",
    "text",
    "when the warehouse noticed that it is no longer listed; NULL while it is listed",
  ),
  stored(
    "absences",
    "integer",
    "number of consecutive complete lists without it; after several it counts as delisted",
  ),
  { ...quality, source: "row" },
  { ...extra, source: "row" },
] as const;
