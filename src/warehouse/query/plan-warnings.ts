import { rowStreams, streamTable } from "../../model/streams.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { QueryParameters } from "./query.ts";

/** The tables that grow without end: a bound on `ts` makes a read of one short. */
const rowTableNames: ReadonlySet<string> = new Set(rowStreams.map((stream) => streamTable[stream].table));

/** The dictionaries that views walk before they seek the rows. */
const dictionaries: ReadonlySet<string> = new Set(rowStreams.map((stream) => streamTable[stream].dictionary));

interface PlanStep {
  readonly id: number;
  readonly parent: number;
  readonly detail: string;
}

const accessPattern = /^(SCAN|SEARCH) (\S+)(?: USING .*?\((.*)\))?/;

/**
 * Says in words which parts of a statement read more than its author may expect. Subqueries that SQLite runs per row are
 * seeks in our views, so only the outer loops count.
 */
export function findPlanWarnings(reader: Connection, sql: string, parameters: QueryParameters): string[] {
  const steps = reader.database
    .prepare<[QueryParameters], PlanStep>(`EXPLAIN QUERY PLAN ${sql}`)
    .all(parameters);
  const inner = new Set<number>();
  for (const { id, parent, detail } of steps)
    if (inner.has(parent) || /SCALAR SUBQUERY/.test(detail)) inner.add(id);
  const definitions = readDefinitions(reader, sql);
  const warnings = new Set<string>();
  let readsEverySeries = false;
  for (const { id, detail } of steps) {
    const [, access, alias = "", conditions = ""] = accessPattern.exec(detail) ?? [];
    if (access === undefined || inner.has(id)) continue;
    const table = findTable(alias, definitions);
    if (!rowTableNames.has(table ?? "")) {
      readsEverySeries ||= access === "SCAN" && dictionaries.has(table ?? "");
      continue;
    }
    // The index of daily bars by day has an expression in the place of `ts`.
    if (/\bts[<>=]|<expr>[<>=]/.test(conditions)) continue;
    const isWhole = access === "SCAN" || readsEverySeries;
    warnings.add(
      isWhole
        ? `reads the whole table ${table}: bound \`ts\`${readsEverySeries ? " and name the series" : ""}`
        : `reads every row of the selected series in ${table}: bound \`ts\``,
    );
  }
  if (warnings.size > 0 && /\btime\s*(?:[<>=]|between\b|like\b)/i.test(sql))
    warnings.add("compares `time` as text, row by row: `ts` is the key");
  return [...warnings];
}

/** The statement and the definitions of the views that it names, directly or through other views. */
function readDefinitions(connection: Connection, sql: string): string {
  const viewsSql = "SELECT lower(name), sql FROM sqlite_master WHERE type = 'view'";
  const views = new Map(connection.tuples<readonly [name: string, sql: string]>(viewsSql));
  const wordsOf = (text: string): string[] => text.toLowerCase().match(/\w+/g) ?? [];
  const used = new Set<string>();
  let text = sql;
  const queue = wordsOf(sql);
  for (let word = queue.pop(); word !== undefined; word = queue.pop()) {
    const definition = views.get(word);
    if (definition === undefined || used.has(word)) continue;
    used.add(word);
    text += `\n${definition}`;
    queue.push(...wordsOf(definition));
  }
  return text;
}

/** A plan names a table by its alias; the definitions say which table that is. */
function findTable(alias: string, definitions: string): string | undefined {
  if (rowTableNames.has(alias)) return alias;
  const uses = definitions.matchAll(new RegExp(`\\b(?:from|join)\\s+(\\w+)\\s+(?:as\\s+)?${alias}\\b`, "gi"));
  return [...uses]
    .map(([, table = ""]) => table.toLowerCase())
    .find((table) => rowTableNames.has(table) || dictionaries.has(table));
}
