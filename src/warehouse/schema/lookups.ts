import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/*
 * What the service looks up, and the dictionaries that turn its opaque identifiers into small integers.
 *
 * Shared columns of the lookups: `first_seen` and `delisted_at` are moments as 27 characters of text; a row that the
 * service stops listing stays, and `delisted_at` says since when. `absences` counts the complete lists in a row that
 * lacked it: one short answer marks nothing.
 */
const listed = {
  firstSeen: text("first_seen").notNull(),
  delistedAt: text("delisted_at"),
  absences: integer("absences").notNull(),
  /** What is doubtful about the record, in words; null when nothing is. */
  quality: text("quality"),
  /** Unknown properties as a JSON object. */
  extra: text("extra"),
};

export const assets = sqliteTable("assets", {
  id: text("id").primaryKey().notNull(),
  symbol: text("symbol"),
  name: text("name"),
  type: text("type"),
  status: text("status"),
  url: text("url"),
  contractAddress: text("contract_address"),
  ...listed,
});

/** View: `markets`, with the symbols of both assets. */
export const marketRows = sqliteTable("market_rows", {
  id: text("id").primaryKey().notNull(),
  baseAssetId: text("base_asset_id"),
  quoteAssetId: text("quote_asset_id"),
  ...listed,
});

export const exchanges = sqliteTable("exchanges", {
  id: text("id").primaryKey().notNull(),
  name: text("name"),
  url: text("url"),
  status: text("status"),
  ...listed,
});

/** The markets that an exchange says it has. */
export const exchangeMarkets = sqliteTable(
  "exchange_markets",
  {
    exchangeId: text("exchange_id").notNull(),
    marketId: text("market_id").notNull(),
    status: text("status"),
    /** 1: the service lets the market take part in its averages. */
    qualified: integer("qualified"),
    ...listed,
  },
  (table) => [primaryKey({ columns: [table.exchangeId, table.marketId] })],
);

/** An exchange's own symbol for an asset, where it differs from usage. */
export const exchangeSymbols = sqliteTable(
  "exchange_symbols",
  {
    exchangeId: text("exchange_id").notNull(),
    assetId: text("asset_id").notNull(),
    symbol: text("symbol"),
    ...listed,
  },
  (table) => [primaryKey({ columns: [table.exchangeId, table.assetId] })],
);

/** Derivative contracts, and their dictionary. View: `derivative_contracts`. */
export const contracts = sqliteTable(
  "contracts",
  {
    /** The small integer that ticks carry. */
    contract: integer("contract").primaryKey(),
    derivativeType: text("derivative_type").notNull(),
    id: text("id").notNull(),
    exchangeId: text("exchange_id"),
    marketId: text("market_id"),
    /** The contract's name at the exchange. */
    exchangeName: text("exchange_name"),
    settlementCurrency: text("settlement_currency"),
    contractValue: real("contract_value"),
    valueCurrency: text("value_currency"),
    optionType: text("option_type"),
    optionStrike: real("option_strike"),
    /** Microseconds since 1970 UTC. */
    listing: integer("listing"),
    expiration: integer("expiration"),
    /** As in schema-rows.ts: exact digits that a REAL cannot give back. */
    aside: text("aside"),
    /** 0: known from a tick only; the lookup has not described it yet, and the view leaves it out. */
    described: integer("described").notNull(),
    ...listed,
  },
  (table) => [uniqueIndex("contracts_by_id").on(table.derivativeType, table.id)],
);

/** The dictionary of indices: one key serves index ticks, daily bars, market caps and the ledger. */
export const series = sqliteTable(
  "series",
  {
    series: integer("series").primaryKey(),
    /** GWA, MWA, LX …; empty for a subscription of a latest-only stream, whose `index_id` is its exchange's. */
    indexType: text("index_type").notNull(),
    /** Asset id (GWA), market id (MWA), LX id; empty for the subscription to everything. */
    indexId: text("index_id").notNull(),
    /** What a person calls it: BTC, BTC/USD, BLX; the id until a name is known. Kept in step with the lookups. */
    name: text("name").notNull(),
  },
  (table) => [
    uniqueIndex("series_by_index").on(table.indexType, table.indexId),
    index("series_by_id").on(table.indexId),
    index("series_by_name").on(table.name),
  ],
);

/** The dictionary of markets on exchanges. */
export const listings = sqliteTable(
  "listings",
  {
    listing: integer("listing").primaryKey(),
    exchangeId: text("exchange_id").notNull(),
    marketId: text("market_id").notNull(),
    /** The exchange's name and the market's pair, the ids until they are known. Kept in step with the lookups. */
    exchange: text("exchange").notNull(),
    pair: text("pair").notNull(),
  },
  (table) => [
    uniqueIndex("listings_by_ids").on(table.exchangeId, table.marketId),
    index("listings_by_market").on(table.marketId),
    index("listings_by_exchange").on(table.exchange),
    index("listings_by_pair").on(table.pair),
  ],
);

/** What changed in a lookup, and when it was seen. */
export const statusChanges = sqliteTable(
  "status_changes",
  {
    change: integer("change").primaryKey(),
    /** asset, market, exchange, exchange_market, exchange_symbol, contract */
    entity: text("entity").notNull(),
    /** The entity's id; the two ids of a pair stand with a slash between them. */
    id: text("id").notNull(),
    field: text("field").notNull(),
    old: text("old"),
    new: text("new"),
    seenAt: text("seen_at").notNull(),
  },
  (table) => [index("status_changes_by_id").on(table.entity, table.id)],
);
