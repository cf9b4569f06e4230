import { createRequire } from "node:module";

/*
 * The parts of drizzle that the program uses. Node parses drizzle's package.json again for each of its 109 ES modules: 0.7 s
 * of CPU and 190 MiB. As CommonJS it loads in 0.1 s and 16 MiB; the build turns `load` into imports and bundles them.
 */
const load = createRequire(import.meta.url);

export const { and, eq, gt, gte, isNotNull, isNull, lt, lte, ne, or, sql } = load(
  "drizzle-orm",
) as typeof import("drizzle-orm");

export const { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } = load(
  "drizzle-orm/sqlite-core",
) as typeof import("drizzle-orm/sqlite-core");

export const { drizzle } = load("drizzle-orm/better-sqlite3") as typeof import("drizzle-orm/better-sqlite3");

export const { readMigrationFiles } = load("drizzle-orm/migrator") as typeof import("drizzle-orm/migrator");
