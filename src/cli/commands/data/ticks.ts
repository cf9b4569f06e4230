import type { Command } from "commander";
import { askFor } from "../../../library/reading/citation.ts";
import { planReads } from "../../../library/reading/read-plan.ts";
import { countTicks, readTickRows } from "../../../library/reading/tick-reader.ts";
import { findTimeZone } from "../../../library/reading/time-zone.ts";
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
  addSeriesFlags(command).action((names: string[], flags: SeriesFlags) => {
    const zone = findTimeZone(flags.tz);
    return writeSeries(command, context, { columns: tickOutput, figure: "price" }, (connection) => {
      const plans = planReads(connection, { ...flags, names, source: "ticks" });
      noteMissingRows(connection, plans, context);
      return {
        parts: plans.map(({ series, range }) => ({
          series,
          rows: readTickRows(connection, series, range, zone),
        })),
        countRows: () =>
          plans.reduce((sum, { series, range }) => sum + countTicks(connection, series, range), 0),
        question: flags.cite ? askFor(connection, plans, flags) : undefined,
      };
    });
  });
}
