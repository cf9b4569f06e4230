import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import {
  derivativeTickColumns,
  exchangeTickColumns,
  indexTickColumns,
  marketCapColumns,
  ohlcvColumns,
} from "../../model/stream-columns.ts";
import { schemaColumns } from "./stream-schema.ts";

/*
 * The rows of the streams. Keys are small integers from the dictionaries (lookups.ts), so that a tick costs about 40
 * bytes; quants read the public views, which show identifiers and names instead. All other columns derive from the
 * stream table.
 *
 * `aside` is a nullable text for rare values. A JSON object with any of: the exact digits of a decimal column that its
 * REAL cannot represent, under the column's name; `quality`; `extra` (unknown properties).
 */

const ts = integer("ts").notNull();
const aside = text("aside");

/** View: `index_ticks`. */
export const indexTickRows = sqliteTable(
  "index_tick_rows",
  {
    /** → series.series */
    series: integer("series").notNull(),
    ts,
    ...schemaColumns(indexTickColumns),
    aside,
  },
  (table) => [primaryKey({ columns: [table.series, table.ts] })],
);

/** View: `ohlcv`. */
export const dailyBarRows = sqliteTable(
  "daily_bar_rows",
  {
    /** → series.series */
    series: integer("series").notNull(),
    /** `YYYY-MM-DD`: text, so that `day = '…'` in a query is an index seek. */
    day: text("day").notNull(),
    ...schemaColumns(ohlcvColumns),
    aside,
  },
  (table) => [primaryKey({ columns: [table.series, table.day] })],
);

/** View: `exchange_ticks`. */
export const exchangeTickRows = sqliteTable(
  "exchange_tick_rows",
  {
    /** → listings.listing */
    listing: integer("listing").notNull(),
    ts,
    ...schemaColumns(exchangeTickColumns),
    aside,
  },
  (table) => [primaryKey({ columns: [table.listing, table.ts] })],
);

/** View: `market_caps`. */
export const marketCapRows = sqliteTable(
  "market_cap_rows",
  {
    /** → series.series of (GWA, the asset): an asset and its USD rate share one key. */
    series: integer("series").notNull(),
    ts,
    ...schemaColumns(marketCapColumns),
    aside,
  },
  (table) => [primaryKey({ columns: [table.series, table.ts] })],
);

/** View: `derivative_ticks`. */
export const derivativeTickRows = sqliteTable(
  "derivative_tick_rows",
  {
    /** → contracts.contract */
    contract: integer("contract").notNull(),
    ts,
    ...schemaColumns(derivativeTickColumns),
    aside,
  },
  (table) => [primaryKey({ columns: [table.contract, table.ts] })],
);

/** Earlier versions of rows that were corrected or withdrawn. View: `revisions`. */
export const revisionRows = sqliteTable("revision_rows", {
  revision: integer("revision").primaryKey(),
  stream: text("stream").notNull(),
  /** The row's key in the dictionary of its stream. */
  key: integer("key").notNull(),
  ts,
  /** JSON object, column name → exact text. */
  before: text("before").notNull(),
  /** Null: withdrawn. */
  after: text("after"),
  /** Microseconds since 1970 UTC. */
  changedAt: integer("changed_at").notNull(),
});
