import type { Command } from "commander";
import { checkFile } from "../../../library/reading/check-citation.ts";
import type { Difference } from "../../../library/rows.ts";
import { formatNumber, pluralize } from "../../output/text.ts";
import { type CommandContext, type CommonFlags, incompleteFailure } from "../../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../../support/flags.ts";

export function addCheckCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("check"), "warehouse")
    .description(
      "Recomputes what --cite of bars, ticks or asof has cited, in any warehouse of the same service. Exits 0 if the values are equal to " +
        "the last digit. Otherwise exits 4 with the first row that differs, or the range in which it is, and why as far as the ledger " +
        "knows: corrected later, withdrawn later, arrived later, open here, lost here.",
    )
    .argument("<line...>", "the line, from mds1 on")
    .option("--json", "the result as JSON")
    .action((line: readonly string[], flags: CommonFlags, command: Command) => {
      const { path } = loadSettingsAndWarn(command, context).settings.warehouse;
      const result = checkFile(path, line.join(" "));
      const { equal, rows, cited_rows, is_complete, difference } = result;
      if (flags.json) context.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
      else if (equal)
        context.stdout.write(
          `equal: ${pluralize(rows, "row")}, ${is_complete ? "complete" : "not proven complete"} here\n`,
        );
      else if (difference) context.stdout.write(`${describe(difference)}\n`);
      if (!equal)
        throw incompleteFailure(
          `not equal: ${formatNumber(cited_rows)} rows are cited, ${formatNumber(rows)} are here`,
          "the reason is on stdout",
        );
    });
}

function describe(difference: Difference): string {
  const { name, from_ts, to_ts, from_time, to_time, cited, here, reason, detail } = difference;
  const place = to_ts - from_ts === 1 ? from_time : `within [${from_time}, ${to_time})`;
  const why = detail === null ? reason : `${reason} (${detail})`;
  const parts = [why, cited !== null && `cited ${cited}`, here !== null && `here ${here}`];
  return `first difference: ${name} ${place}: ${parts.filter(Boolean).join("; ")}`;
}
