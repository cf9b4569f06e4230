import { findClosestWord } from "../../model/did-you-mean.ts";
import { errorCode, Failure } from "../../model/failure.ts";
import type { ColumnDoc, SchemaResult } from "../schema/column-doc.ts";
import { publicDocs, relationDocs, relationGroups } from "../schema/column-docs.ts";
import type { Connection } from "../sqlite/connection.ts";
import { readSqlTokens } from "./sql-tokens.ts";
import { rewriteTimeBounds } from "./time-bounds.ts";

/** What people can do about a statement that fails, in words of the place where they write it. */
export interface QueryRemedies {
  /** Where the names of relations and columns are. */
  readonly names: string;
  readonly missing: (parameter: string) => string;
  readonly unused: (parameter: string) => string;
}

const shellRemedies: QueryRemedies = {
  names: "`mds-sync query` without SQL lists the relations, and with --schema NAME the columns of one",
  missing: (parameter) => `give --param ${parameter}=VALUE`,
  unused: () => "leave out --param",
};

/** Values of the named parameters (`:name`). Integers are BigInt: a number would be bound as a REAL. */
export type QueryParameters = Readonly<Record<string, string | number | bigint | null>>;

/**
 * Runs one read-only statement. Returns rows as arrays, one at a time. The connection is read-only anyway; checking the
 * statement also prevents other files from being created (ATTACH, VACUUM INTO) and the connection's settings from being
 * changed.
 */
export function runReadQuery(
  reader: Connection,
  sql: string,
  parameters: QueryParameters = {},
  remedies: QueryRemedies = shellRemedies,
): { columns: readonly string[]; rows: IterableIterator<readonly unknown[]> } {
  try {
    const statement = reader.database.prepare<[QueryParameters], readonly unknown[]>(sql);
    if (!statement.reader || !statement.readonly || isSettingPragma(sql))
      throw new Failure("the warehouse is read-only", {
        code: "bad_query",
        remedy: "use a statement that reads, such as SELECT",
      });
    assertParametersUsed(sql, parameters, remedies);
    const columns = statement.columns().map(({ name }) => name);
    const quick = prepareQuick(reader, sql, parameters) ?? statement;
    // Integers as BigInt: a number would round beyond 2^53.
    const rows = quick.raw().safeIntegers().iterate(parameters);
    return { columns, rows: convertErrors(rows) };
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw badQuery(error, suggestRemedy(reader, sql, error, remedies) ?? remedies.names);
  }
}

/** The same statement with its bounds on `time` as bounds on the key; undefined if it has none. */
function prepareQuick({ database }: Connection, sql: string, parameters: QueryParameters) {
  const evaluate = (expression: string) => database.prepare(`SELECT ${expression}`).pluck().get();
  try {
    const quick = rewriteTimeBounds(sql, { parameters, evaluate });
    return quick === sql ? undefined : database.prepare<[QueryParameters], readonly unknown[]>(quick);
  } catch {
    // The statement as given is valid, and gives the same answer.
    return undefined;
  }
}

/** Errors while stepping (malformed JSON, integer overflow) are the statement's fault; errors of the file are rethrown. */
function* convertErrors<Row>(rows: IterableIterator<Row>): Generator<Row, void, undefined> {
  try {
    yield* rows;
  } catch (error) {
    throw /^SQLITE_(ERROR|MISMATCH|TOOBIG|RANGE|AUTH)/.test(errorCode(error))
      ? badQuery(error, "the statement is at fault, not the warehouse")
      : error;
  }
}

function badQuery(error: unknown, remedy: string): Failure {
  return new Failure(messageOf(error), { code: "bad_query", remedy, cause: error });
}

/** Relations that users added to the file, such as their own views. */
export function readUserRelations(connection: Connection): string[] {
  const found = connection.values<string>(`${namesSql} ORDER BY name`);
  return found.filter((name) => !(name in relationDocs) && !/^(sqlite_|__drizzle)/.test(name));
}

const namesSql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')";

/** The columns of a relation without documentation. */
export function readUndescribedColumns(connection: Connection, relation: string): ColumnDoc[] {
  const sql = "SELECT name, type, '' AS meaning FROM pragma_table_info(?)";
  return connection.rows<ColumnDoc>(sql, [relation]);
}

/** The relations that people query, in the groups of the dictionary, and those that they added themselves. */
export function readSchema(reader: Connection): SchemaResult {
  const groups = relationGroups.map(({ title, docs }) => ({
    title,
    relations: Object.entries(docs)
      .filter(([name]) => name in publicDocs)
      .map(([name, doc]) => ({ name, ...doc })),
  }));
  const own = readUserRelations(reader).map((name) => ({
    name,
    summary: "not part of mds-sync",
    columns: readUndescribedColumns(reader, name),
  }));
  return [...groups, { title: "Your own", relations: own }].filter(({ relations }) => relations.length > 0);
}

/** SQLite reports a pragma that returns a row as read-only, even if it changes a setting. */
function isSettingPragma(sql: string): boolean {
  let isPragma = false;
  for (const { text } of readSqlTokens(sql)) {
    if (isPragma && text === "=") return true;
    if (!isPragma && !beforePragma.has(text)) return false;
    isPragma ||= text === "pragma";
  }
  return false;
}

const beforePragma: ReadonlySet<string> = new Set(["pragma", "explain", "query", "plan", ";"]);

/** SQLite ignores a parameter that the statement does not have: a misspelt name would go unnoticed. */
function assertParametersUsed(sql: string, parameters: QueryParameters, { unused: remedy }: QueryRemedies) {
  const used = new Set([...sql.matchAll(/[:@$](\w+)/g)].map(([, name = ""]) => name));
  const unused = Object.keys(parameters).find((name) => !used.has(name));
  if (unused === undefined) return;
  const suggestion = findClosestWord(unused, used);
  throw new Failure(`the statement has no parameter :${unused}`, {
    code: "bad_query",
    remedy: suggestion === undefined ? remedy(unused) : `did you mean ${suggestion}?`,
  });
}

/** What SQLite says, without its colon: one stands before the remedy. */
function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/^near (.+): syntax error$/s, "syntax error near $1").replace(/^([\w ]+): /, "$1 ");
}

/** A remedy for an unknown name: the most similar relation or column. */
function suggestRemedy(connection: Connection, sql: string, error: unknown, remedies: QueryRemedies) {
  const [, missing] = /Missing named parameter "(\w+)"/.exec(String(error)) ?? [];
  if (missing !== undefined) return remedies.missing(missing);
  if (/Too few parameter values/.test(String(error))) return "name the parameters: write :from instead of ?";
  const [, kind, given = ""] = /no such (table|column): (\S+)/.exec(String(error)) ?? [];
  if (kind === undefined) return undefined;
  if (kind === "table" && given.toLowerCase() in relationDocs)
    return "this file was last written by an older version; `mds-sync run` or `mds-sync backfill` upgrades it";
  const relations = connection.values<string>(namesSql);
  const columnsOf = (name: string) =>
    connection.values<string>("SELECT name FROM pragma_table_info(?)", [name]);
  const words = new Set(sql.toLowerCase().match(/\w+/g));
  const known =
    kind === "table"
      ? relations
      : relations.filter((name) => words.has(name.toLowerCase())).flatMap(columnsOf);
  const suggestion = findClosestWord(given.slice(given.lastIndexOf(".") + 1), known);
  return suggestion === undefined ? undefined : `did you mean ${suggestion}?`;
}
