import { integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";

/*
 * The rows of the streams. Keys are small integers from the dictionaries (schema-lookups.ts), so that a tick costs
 * about 40 bytes; quants read the views of the contract, which put the identifiers and names back.
 *
 * `aside` is the one nullable text of a row, for what is rare. A JSON object with any of: the exact digits of a
 * decimal column that its REAL cannot give back, under the column's name; `quality`; `extra` (unknown properties).
 */

/** GWA, MWA and LX values, every 30 seconds. View: `index_ticks`. */
export const indexTickRows = sqliteTable(
  "index_tick_rows",
  {
    /** → series.series */
    series: integer("series").notNull(),
    /** The moment of the value, microseconds since 1970 UTC. */
    ts: integer("ts").notNull(),
    price: real("price"),
    /** Rolling 24-hour figure: never to be summed. */
    volume: real("volume"),
    /** LX only. */
    tickVolume: real("tick_volume"),
    /** 0: a REST page said so; 1: so far only the websocket did. */
    source: integer("source").notNull(),
    aside: text("aside"),
  },
  (table) => [primaryKey({ columns: [table.series, table.ts] })],
);

/** End-of-day bars. View: `ohlcv`. */
export const dailyBarRows = sqliteTable(
  "daily_bar_rows",
  {
    /** → series.series */
    series: integer("series").notNull(),
    /** The UTC day that the bar covers, `YYYY-MM-DD`: text, so that a person's `day = '…'` is an index seek. */
    day: text("day").notNull(),
    open: real("open"),
    high: real("high"),
    low: real("low"),
    close: real("close"),
    volume: real("volume"),
    volumeUsd: real("volume_usd"),
    vwap: real("vwap"),
    twap: real("twap"),
    /** The service's own id of the record. */
    recordId: text("record_id"),
    aside: text("aside"),
  },
  (table) => [primaryKey({ columns: [table.series, table.day] })],
);

/** Tickers of one market on one exchange. View: `exchange_ticks`. */
export const exchangeTickRows = sqliteTable(
  "exchange_tick_rows",
  {
    /** → listings.listing */
    listing: integer("listing").notNull(),
    ts: integer("ts").notNull(),
    last: real("last"),
    bid: real("bid"),
    ask: real("ask"),
    /** Rolling 24-hour figure in units of the base asset. */
    volume: real("volume"),
    /** When the price last moved at the exchange, microseconds since 1970 UTC. */
    lastMoved: integer("last_moved"),
    /** 0: REST; 1: so far only the websocket. */
    source: integer("source").notNull(),
    aside: text("aside"),
  },
  (table) => [primaryKey({ columns: [table.listing, table.ts] })],
);

/** The ranking of assets. View: `market_caps`. */
export const marketCapRows = sqliteTable(
  "market_cap_rows",
  {
    /** → series.series of (GWA, the asset): an asset and its USD rate share one key. */
    series: integer("series").notNull(),
    ts: integer("ts").notNull(),
    price: real("price"),
    volume: real("volume"),
    /** Free-float supply × price. */
    marketCap: real("market_cap"),
    /** Total supply × price. */
    totalMarketCap: real("total_market_cap"),
    freeFloatSupply: real("free_float_supply"),
    totalSupply: real("total_supply"),
    /** Percent change of `market_cap` over the period. */
    change24h: real("change_24h"),
    change7d: real("change_7d"),
    change30d: real("change_30d"),
    rank: integer("rank"),
    volumeRank: integer("volume_rank"),
    aside: text("aside"),
  },
  (table) => [primaryKey({ columns: [table.series, table.ts] })],
);

/** Tickers of futures, perpetuals and options. View: `derivative_ticks`. */
export const derivativeTickRows = sqliteTable(
  "derivative_tick_rows",
  {
    /** → contracts.contract */
    contract: integer("contract").notNull(),
    ts: integer("ts").notNull(),
    price: real("price"),
    volume: real("volume"),
    volumeUsd: real("volume_usd"),
    openInterest: real("open_interest"),
    openInterestUsd: real("open_interest_usd"),
    bid: real("bid"),
    ask: real("ask"),
    indexPrice: real("index_price"),
    markPrice: real("mark_price"),
    fundingRate: real("funding_rate"),
    aside: text("aside"),
  },
  (table) => [primaryKey({ columns: [table.contract, table.ts] })],
);

/** What a row said before a correction or a withdrawal. View: `revisions`. */
export const revisionRows = sqliteTable("revision_rows", {
  revision: integer("revision").primaryKey(),
  stream: text("stream").notNull(),
  /** The row's key in the dictionary of its stream. */
  key: integer("key").notNull(),
  ts: integer("ts").notNull(),
  /** JSON object, column name → exact text. */
  before: text("before").notNull(),
  /** Null: withdrawn. */
  after: text("after"),
  /** Microseconds since 1970 UTC. */
  changedAt: integer("changed_at").notNull(),
});
