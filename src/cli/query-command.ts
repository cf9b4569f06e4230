import { once } from "node:events";
import type { Command } from "commander";
import { exitCode, Failure } from "../model/failure.ts";
import type { CommandContext } from "./command-context.ts";
import { durationText } from "./duration-text.ts";
import { queryFormats, renderings } from "./query-formats.ts";
import { counted } from "./report-text.ts";
import { addSettingsFlags, settingsFor } from "./settings-flags.ts";

const WRITTEN_AT_ONCE = 64 * 1024;
/** Rows that come slowly are shown as they come. */
const LONGEST_HELD_MS = 200;

export function addQueryCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("query"))
    .summary("run read-only SQL over the warehouse")
    .description(
      "Runs one SELECT over the warehouse and writes what it gives to stdout, row by row, beside any writer. The file is\n" +
        "opened read-only: nothing can be changed by it. How many rows there were, and how long it took, goes to stderr.",
    )
    .argument("<sql>", "one statement that reads")
    .option("--format <format>", queryFormats.join(", "), "table")
    .action(async (sql: string, options: { format: string }, command: Command) => {
      const format = queryFormats.find((name) => name === options.format);
      if (!format) throw wrongFormat(options.format);
      const { settings } = settingsFor(command, context);
      context.dieOnSignal?.();
      const begun = context.clock.monotonic();
      const rows = await write(context, settings.warehouse.path, sql, renderings[format]);
      const seconds = (context.clock.monotonic() - begun) / 1000;
      const elapsed = seconds < 10 ? `${Math.round(seconds * 1000)} ms` : durationText(seconds);
      context.stderr.write(`${counted(rows, "row")} in ${elapsed}\n`);
    });
}

async function write(
  { stdout, clock }: CommandContext,
  path: string,
  sql: string,
  render: (typeof renderings)["csv"],
): Promise<number> {
  // Loaded when it runs: no other command waits for SQLite.
  const { asReadersFailure, openReader } = await import("../warehouse/reader.ts");
  const { select } = await import("../warehouse/query.ts");
  const connection = openReader(path);
  let count = 0;
  try {
    const { columns, rows } = select(connection, sql);
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

function wrongFormat(given: string): Failure {
  return new Failure(`--format cannot be ${given}`, {
    family: "operator",
    code: "usage",
    remedy: `give ${queryFormats.slice(0, -1).join(", ")} or ${queryFormats.at(-1)}`,
    exit: exitCode.usage,
  });
}
