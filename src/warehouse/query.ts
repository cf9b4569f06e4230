import { exitCode, Failure } from "../model/failure.ts";
import type { Connection } from "./connection.ts";

/** Runs one statement that only reads. Rows come as arrays, one by one. */
export function select(
  reader: Connection,
  sql: string,
): { columns: readonly string[]; rows: IterableIterator<readonly unknown[]> } {
  try {
    const statement = reader.database.prepare(sql);
    if (!statement.reader) throw new Error("the statement returns no rows");
    const columns = statement.columns().map(({ name }) => name);
    return { columns, rows: statement.raw().iterate() as IterableIterator<readonly unknown[]> };
  } catch (error) {
    throw new Failure(error instanceof Error ? error.message : String(error), {
      family: "operator",
      code: "bad_query",
      remedy: 'give one SELECT over the tables that `mds-sync query "SELECT name FROM sqlite_master"` lists',
      exit: exitCode.usage,
      cause: error,
    });
  }
}
