import Database from "better-sqlite3";
import { and, count, eq, gte, lt } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { indexTickRows, series } from "mds-sync/schema";

/** A typed query of one's own over the tables of the warehouse: the ticks of one day. */
export function countTicks(path: string, name: string, day: string): number {
  const database = new Database(path, { readonly: true });
  const from = Date.parse(day) * 1000;
  try {
    const [row] = drizzle(database)
      .select({ ticks: count() })
      .from(indexTickRows)
      .innerJoin(series, eq(series.series, indexTickRows.series))
      .where(
        and(
          eq(series.indexType, "GWA"),
          eq(series.name, name),
          gte(indexTickRows.ts, from),
          lt(indexTickRows.ts, from + 86_400_000_000),
        ),
      )
      .all();
    return row?.ticks ?? 0;
  } finally {
    database.close();
  }
}
