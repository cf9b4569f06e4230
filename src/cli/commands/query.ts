import { once } from "node:events";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import type { Failure } from "../../model/failure.ts";
import { parseDayOrInstant } from "../../model/time.ts";
import type { Parameters } from "../../warehouse/read/query.ts";
import { queryFormats, renderings } from "../output/row-formats.ts";
import { counted, durationText } from "../output/text.ts";
import { type CommandContext, usageFailure } from "../support/context.ts";
import { addSettingsFlags, settingsFor } from "../support/flags.ts";

const WRITTEN_AT_ONCE = 64 * 1024;
/** Rows that come slowly are shown as they come. */
const LONGEST_HELD_MS = 200;

interface Flags {
  readonly format?: string;
  readonly json?: boolean;
  readonly param?: readonly string[];
  readonly schema?: string;
}

export function addQueryCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("query"))
    .summary("run read-only SQL over the warehouse, or tell what there is to query")
    .description(
      "Runs one SELECT over the warehouse and writes what it gives to stdout, row by row, beside any " +
        "writer. The file is opened read-only: nothing can be changed by it. How many rows there were, " +
        "and how long it took, goes to stderr.\n\n" +
        "Without SQL it lists the relations; with --schema NAME it tells the columns of one.",
    )
    .argument("[sql]", "one statement that reads; - takes it from stdin")
    .option("--format <format>", `${queryFormats.join(", ")} (default: table)`)
    .option("--json", "the same as --format json")
    .option(
      "--param <name=value>",
      "what stands for :name in the SQL; a number, @ and a moment (its microseconds), or text; may be repeated",
      (pair: string, pairs: readonly string[] = []) => [...pairs, pair],
    )
    .option("--schema <name>", "the columns of a relation, with their meaning")
    .action(async (sql: string | undefined, flags: Flags, command: Command) => {
      const format = formatOf(flags);
      const { settings } = settingsFor(command, context);
      const { path } = settings.warehouse;
      if (sql === undefined || flags.schema !== undefined) {
        context.stdout.write(`${await describe(path, flags, sql)}\n`);
        return;
      }
      const parameters = readParameters(flags.param ?? []);
      context.dieOnSignal?.();
      const statement = sql === "-" && context.stdin ? await text(context.stdin) : sql;
      const begun = context.clock.monotonic();
      const rows = await write(context, { path, sql: statement, parameters }, renderings[format]);
      const seconds = (context.clock.monotonic() - begun) / 1000;
      const elapsed = seconds < 10 ? `${Math.round(seconds * 1000)} ms` : durationText(seconds);
      context.stderr.write(`${counted(rows, "row")} in ${elapsed}\n`);
    });
}

/** What there is to query is known without a warehouse; where there is one, a quant's own views are part of it. */
async function describe(path: string, { schema, json = false, param }: Flags, sql?: string): Promise<string> {
  if (sql !== undefined || param !== undefined) {
    throw usageFailure(
      sql === undefined ? "--param is of use only with SQL" : "--schema takes no SQL beside it",
      "leave out one of them",
    );
  }
  const { openReader } = await import("../../warehouse/reader.ts");
  const { relationList, relationSchema } = await import("./query-schema.ts");
  const reader = existsSync(path) ? openReader(path) : undefined;
  try {
    return schema === undefined ? relationList(reader, json) : relationSchema(reader, schema, json);
  } finally {
    reader?.close();
  }
}

async function write(
  { stdout, clock }: CommandContext,
  { path, sql, parameters }: { path: string; sql: string; parameters: Parameters },
  render: (typeof renderings)["csv"],
): Promise<number> {
  // Loaded when it runs: no other command waits for SQLite.
  const { asReadersFailure, openReader } = await import("../../warehouse/reader.ts");
  const { select } = await import("../../warehouse/read/query.ts");
  const connection = openReader(path);
  let count = 0;
  try {
    const { columns, rows } = select(connection, sql, parameters);
    const counting = (function* () {
      for (const row of rows) {
        count++;
        yield row;
      }
    })();
    let pending = "";
    let writtenAt = clock.monotonic();
    for (const piece of render(columns, counting)) {
      pending += piece;
      const now = clock.monotonic();
      if (pending.length < WRITTEN_AT_ONCE && now - writtenAt < LONGEST_HELD_MS) continue;
      if (!stdout.write(pending)) await once(stdout, "drain");
      pending = "";
      writtenAt = now;
    }
    stdout.write(pending);
    return count;
  } catch (error) {
    throw asReadersFailure(error, path);
  } finally {
    connection.close();
  }
}

function formatOf({ format: given, json }: Flags): (typeof queryFormats)[number] {
  const name = given ?? (json ? "json" : "table");
  const format = queryFormats.find((known) => known === name);
  if (!format) {
    const formats = `${queryFormats.slice(0, -1).join(", ")} or ${queryFormats.at(-1)}`;
    throw usageFailure(`--format cannot be ${name}`, `give ${formats}`);
  }
  if (json && format !== "json")
    throw usageFailure(`--json and --format ${format} contradict each other`, "leave out one of them");
  return format;
}

/** Reads `name=value` pairs. Whole and decimal numbers are numbers, `@` and a moment its microseconds, all else text. */
export function readParameters(given: readonly string[]): Parameters {
  return Object.fromEntries(
    given.map((pair) => {
      const [, name, value] = /^[:@$]?(\w+)=(.*)$/s.exec(pair) ?? [];
      if (name === undefined || value === undefined) throw wrong(pair, "give NAME=VALUE");
      return [name, readValue(pair, value)];
    }),
  );
}

function readValue(pair: string, value: string): string | number | bigint {
  if (/^-?(0|[1-9]\d{0,17})$/.test(value)) return BigInt(value);
  if (/^-?(0|[1-9]\d*)\.\d+$/.test(value)) return Number(value);
  if (!value.startsWith("@")) return value;
  const ts = parseDayOrInstant(value.slice(1));
  if (ts === undefined) throw wrong(pair, "after @ give YYYY-MM-DD, or a moment in UTC");
  return BigInt(ts);
}

function wrong(pair: string, remedy: string): Failure {
  return usageFailure(`--param cannot be ${pair}`, remedy);
}
