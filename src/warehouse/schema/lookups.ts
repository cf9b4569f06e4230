import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import {
  assetColumns,
  derivativeContractColumns,
  exchangeColumns,
  exchangeMarketColumns,
  exchangeSymbolColumns,
  marketColumns,
} from "../../model/stream-columns.ts";
import { schemaColumns } from "./stream-schema.ts";

/*
 * The lookups, and the dictionaries that turn the service's ids into small integers. Columns that the service fills
 * derive from the stream table; keys and the columns that the warehouse adds are defined here.
 */

/** The columns that the warehouse adds to every lookup: see `lookupColumns` in the stream table. */
const addedColumns = {
  firstSeen: text("first_seen").notNull(),
  delistedAt: text("delisted_at"),
  absences: integer("absences").notNull(),
  quality: text("quality"),
  extra: text("extra"),
};

export const assets = sqliteTable("assets", {
  id: text("id").primaryKey().notNull(),
  ...schemaColumns(assetColumns),
  ...addedColumns,
});
export type AssetRow = typeof assets.$inferSelect;

/** View: `markets`, with the symbols of both assets. */
export const marketRows = sqliteTable("market_rows", {
  id: text("id").primaryKey().notNull(),
  ...schemaColumns(marketColumns),
  ...addedColumns,
});
export type MarketRow = typeof marketRows.$inferSelect;

export const exchanges = sqliteTable("exchanges", {
  id: text("id").primaryKey().notNull(),
  ...schemaColumns(exchangeColumns),
  ...addedColumns,
});
export type ExchangeRow = typeof exchanges.$inferSelect;

export const exchangeMarkets = sqliteTable(
  "exchange_markets",
  {
    exchangeId: text("exchange_id").notNull(),
    marketId: text("market_id").notNull(),
    ...schemaColumns(exchangeMarketColumns),
    ...addedColumns,
  },
  (table) => [primaryKey({ columns: [table.exchangeId, table.marketId] })],
);
export type ExchangeMarketRow = typeof exchangeMarkets.$inferSelect;

/** An exchange's own symbol for an asset. */
export const exchangeSymbols = sqliteTable(
  "exchange_symbols",
  {
    exchangeId: text("exchange_id").notNull(),
    assetId: text("asset_id").notNull(),
    ...schemaColumns(exchangeSymbolColumns),
    ...addedColumns,
  },
  (table) => [primaryKey({ columns: [table.exchangeId, table.assetId] })],
);

/** Derivative contracts, and their dictionary. View: `derivative_contracts`. */
export const contracts = sqliteTable(
  "contracts",
  {
    /** The key that ticks refer to. */
    contract: integer("contract").primaryKey(),
    derivativeType: text("derivative_type").notNull(),
    id: text("id").notNull(),
    ...schemaColumns(derivativeContractColumns),
    /** As in rows.ts: exact digits that a REAL cannot represent. */
    details: text("details"),
    /** The exchange's name and the market's pair; the ids while they are unknown. Updated with the lookups. */
    exchange: text("exchange"),
    pair: text("pair"),
    /** 0: known from a tick only; the lookup has not described it yet, and the view omits it. */
    isDescribed: integer("is_described").notNull(),
    ...addedColumns,
  },
  (table) => [
    uniqueIndex("contracts_by_id").on(table.derivativeType, table.id),
    index("contracts_by_pair").on(table.pair),
  ],
);

/** The dictionary of indices: one key serves index ticks, daily bars, market caps and the ledger. */
export const series = sqliteTable(
  "series",
  {
    series: integer("series").primaryKey(),
    /** GWA, MWA, LX …; empty for a ledger key of a snapshot stream, whose `index_id` is the exchange's. */
    indexType: text("index_type").notNull(),
    /** Asset id (GWA), market id (MWA), LX id; empty for all exchanges. */
    indexId: text("index_id").notNull(),
    /** Readable name: BTC, BTC/USD, BLX; the id while no name is known. Updated with the lookups. */
    name: text("name").notNull(),
    /** `price`: the name was concluded from a price, and any other source replaces it; null: the service or the settings gave it. */
    nameFrom: text("name_from").$type<"price">(),
  },
  (table) => [
    uniqueIndex("series_by_index").on(table.indexType, table.indexId),
    index("series_by_id").on(table.indexId),
    index("series_by_name").on(table.name),
  ],
);
export type SeriesRow = typeof series.$inferSelect;
/** What names a series outside this file: its key is another one in each warehouse. */
export type SeriesNames = Pick<SeriesRow, "indexType" | "indexId" | "name">;

/** The dictionary of markets on exchanges. */
export const listings = sqliteTable(
  "listings",
  {
    listing: integer("listing").primaryKey(),
    exchangeId: text("exchange_id").notNull(),
    marketId: text("market_id").notNull(),
    /** The exchange's name and the market's pair; the ids while they are unknown. Updated with the lookups. */
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

/** Changes of the lookups, and when the warehouse noticed them. */
export const statusChanges = sqliteTable(
  "status_changes",
  {
    change: integer("change").primaryKey(),
    /** asset, market, exchange, exchange_market, exchange_symbol, contract */
    entity: text("entity").notNull(),
    /** The entity's id; for an exchange_market or exchange_symbol both ids, joined by a slash. */
    id: text("id").notNull(),
    field: text("field").notNull(),
    old: text("old"),
    new: text("new"),
    seenAt: text("seen_at").notNull(),
  },
  (table) => [index("status_changes_by_id").on(table.entity, table.id)],
);
