import type { Command } from "commander";
import type { BarSource } from "../../../library/rows.ts";
import { usageFailure } from "../../../model/failure.ts";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags } from "../../support/flags.ts";
import { addOutputFlags, type OutputFlags, readDataFormat } from "./data-output.ts";
import { barOutput, selectColumns } from "./output-columns.ts";
import {
  addRangeFlags,
  addSeriesFlags,
  citeAnswer,
  noteMissingRows,
  type RangeFlags,
  readWarehouse,
} from "./read-warehouse.ts";
import { writeSeriesRows } from "./wide-rows.ts";

interface BarsFlags extends RangeFlags, OutputFlags {
  readonly every: string;
  readonly source?: string;
  readonly running?: boolean;
  readonly over?: string;
}

export function addBarsCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("bars")
    .description(
      "Writes the bars that begin in [from, to), each with its coverage: open, high, low, close, the number of ticks, and whether " +
        "the ledger proves that none is missing. They are made of kept hourly bars where possible, else of ticks; of a series " +
        "without ticks they are made of the service's daily bars. A period without ticks has no bar.\n\n" +
        "Bars shorter than a day begin at multiples of their length since 1970-01-01 00:00 UTC; with --tz they count from each " +
        "midnight. Bars of days begin at midnight, of weeks on Monday.",
    )
    .requiredOption("--every <length>", "the length of a bar: 30s, 10m, 1h, 1d, 1w …")
    .option("--wide", "one row per time, and a column per series: of the closes, or of --columns")
    .option("--running", "also the bar that is not over yet (quality: in progress)")
    .option("--over <series>", "the prices in that of this series: each tick over its newest price by then")
    .option("--source <source>", "ticks or ohlcv (daily bars); default: ticks, if there are any");
  addRangeFlags(command);
  addSettingsFlags(addOutputFlags(addSeriesFlags(command)), "warehouse");
  command.action(async (series: string[], flags: BarsFlags) => {
    readDataFormat(flags);
    const { createBarGrid } = await import("../../../library/reading/bar-grid.ts");
    const { findTimeZone } = await import("../../../library/reading/time-zone.ts");
    const grid = createBarGrid(flags.every, findTimeZone(flags.tz));
    const source = readSource(flags.source);
    const columns = selectColumns(barOutput, flags.columns ?? (flags.wide ? "close" : undefined));
    await readWarehouse(command, context, async (connection) => {
      const { askFor } = await import("../../../library/reading/citation.ts");
      const { planReads } = await import("../../../library/reading/read-plan.ts");
      const { readBars } = await import("../../../library/reading/bar-reader.ts");
      const plans = planReads(connection, { ...flags, names: series, grid, source });
      noteMissingRows(connection, plans, context);
      const read = (plan: (typeof plans)[number]) => readBars(connection, plan, grid, flags.running);
      const countRows = () =>
        plans.reduce((sum, { range }) => sum + Math.ceil((range.to - range.from) / grid.length), 0);
      const question = flags.cite && askFor(connection, plans, flags);
      await writeSeriesRows(context, flags, { plans, columns, read, countRows, hasCompleteness: true });
      if (question) await citeAnswer(connection, question, context);
    });
  });
}

function readSource(text: string | undefined): BarSource | undefined {
  if (text === undefined || text === "ticks" || text === "ohlcv") return text;
  throw usageFailure(`--source cannot be ${text}`, "give ticks or ohlcv");
}
