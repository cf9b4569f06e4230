import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import type { Schedule, TimeInput } from "../../../library/read-options.ts";
import type { AsOfRow } from "../../../library/rows.ts";
import { errorCode, usageFailure } from "../../../model/failure.ts";
import { type CommandContext, incompleteFailure } from "../../support/context.ts";
import { addSettingsFlags } from "../../support/flags.ts";
import { addOutputFlags, type OutputFlags, readDataFormat } from "./data-output.ts";
import { asOfOutput, type OutputColumn, selectColumns } from "./output-columns.ts";
import {
  addRangeFlags,
  addSeriesFlags,
  citeAnswer,
  type RangeFlags,
  readWarehouse,
} from "./read-warehouse.ts";
import { writeSeriesRows } from "./wide-rows.ts";

interface AsOfFlags extends RangeFlags, OutputFlags {
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
  addRangeFlags(command);
  addSettingsFlags(addOutputFlags(addSeriesFlags(command)), "warehouse");
  command.action(async (given: string[], flags: AsOfFlags) => {
    if (flags.at !== undefined && flags.times !== undefined)
      throw usageFailure("--at cannot be combined with --times", "leave out one of them");
    const isSingle = flags.at === undefined && flags.times === undefined;
    const names = isSingle ? given.slice(1) : given;
    const option = names.find((name) => name.startsWith("-")) ?? given.find((each) => /^-[^\d]/.test(each));
    if (option !== undefined) throw usageFailure(`unknown option '${option}'`, "see mds-sync asof --help");
    if (names.length === 0)
      throw usageFailure("asof needs a time and a series", "such as mds-sync asof now BTC");
    readDataFormat(flags);
    const { findTimeZone } = await import("../../../library/reading/time-zone.ts");
    const zone = findTimeZone(flags.tz);
    const chosen = selectColumns(asOfOutput, flags.columns ?? (flags.wide ? "price" : undefined));
    const input = isSingle ? (given[0] ?? "") : await readInput(context, flags);
    await readWarehouse(command, context, async (connection) => {
      const { readMoments } = await import("../../../library/reading/read-plan.ts");
      const { resolveSources } = await import("../../../library/reading/series-names.ts");
      const { readAsOf } = await import("../../../library/reading/as-of-reader.ts");
      const { readPresentTs } = await import("../../../warehouse/coverage/targets.ts");
      const listed = readMoments(input, readPresentTs(connection), zone);
      const moments = flags.wide ? [...new Set(listed)].sort((a, b) => a - b) : listed;
      const { askAsOf } = await import("../../../library/reading/citation.ts");
      const plans = resolveSources(connection, names, flags).map((sourced) => ({
        ...sourced,
        rows: moments.map((at) => readAsOf(connection, sourced, at, zone)),
      }));
      if (flags.requireComplete) assertComplete(plans.flatMap(({ rows }) => rows));
      const { of, tz, at: schedule } = flags;
      const question = flags.cite && askAsOf(connection, plans, { of, tz, moments, schedule });
      await writeSeriesRows(context, flags, {
        plans,
        columns: chosen.map(ofMoment),
        read: ({ rows }) => rows.map(toMoment).values(),
        countRows: () => plans.length * moments.length,
        hasCompleteness: true,
      });
      if (question) await citeAnswer(connection, question, context);
    });
  });
}

/** A row in its place among others: by the moment that was asked for. */
interface MomentRow extends Pick<AsOfRow, "is_complete"> {
  readonly ts: number;
  readonly time: string;
  readonly row: AsOfRow;
}

const toMoment = (row: AsOfRow): MomentRow => ({
  ts: row.at_ts,
  time: row.at,
  is_complete: row.is_complete,
  row,
});

function ofMoment({ name, type, read, readTs }: OutputColumn<AsOfRow>): OutputColumn<MomentRow> {
  return { name, type, read: ({ row }) => read(row), ...(readTs && { readTs: ({ row }) => readTs(row) }) };
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
  const lines = times === "-" && context.stdin ? await text(context.stdin) : readTimes(context, times);
  const listed = lines
    .split("\n")
    .map((line) => line.trim())
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
