import type { Command } from "commander";
import { readBars } from "../../../library/reading/bar-reader.ts";
import { planReads } from "../../../library/reading/read-plan.ts";
import type { CommandContext } from "../../support/context.ts";
import { readChoice } from "../../support/flags.ts";
import { barOutput } from "./output-columns.ts";
import { addSeriesFlags, noteMissingRows, type SeriesFlags, writeSeries } from "./series-command.ts";

interface BarsFlags extends SeriesFlags {
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
  addSeriesFlags(command).action((names: string[], flags: BarsFlags) => {
    const source =
      flags.source === undefined ? undefined : readChoice("--source", flags.source, ["ticks", "ohlcv"]);
    return writeSeries(command, context, {
      ...{ columns: barOutput, figure: "close" },
      plan: (connection) =>
        noteMissingRows(connection, planReads(connection, names, { ...flags, source }), context),
      read: (connection, plan) => readBars(connection, plan, flags.running),
      count: (_connection, { range, grid }) => Math.ceil((range.to - range.from) / grid.length),
    });
  });
}
