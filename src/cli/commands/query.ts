import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { parseQueryValue } from "../../model/answers/query.ts";
import { suggestWord } from "../../model/did-you-mean.ts";
import { type Failure, usageFailure } from "../../model/failure.ts";
import { MICROS_PER_MS, type Micros, USER_TIME_FORMS } from "../../model/time.ts";
import {
  type QueryParameters,
  readUndescribedColumns,
  readUserRelations,
  runReadQuery,
} from "../../warehouse/query/query.ts";
import { openReader, toReaderFailure } from "../../warehouse/reader.ts";
import { publicDocs, relationDocs } from "../../warehouse/schema/column-docs.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { findRelationsOfNow } from "../../warehouse/tables/known-at.ts";
import { QUERY_FORMATS, readFormat, rowRenderers } from "../output/row-formats.ts";
import { formatDescriptionTable, formatElapsed, pluralize, wrapText } from "../output/text.ts";
import { writePieces } from "../output/write-output.ts";
import type { CommandContext, CommonFlags } from "../support/context.ts";
import { addSettingsFlags, collectValues, loadSettingsAndWarn } from "../support/flags.ts";
import { addKnownAtFlags, type KnownAtFlags, showState } from "./data/known-at-flags.ts";

interface QueryFlags extends KnownAtFlags, CommonFlags {
  readonly format?: string;
  readonly param?: readonly string[];
  readonly schema?: string;
}

export function addQueryCommand(program: Command, context: CommandContext): void {
  addKnownAtFlags(addSettingsFlags(program.command("query"), "warehouse"))
    .description(
      "Runs one SELECT over the warehouse and streams the rows to stdout; a daemon may write meanwhile. " +
        "A bound on `time` is as fast as one on `ts`. " +
        "The file is opened read-only, so a query cannot change it. The number of rows and the " +
        "duration go to stderr.\n\n" +
        "Without SQL it lists the relations; with --schema NAME it shows the columns of one.",
    )
    .argument("[sql]", "one read-only statement; - reads it from stdin")
    .option("--format <format>", `${QUERY_FORMATS.join(", ")} (default: table)`)
    .option("--json", "the same as --format json")
    .option(
      "--param <name=value>",
      "value of :name in the SQL: a number, @TIME (as microseconds), or text; may be repeated",
      collectValues,
    )
    .option("--schema <name>", "the columns of a relation, with their meaning")
    .action(async (sql: string | undefined, flags: QueryFlags, command: Command) => {
      const format = readFormat(QUERY_FORMATS, flags, "table");
      const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
      if (sql === undefined || flags.schema !== undefined) {
        context.stdout.write(`${describeSchema(path, flags, sql)}\n`);
        return;
      }
      // Before a warehouse is needed; those of an earlier state are relative to it.
      readParameters(flags.param, 0);
      context.dieOnSignal?.();
      const statement = sql === "-" && context.stdin ? await text(context.stdin) : sql;
      const startedAt = context.clock.monotonic();
      const rows = await writeRows(context, { path, sql: statement, flags }, rowRenderers[format]);
      const elapsed = formatElapsed(context.clock.monotonic() - startedAt);
      context.stderr.write(`${pluralize(rows, "row")} in ${elapsed}\n`);
    });
}

/** Works without a warehouse; with one, the list includes views that users added. */
function describeSchema(path: string, { schema, json = false, param }: QueryFlags, sql?: string): string {
  if (sql !== undefined) throw usageFailure("--schema cannot be combined with SQL", "leave out one of them");
  if (param !== undefined) throw usageFailure("--param needs SQL", "leave out --param, or give SQL");
  const reader = existsSync(path) ? openReader(path) : undefined;
  try {
    return schema === undefined ? describeRelations(reader, json) : describeRelation(reader, schema, json);
  } finally {
    reader?.close();
  }
}

/** For relations of users. */
const UNKNOWN_SUMMARY = "not part of mds-sync";

const listUserRelations = (reader: Connection | undefined) => (reader ? readUserRelations(reader) : []);

function describeRelations(reader: Connection | undefined, asJson: boolean): string {
  const relations = [
    ...Object.entries(publicDocs).map(([name, { summary }]) => ({ name, summary })),
    ...listUserRelations(reader).map((name) => ({ name, summary: UNKNOWN_SUMMARY })),
  ];
  if (asJson) return JSON.stringify(relations, null, 2);
  const list = formatDescriptionTable(relations.map(({ name, summary }) => [name, summary]));
  return `${list}\n\n\`mds-sync query --schema NAME\` shows the columns of one relation.`;
}

function describeRelation(reader: Connection | undefined, given: string, asJson: boolean): string {
  const known = [...Object.keys(relationDocs), ...listUserRelations(reader)];
  const name = known.find((each) => each.toLowerCase() === given.toLowerCase());
  if (name === undefined) {
    const remedy = suggestWord(given, known, "`mds-sync query` lists the relations");
    throw usageFailure(`there is no relation ${given}`, remedy);
  }
  const { summary, columns } = relationDocs[name] ?? {
    summary: UNKNOWN_SUMMARY,
    columns: reader ? readUndescribedColumns(reader, name) : [],
  };
  if (asJson) return JSON.stringify({ name, summary, columns }, null, 2);
  const table = formatDescriptionTable(columns.map(({ name, type, meaning }) => [name, type, meaning]));
  return `${wrapText(`${name}: ${summary}`)}\n\n${table}`;
}

async function writeRows(
  context: CommandContext,
  { path, sql, flags }: { path: string; sql: string; flags: QueryFlags },
  render: (typeof rowRenderers)["csv"],
): Promise<number> {
  const { stdout, stderr, clock } = context;
  const connection = openReader(path);
  let count = 0;
  try {
    showState(connection, flags, context);
    if (flags.knownAt !== undefined)
      for (const name of findRelationsOfNow(connection, sql))
        stderr.write(`mds-sync: note: ${name} has no earlier states: its rows are those of now\n`);
    const now = connection.knownAt?.present ?? Math.floor(clock.now()) * MICROS_PER_MS;
    const { columns, rows } = runReadQuery(connection, sql, readParameters(flags.param, now));
    const counting = (function* () {
      for (const row of rows) {
        count++;
        yield row;
      }
    })();
    await writePieces(stdout, render(columns, counting), clock);
    return count;
  } catch (error) {
    throw toReaderFailure(error, path);
  } finally {
    connection.close();
  }
}

export function readParameters(pairs: readonly string[] = [], now: Micros): QueryParameters {
  return Object.fromEntries(
    pairs.map((pair) => {
      const [, name, value] = /^[:@$]?(\w+)=(.*)$/s.exec(pair) ?? [];
      if (name === undefined || value === undefined) throw paramFailure(pair, "give NAME=VALUE");
      const parsed = parseQueryValue(value, now);
      if (parsed === undefined) throw paramFailure(pair, `after @ give ${USER_TIME_FORMS}`);
      return [name, parsed];
    }),
  );
}

function paramFailure(pair: string, remedy: string): Failure {
  return usageFailure(`--param cannot be ${pair}`, remedy);
}
