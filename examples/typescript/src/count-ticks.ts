import Database from "better-sqlite3";
import { count } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { indexTickRows } from "mds-sync/schema";

/** A typed query of one's own over the tables of the warehouse. */
export function countTicks(path: string): number {
  const database = new Database(path, { readonly: true });
  try {
    const [row] = drizzle(database).select({ ticks: count() }).from(indexTickRows).all();
    return row?.ticks ?? 0;
  } finally {
    database.close();
  }
}
