import { exitCode, Failure } from "../model/failure.ts";
import { nearest } from "../model/nearest.ts";
import type { Connection } from "./connection.ts";

const usualRemedy =
  'give one SELECT over the tables that `mds-sync query "SELECT name FROM sqlite_master"` lists';

/**
 * Runs one statement that only reads. Rows come as arrays, one by one. The connection could not write anyhow; refusing by
 * what the statement is also keeps it from making other files (ATTACH, VACUUM INTO).
 */
export function select(
  reader: Connection,
  sql: string,
): { columns: readonly string[]; rows: IterableIterator<readonly unknown[]> } {
  try {
    const statement = reader.database.prepare(sql);
    if (!statement.reader || !statement.readonly)
      throw new Error("the warehouse is readonly: only a statement that reads is run");
    const columns = statement.columns().map(({ name }) => name);
    return { columns, rows: statement.raw().iterate() as IterableIterator<readonly unknown[]> };
  } catch (error) {
    throw new Failure(error instanceof Error ? error.message : String(error), {
      family: "operator",
      code: "bad_query",
      remedy: hintFor(reader, sql, error) ?? usualRemedy,
      exit: exitCode.usage,
      cause: error,
    });
  }
}

/** The nearest relation or column that there is, for a name that there is not. */
function hintFor({ database }: Connection, sql: string, error: unknown): string | undefined {
  const [, kind, given = ""] = /no such (table|column): (\S+)/.exec(String(error)) ?? [];
  if (kind === undefined) return undefined;
  const relations = database
    .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
    .pluck()
    .all() as string[];
  const columnsOf = database.prepare("SELECT name FROM pragma_table_info(?)").pluck();
  const words = new Set(sql.toLowerCase().match(/\w+/g));
  const known =
    kind === "table"
      ? relations
      : relations
          .filter((name) => words.has(name.toLowerCase()))
          .flatMap((name) => columnsOf.all(name) as string[]);
  const meant = nearest(given.slice(given.lastIndexOf(".") + 1), known);
  return meant === undefined ? undefined : `did you mean ${meant}?`;
}
