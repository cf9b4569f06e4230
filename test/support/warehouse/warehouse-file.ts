import Database from "better-sqlite3";
import { timeLimit } from "../time-limit.ts";

/** The rows of a query over a warehouse file, as another program reads it. */
export function queryFile<Row = Record<string, unknown>>(path: string, sql: string): Row[] {
  return withFile(path, { readonly: true }, (database) => database.prepare(sql).all() as Row[]);
}

/** Changes a warehouse file behind the back of the program. */
export function changeFile(path: string, sql: string): void {
  withFile(path, { timeout: timeLimit(5_000) }, (database) => database.unsafeMode().exec(sql));
}

function withFile<T>(path: string, options: Database.Options, work: (database: Database.Database) => T): T {
  const database = new Database(path, options);
  try {
    return work(database);
  } finally {
    database.close();
  }
}
