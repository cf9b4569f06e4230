import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import type { Schedule, TimeInput } from "../../../library/read-options.ts";
import { readAsOf } from "../../../library/reading/as-of-reader.ts";
import { planMoments } from "../../../library/reading/read-plan.ts";
import type { AsOfRow } from "../../../library/rows.ts";
import { errorCode, usageFailure } from "../../../model/failure.ts";
import { type CommandContext, incompleteFailure } from "../../support/context.ts";
import { asOfOutput } from "./output-columns.ts";
import { addSeriesFlags, type SeriesFlags, writeSeries } from "./series-command.ts";

interface AsOfFlags extends SeriesFlags {
  readonly at?: string;
  readonly times?: string;
}

export function addAsofCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("asof")
    .usage(
      "[options] <time> <series...>\n       mds-sync asof [options] --at <HH:MM> --from <time> <series...>",
    )
    .description(
      "Writes the last price of each series at or before a moment, and how old it was then. `is_complete` is 1 if the ledger " +
        "proves that the service has no later price up to the moment. A series without ticks has the close of its last full day.\n\n" +
        "With --at it writes a row for each day on which that moment is in [from, to): the time is that of the clocks of --tz, " +
        "also on days when these change.",
    )
    .option("--at <HH:MM>", "one moment a day: this time of the clocks of --tz, instead of <time>")
    .option("--times <file>", "several moments, one a line, instead of <time>; - reads them from stdin")
    .option("--wide", "one row per moment, and a column per series: of the prices, or of --columns")
    // A relative time such as -7d looks like an option.
    .allowUnknownOption();
  addSeriesFlags(command).action(async (given: string[], flags: AsOfFlags) => {
    if (flags.at !== undefined && flags.times !== undefined)
      throw usageFailure("--at cannot be combined with --times", "leave out one of them");
    const isSingle = flags.at === undefined && flags.times === undefined;
    const names = isSingle ? given.slice(1) : given;
    const option = names.find((name) => name.startsWith("-")) ?? given.find((each) => /^-[^\d]/.test(each));
    if (option !== undefined) throw usageFailure(`unknown option '${option}'`, "see mds-sync asof --help");
    if (names.length === 0)
      throw usageFailure("asof needs a time and a series", "such as mds-sync asof now BTC");
    const input = isSingle ? (given[0] ?? "") : await readInput(context, flags);
    await writeSeries(command, context, {
      ...{ columns: asOfOutput, figure: "price" },
      plan: (connection) => {
        const plans = planMoments(connection, input, names, flags).map((plan) => {
          const moments = flags.wide ? [...new Set(plan.moments)].sort((a, b) => a - b) : plan.moments;
          return { ...plan, moments, rows: readAsOf(connection, { ...plan, moments }) };
        });
        if (flags.requireComplete) assertComplete(plans.flatMap(({ rows }) => rows));
        return plans;
      },
      read: (_connection, { rows }) => rows,
      count: (_connection, { rows }) => rows.length,
    });
  });
}

async function readInput(
  context: CommandContext,
  { at, times, from, to }: AsOfFlags,
): Promise<readonly TimeInput[] | Schedule> {
  if (times === undefined) {
    if (at === undefined || from === undefined)
      throw usageFailure("--at needs the days", "give the first with --from");
    return { at, from, ...(to !== undefined && { to }) };
  }
  const content = times === "-" && context.stdin ? await text(context.stdin) : readTimes(context, times);
  const listed = content
    .trim()
    .split(/\s*\n\s*/)
    .filter((line) => line !== "");
  if (listed.length === 0) throw usageFailure("--times has no time", "give one time a line");
  return listed;
}

function readTimes({ directory }: CommandContext, file: string): string {
  try {
    return readFileSync(resolve(directory, file), "utf8");
  } catch (error) {
    throw usageFailure(`--times cannot be ${file} (${errorCode(error)})`, "name a file with one time a line");
  }
}

function assertComplete(rows: readonly AsOfRow[]): void {
  const unproven = rows.filter(({ is_complete }) => is_complete === 0);
  if (unproven.length === 0) return;
  const names = [...new Set(unproven.map(({ name }) => name))];
  throw incompleteFailure(
    `a later price may be missing: ${names.join(", ")}`,
    "`mds-sync gaps` shows what is missing, and why",
  );
}
