import type { Command } from "commander";
import { type CommandContext, incompleteFailure, usageFailure } from "../../support/context.ts";
import { addSettingsFlags } from "../../support/flags.ts";
import { addOutputFlags, type OutputFlags, readDataFormat, writeData } from "./data-output.ts";
import { asOfOutput, selectColumns } from "./output-columns.ts";
import { addSeriesFlags, readWarehouse, type SeriesFlags } from "./read-warehouse.ts";

export function addAsofCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("asof")
    .description(
      "Writes the last price of each series at or before a moment, and how old it was then. `is_complete` is 1 if the ledger " +
        "proves that the service has no later price up to the moment. A series without ticks has the close of its last full day.",
    )
    .argument("<time>", "a time such as '2026-03-01 12:00', 2026-03-01T07:00:00-05:00, now or -7d")
    // A relative time such as -7d looks like an option.
    .allowUnknownOption();
  addSettingsFlags(addOutputFlags(addSeriesFlags(command)), "warehouse");
  command.action(async (time: string, series: string[], flags: SeriesFlags & OutputFlags) => {
    const option = series.find((name) => name.startsWith("-")) ?? (/^-[^\d]/.test(time) ? time : undefined);
    if (option !== undefined) throw usageFailure(`unknown option '${option}'`, "see mds-sync asof --help");
    readDataFormat(flags);
    const { findTimeZone } = await import("../../../library/reading/time-zone.ts");
    const zone = findTimeZone(flags.tz ?? "UTC");
    const columns = selectColumns(asOfOutput, flags.columns);
    await readWarehouse(command, context, async (connection) => {
      const { readTime } = await import("../../../library/reading/read-plan.ts");
      const { resolveSeries } = await import("../../../library/reading/series-names.ts");
      const { readAsOf } = await import("../../../library/reading/as-of-reader.ts");
      const { readPresentTs } = await import("../../../warehouse/coverage/targets.ts");
      const at = readTime(time, readPresentTs(connection));
      const all = resolveSeries(connection, series, flags.indexType);
      const rows = all.map((one) => readAsOf(connection, one, at, { zone }));
      const unproven = rows.filter(({ is_complete }) => is_complete === 0).map(({ name }) => name);
      if (flags.requireComplete && unproven.length > 0)
        throw incompleteFailure(
          `a later price may be missing: ${unproven.join(", ")}`,
          "`mds-sync gaps` shows what is missing, and why",
        );
      await writeData(context, flags, { columns, rows, countRows: () => rows.length });
    });
  });
}
