import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { parseQueryValue } from "../../model/answers/query.ts";
import { type Failure, usageFailure } from "../../model/failure.ts";
import { MICROS_PER_MS, type Micros, USER_TIME_FORMS } from "../../model/time.ts";
import type { QueryParameters } from "../../warehouse/query/query.ts";
import { QUERY_FORMATS, readFormat, rowRenderers } from "../output/row-formats.ts";
import { formatElapsed, pluralize } from "../output/text.ts";
import { writePieces } from "../output/write-output.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../support/flags.ts";
import type { KnownAtFlags } from "./data/known-state.ts";
import { addKnownAtFlags } from "./data/read-warehouse.ts";

interface QueryFlags extends KnownAtFlags {
  readonly format?: string;
  readonly json?: boolean;
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
      (pair: string, pairs: readonly string[] = []) => [...pairs, pair],
    )
    .option("--schema <name>", "the columns of a relation, with their meaning")
    .action(async (sql: string | undefined, flags: QueryFlags, command: Command) => {
      const format = readFormat(QUERY_FORMATS, flags, "table");
      const { settings } = loadSettingsAndWarn(command, context);
      const { path } = settings.warehouse;
      if (sql === undefined || flags.schema !== undefined) {
        context.stdout.write(`${await describeSchema(path, flags, sql)}\n`);
        return;
      }
      const parameters = readParameters(flags.param ?? [], Math.floor(context.clock.now()) * MICROS_PER_MS);
      context.dieOnSignal?.();
      const statement = sql === "-" && context.stdin ? await text(context.stdin) : sql;
      const startedAt = context.clock.monotonic();
      const query = { path, sql: statement, parameters, flags };
      const rows = await writeRows(context, query, rowRenderers[format]);
      const elapsed = formatElapsed(context.clock.monotonic() - startedAt);
      context.stderr.write(`${pluralize(rows, "row")} in ${elapsed}\n`);
    });
}

/** Works without a warehouse; with one, the list includes views that users added. */
async function describeSchema(
  path: string,
  { schema, json = false, param }: QueryFlags,
  sql?: string,
): Promise<string> {
  if (sql !== undefined || param !== undefined) {
    throw usageFailure(
      sql === undefined ? "--param needs SQL" : "--schema cannot be combined with SQL",
      sql === undefined ? "leave out --param, or give SQL" : "leave out one of them",
    );
  }
  const { openReader } = await import("../../warehouse/reader.ts");
  const { describeRelation, describeRelations } = await import("./query-schema.ts");
  const reader = existsSync(path) ? openReader(path) : undefined;
  try {
    return schema === undefined ? describeRelations(reader, json) : describeRelation(reader, schema, json);
  } finally {
    reader?.close();
  }
}

async function writeRows(
  context: CommandContext,
  query: { path: string; sql: string; parameters: QueryParameters; flags: QueryFlags },
  render: (typeof rowRenderers)["csv"],
): Promise<number> {
  // Loaded lazily, so that other commands do not load SQLite.
  const { toReaderFailure, openReader } = await import("../../warehouse/reader.ts");
  const { runReadQuery } = await import("../../warehouse/query/query.ts");
  const { findRelationsOfNow } = await import("../../warehouse/tables/known-at.ts");
  const { showState } = await import("./data/known-state.ts");
  const { stdout, stderr, clock } = context;
  const { path, sql, parameters, flags } = query;
  const connection = openReader(path);
  let count = 0;
  try {
    showState(connection, flags, context);
    if (flags.knownAt !== undefined)
      for (const name of findRelationsOfNow(connection, sql))
        stderr.write(`mds-sync: note: ${name} has no earlier states: its rows are those of now\n`);
    const values = connection.knownAt
      ? readParameters(flags.param ?? [], connection.knownAt.present)
      : parameters;
    const { columns, rows } = runReadQuery(connection, sql, values);
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

/** Parses `name=value` pairs. */
export function readParameters(pairs: readonly string[], now: Micros): QueryParameters {
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
