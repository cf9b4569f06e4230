import type { Command } from "commander";
import { exitCode, Failure } from "../../model/failure.ts";
import type { Missing } from "../../warehouse/read/gap-report.ts";
import { hasLedger } from "../../warehouse/read/gap-report.ts";
import { listReport, windowReport } from "../output/gaps-report.ts";
import type { CommandContext } from "../support/context.ts";
import { usageFailure } from "../support/context.ts";
import { addSettingsFlags, settingsFor } from "../support/flags.ts";
import {
  addSelectionFlags,
  readSelection,
  type Selection,
  type SelectionFlags,
} from "../support/selection-flags.ts";

interface Flags extends SelectionFlags {
  readonly json?: boolean;
}

export function addGapsCommand(program: Command, context: CommandContext): void {
  addSelectionFlags(addSettingsFlags(program.command("gaps")))
    .summary("list every missing range with its state, or tell whether a window is whole")
    .description(
      "Lists every range that is missing: open (it will be fetched) or lost (the service no longer has it), with the reason, " +
        "and the next range to leave the service's 200-day window.\n\n" +
        "With --from or --to it answers whether the window [from, to) is whole: ranges are clipped to it, and the exit code " +
        "is 4 if any second of it is open or lost, or if nothing is known about it. Without --from the window begins for each " +
        "series where the ledger does; without --to it ends where the claim does (now, but for what awaits confirmation).",
    )
    .option("--json", "a JSON array of the rows of the view `gaps`")
    .action(async (flags: Flags, command: Command) => {
      const selection = readSelection(flags);
      const { settings } = settingsFor(command, context);
      const isWindow = selection.from !== undefined || selection.to !== undefined;
      if (isWindow) assertHasHistory(selection);
      const missing = await look(settings.warehouse.path, selection, isWindow, context);
      const text = flags.json
        ? JSON.stringify(missing.gaps, null, 2)
        : isWindow
          ? windowReport(missing, selection)
          : listReport(missing);
      context.stdout.write(`${text}\n`);
      if (isWindow && !isWhole(missing)) throw notWhole(missing);
    });
}

async function look(
  path: string,
  selection: Selection,
  isWindow: boolean,
  context: CommandContext,
): Promise<Missing> {
  // Loaded when it runs: no other command waits for SQLite.
  const { lookOn } = await import("../../warehouse/reader.ts");
  const { findNamed } = await import("../../warehouse/lookups/resolve-names.ts");
  const { readMissing, readMissingInWindow } = await import("../../warehouse/read/gap-report.ts");
  return lookOn(path, (connection) => {
    const named = selection.series && findNamed(connection, selection.series);
    for (const name of named?.shared ?? []) {
      context.stderr.write(
        `mds-sync: warning: --series ${name} is the name of several: all of them are meant\n`,
      );
    }
    const lines = { streams: selection.streams, series: named?.found };
    return isWindow ? readMissingInWindow(connection, lines, selection) : readMissing(connection, lines);
  });
}

function isWhole({ lines, gaps, outside }: Missing): boolean {
  return lines.length > 0 && gaps.length === 0 && outside.length === 0;
}

function notWhole({ gaps, lines }: Missing): Failure {
  const reasons = new Set(gaps.map(({ reason }) => reason));
  return new Failure("the window is not whole", {
    family: "operator",
    code: "not_whole",
    remedy: remedyFor(reasons, lines.length === 0),
    exit: exitCode.incomplete,
  });
}

function remedyFor(reasons: ReadonlySet<string>, isNothingFollowed: boolean): string {
  if (reasons.has("pending") || isNothingFollowed) return "`mds-sync backfill` fetches what is open";
  if (reasons.has("not selected"))
    return "select the series, or more days of it (sync.intraday.days), then `mds-sync backfill`";
  if (reasons.has("settling"))
    return "its head awaits confirmation; ask again in a while, or with an earlier --to";
  return "the reasons stand beside the ranges; a narrower window may be whole";
}

function assertHasHistory({ streams }: Selection): void {
  if (streams === undefined || streams.some(hasLedger)) return;
  throw usageFailure(
    `a lookup such as ${streams[0]} has no history that could be whole`,
    "leave out --from and --to",
  );
}
