import type { Command } from "commander";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags } from "../../support/flags.ts";
import { addOutputFlags, type OutputFlags, readDataFormat } from "./data-output.ts";
import { selectColumns, tickOutput } from "./output-columns.ts";
import {
  addRangeFlags,
  addSeriesFlags,
  citeAnswer,
  noteMissingRows,
  type RangeFlags,
  readWarehouse,
} from "./read-warehouse.ts";
import { writeSeriesRows } from "./wide-rows.ts";

export function addTicksCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("ticks")
    .description(
      "Writes the ticks of [from, to), series by series in order of time, with the columns of the view `index_ticks`. " +
        "`price` is a number to calculate with, `price_exact` has every digit that the service sent.",
    )
    .option("--wide", "one row per time, and a column per series: of the prices, or of --columns");
  addRangeFlags(command);
  addSettingsFlags(addOutputFlags(addSeriesFlags(command)), "warehouse");
  command.action(async (series: string[], flags: RangeFlags & OutputFlags) => {
    readDataFormat(flags);
    const { findTimeZone } = await import("../../../library/reading/time-zone.ts");
    const zone = findTimeZone(flags.tz);
    const columns = selectColumns(tickOutput, flags.columns ?? (flags.wide ? "price" : undefined));
    await readWarehouse(command, context, async (connection) => {
      const { askFor } = await import("../../../library/reading/citation.ts");
      const { planReads } = await import("../../../library/reading/read-plan.ts");
      const { countTicks, readTickRows } = await import("../../../library/reading/tick-reader.ts");
      const plans = planReads(connection, { ...flags, names: series, source: "ticks" });
      noteMissingRows(connection, plans, context);
      const read = (plan: (typeof plans)[number]) => readTickRows(connection, plan.series, plan.range, zone);
      const countRows = () =>
        plans.reduce((sum, { series, range }) => sum + countTicks(connection, series, range), 0);
      const question = flags.cite && askFor(connection, plans, flags);
      await writeSeriesRows(context, flags, { plans, columns, read, countRows });
      if (question) await citeAnswer(connection, question, context);
    });
  });
}
