import type { Command } from "commander";
import { planReads } from "../../../library/reading/read-plan.ts";
import { countTicks, readTickRows } from "../../../library/reading/tick-reader.ts";
import type { CommandContext } from "../../support/context.ts";
import { tickOutput } from "./output-columns.ts";
import { addSeriesFlags, noteMissingRows, type SeriesFlags, writeSeries } from "./series-command.ts";

export function addTicksCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("ticks")
    .description(
      "Writes the ticks of [from, to), series by series in order of time, with the columns of the view `index_ticks`. " +
        "`price` is a number to calculate with, `price_exact` has every digit that the service sent.",
    )
    .option("--wide", "one row per time, and a column per series: of the prices, or of --columns");
  addSeriesFlags(command).action((names: string[], flags: SeriesFlags) =>
    writeSeries(command, context, {
      ...{ columns: tickOutput, figure: "price" },
      plan: (connection) => noteMissingRows(connection, planReads(connection, names, flags), context),
      read: readTickRows,
      count: countTicks,
    }),
  );
}
