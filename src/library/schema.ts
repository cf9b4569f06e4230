/*
 * The tables of the warehouse for drizzle: `import * as schema from "mds-sync/schema"`. The keys of the tables are small
 * integers; the public views show ids and names instead.
 */
export * from "../warehouse/schema/coverage.ts";
export * from "../warehouse/schema/lookups.ts";
export * from "../warehouse/schema/rows.ts";
