import { sql } from "drizzle-orm";
import {
  index,
  integer,
  primaryKey,
  real,
  type SQLiteColumnBuilderBase,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";
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
 * `details` is a nullable text for rare values. A JSON object with any of: the exact digits of a decimal column that its
 * REAL cannot represent, under the column's name; `quality`; `extra` (unknown properties).
 */

const ts = integer("ts").notNull();
const details = text("details");
/** The commit that wrote this version of the row (commits.seq); null: one before the warehouse kept its past. */
const since = integer("since");
/** The commit in which REST confirmed a live row: it was live until then. */
const confirmed = integer("confirmed");
/** What an earlier version of a row has beside its columns. */
const past = {
  /** The commit that replaced or deleted it. */
  until: integer("until").notNull(),
  /** Its number in `revisions`, if other figures replaced it or the service withdrew it; 0: it is none. */
  revision: integer("revision").notNull().default(0),
};

/** Earlier versions of the rows of a table: what was replaced, withdrawn, or a preview (tables/known-at.ts). */
function pastVersions(
  name: string,
  key: string,
  version: Readonly<Record<string, SQLiteColumnBuilderBase>>,
  revisions: string,
) {
  return sqliteTable(name, { key: integer(key).notNull(), ts, ...version, ...past }, (table) => [
    primaryKey({ columns: [table.key, table.ts, table.until, table.revision] }),
    uniqueIndex(revisions).on(table.revision).where(sql`revision > 0`),
  ]);
}

/** → series.series */
const series = integer("series").notNull();

const tickVersion = { ts, ...schemaColumns(indexTickColumns), details, since, confirmed };

/** View: `index_ticks`. */
export const indexTickRows = sqliteTable("index_tick_rows", { series, ...tickVersion }, (table) => [
  primaryKey({ columns: [table.series, table.ts] }),
]);

export const pastTickRows = pastVersions("past_tick_rows", "series", tickVersion, "tick_revisions");

/**
 * The hourly bars of the index ticks; every hour with ticks has a row. Views: `bars_1h`, `bars_4h`, `bars_1d`. The key is
 * `ts DESC` in the file: a backfill goes back in time, and so fills each page of the file (74 bytes a bar instead of 103).
 * Integers with a common exponent would take a third less, half a percent of the file; every reader would have to decode them.
 */
export const keptBars = sqliteTable(
  "kept_bars",
  {
    series,
    /** The start of the hour. */
    ts,
    open: real("open"),
    high: real("high"),
    low: real("low"),
    close: real("close"),
    /** Of the last tick. */
    volume: real("volume_24h"),
    /** Null: the bar is stale, and the views compute it from the ticks. */
    ticks: integer("n_ticks"),
    /** How many of the ticks have a quality remark. */
    doubtful: integer("n_doubtful"),
    /** Exact digits, as in the rows. */
    details,
    /** The first commit that wrote one of its ticks, and the last that may have changed one; null: none since `commits` began. */
    firstCommit: integer("first_commit"),
    lastCommit: integer("last_commit"),
  },
  (table) => [
    primaryKey({ columns: [table.series, table.ts] }),
    index("stale_bars").on(table.ts).where(sql`n_ticks IS NULL`),
  ],
);

/** `ts`: midnight. */
const dailyBarVersion = { ts, ...schemaColumns(ohlcvColumns), details, since };

/** View: `ohlcv`. The index is by the expression of its `day`, so that `day = '…'` in a query is a seek. */
export const dailyBarRows = sqliteTable("daily_bar_rows", { series, ...dailyBarVersion }, (table) => [
  primaryKey({ columns: [table.series, table.ts] }),
  uniqueIndex("daily_bars_by_day").on(
    table.series,
    sql`CAST(strftime('%Y-%m-%d', ts / 1000000, 'unixepoch') AS TEXT)`,
  ),
]);

/** Those of the running day too. */
export const pastDailyBarRows = pastVersions(
  "past_daily_bar_rows",
  "series",
  dailyBarVersion,
  "daily_bar_revisions",
);

/**
 * Where a row of a snapshot stream is stored: its key, and for a live row also its part (tables/row-parts.ts). The views
 * `exchange_tick_rows`, `market_cap_rows` and `derivative_tick_rows` have the key instead.
 */
const slot = integer("slot").notNull();

/** The parts that have rows: 0, the history, and those of the last hour or so. */
export const rowParts = sqliteTable("row_parts", {
  part: integer("part").primaryKey().notNull(),
  openedAt: integer("opened_at").notNull(),
});

const exchangeTickVersion = { ts, ...schemaColumns(exchangeTickColumns), details, since, confirmed };

/** View: `exchange_ticks`. */
export const exchangeTickSlots = sqliteTable(
  "exchange_tick_slots",
  { slot, ...exchangeTickVersion },
  (table) => [primaryKey({ columns: [table.slot, table.ts] })],
);
export type ExchangeTickRow = typeof exchangeTickSlots.$inferSelect;

export const pastExchangeTickRows = pastVersions(
  "past_exchange_tick_rows",
  "listing",
  exchangeTickVersion,
  "exchange_tick_revisions",
);

const marketCapVersion = { ts, ...schemaColumns(marketCapColumns), details, since };

/** View: `market_caps`. */
export const marketCapSlots = sqliteTable("market_cap_slots", { slot, ...marketCapVersion }, (table) => [
  primaryKey({ columns: [table.slot, table.ts] }),
]);

/** The series is (GWA, the asset): an asset and its USD rate share one key. */
export const pastMarketCapRows = pastVersions(
  "past_market_cap_rows",
  "series",
  marketCapVersion,
  "market_cap_revisions",
);

const derivativeTickVersion = { ts, ...schemaColumns(derivativeTickColumns), details, since };

/** View: `derivative_ticks`. */
export const derivativeTickSlots = sqliteTable(
  "derivative_tick_slots",
  { slot, ...derivativeTickVersion },
  (table) => [primaryKey({ columns: [table.slot, table.ts] })],
);

export const pastDerivativeTickRows = pastVersions(
  "past_derivative_tick_rows",
  "contract",
  derivativeTickVersion,
  "derivative_tick_revisions",
);
