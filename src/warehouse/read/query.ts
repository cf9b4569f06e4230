import { nearest } from "../../model/did-you-mean.ts";
import { exitCode, Failure } from "../../model/failure.ts";
import type { ColumnDoc } from "../schema/column-doc.ts";
import { relationDocs } from "../schema/column-docs.ts";
import type { Connection } from "../sqlite/connection.ts";

const usualRemedy =
  "`mds-sync query` without SQL lists the relations, and with --schema NAME the columns of one";

/** What stands for `:name` in a statement. Integers come as BigInt: a plain number would be bound as a REAL. */
export type Parameters = Readonly<Record<string, string | number | bigint | null>>;

/**
 * Runs one statement that only reads. Rows come as arrays, one by one, integers in them as BigInt. The connection could not write anyhow; refusing by
 * what the statement is also keeps it from making other files (ATTACH, VACUUM INTO) and from loosening the connection.
 */
export function select(
  reader: Connection,
  sql: string,
  parameters: Parameters = {},
): { columns: readonly string[]; rows: IterableIterator<readonly unknown[]> } {
  try {
    const statement = reader.database.prepare(sql);
    if (!statement.reader || !statement.readonly || isSettingPragma(sql))
      throw new Error("the warehouse is readonly: only a statement that reads is run");
    assertNamed(sql, parameters);
    const columns = statement.columns().map(({ name }) => name);
    // Integers come as BigInt: a plain number would round what is beyond 2^53.
    const rows = statement.raw().safeIntegers().iterate(parameters) as IterableIterator<readonly unknown[]>;
    return { columns, rows: stepped(rows) };
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw badQuery(error, hintFor(reader, sql, error) ?? usualRemedy);
  }
}

/** What a statement meets among its rows: a malformed JSON text, a sum that is too large. The file's own trouble is no fault of the SQL. */
function* stepped<Row>(rows: IterableIterator<Row>): Generator<Row, void, undefined> {
  try {
    yield* rows;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    throw /^SQLITE_(ERROR|MISMATCH|TOOBIG|RANGE|AUTH)/.test(code)
      ? badQuery(error, "the statement is at fault, not the warehouse")
      : error;
  }
}

function badQuery(error: unknown, remedy: string): Failure {
  return new Failure(messageOf(error), {
    family: "operator",
    code: "bad_query",
    remedy,
    exit: exitCode.usage,
    cause: error,
  });
}

/** The relations in this file that are not mds-sync's: a quant's own views. */
export function ownRelations({ database }: Connection): string[] {
  const found = database
    .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
    .pluck()
    .all() as string[];
  return found.filter((name) => !(name in relationDocs) && !/^(sqlite_|__drizzle)/.test(name));
}

/** The columns of a relation that nobody has described. */
export function undescribedColumns({ database }: Connection, relation: string): ColumnDoc[] {
  const columns = database.prepare("SELECT name, type FROM pragma_table_info(?)").all(relation);
  return (columns as ColumnDoc[]).map((column) => ({ ...column, meaning: "" }));
}

/** A pragma that gives a row back counts as reading, also when it sets something. */
function isSettingPragma(sql: string): boolean {
  const bare = sql.replaceAll(/--[^\n]*|\/\*.*?\*\//gs, " ").trimStart();
  return /^(explain\s+(query\s+plan\s+)?)?pragma\b[^;]*=/i.test(bare);
}

/** SQLite ignores a parameter that no statement asks for, and a misspelt one would go unnoticed. */
function assertNamed(sql: string, parameters: Parameters): void {
  const asked = new Set([...sql.matchAll(/[:@$](\w+)/g)].map(([, name = ""]) => name));
  const stranger = Object.keys(parameters).find((name) => !asked.has(name));
  if (stranger === undefined) return;
  const meant = nearest(stranger, asked);
  throw new Failure(`the statement has no parameter :${stranger}`, {
    family: "operator",
    code: "bad_query",
    remedy: meant === undefined ? "leave out --param" : `did you mean ${meant}?`,
    exit: exitCode.usage,
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The nearest relation or column that there is, for a name that there is not. */
function hintFor({ database }: Connection, sql: string, error: unknown): string | undefined {
  const [, lacking] = /Missing named parameter "(\w+)"/.exec(String(error)) ?? [];
  if (lacking !== undefined) return `give --param ${lacking}=VALUE`;
  if (/Too few parameter values/.test(String(error))) return "give parameters names, :from rather than ?";
  const [, kind, given = ""] = /no such (table|column): (\S+)/.exec(String(error)) ?? [];
  if (kind === undefined) return undefined;
  if (kind === "table" && given.toLowerCase() in relationDocs)
    return "this file was last written by an older version; `mds-sync run` or `mds-sync backfill` adds it";
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
