import type { Command } from "commander";
import type { LoadedSettings } from "../../config/load-settings.ts";
import { remedyFor } from "../../library/incomplete-failure.ts";
import { findTimeZone } from "../../library/reading/time-zone.ts";
import { Failure, usageFailure } from "../../model/failure.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { resolveNames } from "../../warehouse/lookups/resolve-names.ts";
import { type GapReport, hasLedger, readGapReport } from "../../warehouse/read/gap-report.ts";
import { withReader } from "../../warehouse/reader.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import { formatGapList, formatRangeReport } from "../output/gaps-report.ts";
import type { CommandContext, CommonFlags } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn, toConfirmationRules } from "../support/flags.ts";
import {
  addSelectionFlags,
  readSelection,
  type SelectionFilter,
  type SelectionFlags,
} from "../support/selection-flags.ts";
import { addKnownAtFlags, type KnownAtFlags, showState } from "./data/known-at-flags.ts";

interface GapsFlags extends SelectionFlags, KnownAtFlags, CommonFlags {}

export function addGapsCommand(program: Command, context: CommandContext): void {
  addKnownAtFlags(addSelectionFlags(addSettingsFlags(program.command("gaps"), "warehouse")))
    .description(
      "Lists every gap with its reason: open (it will be fetched), unconfirmed (all that the service has shown is stored; it must say " +
        "once more that there is nothing else) or lost (the service no longer has it); and the next gap to leave the service's 200-day window.\n\n" +
        "With --from or --to it checks whether the range [from, to) is complete: it clips the gaps to the range, and exits 4 if any " +
        "second of the range is not proven; where only confirmations are missing, it says when they come. Without --from the range begins where the " +
        "ledger of each series begins; without --to it ends at the newest timestamp that can be final.",
    )
    .option("--tz <zone>", "the zone of times, such as America/New_York; default: UTC")
    .option("--json", "a JSON array of the rows of the view `gaps`")
    .action((flags: GapsFlags, command: Command) => {
      readSelection(flags, context.clock);
      const { settings } = loadSettingsAndWarn(command, context);
      const hasRange = flags.from !== undefined || flags.to !== undefined;
      const { report, selection } = withReader(settings.warehouse.path, (connection) =>
        connection.database.transaction(() => readGaps(connection, settings, flags, context))(),
      );
      const zone = findTimeZone(flags.tz);
      const text = flags.json
        ? JSON.stringify(report.gaps, null, 2)
        : hasRange
          ? formatRangeReport(report, selection, settings.sync.confirmEvery, zone)
          : formatGapList(report, zone);
      context.stdout.write(`${text}\n`);
      if (hasRange) assertComplete(report);
    });
}

function readGaps(
  connection: Connection,
  settings: LoadedSettings["settings"],
  flags: GapsFlags,
  context: CommandContext,
) {
  showState(connection, flags, context);
  const { knownAt } = connection;
  // Relative times are relative to the moment of the state.
  const clock = knownAt ? { now: () => knownAt.present / MICROS_PER_MS } : context.clock;
  const selection = readSelection(flags, clock);
  assertHasHistory(selection);
  const named = selection.series && resolveNames(connection, selection.series);
  for (const name of named?.ambiguous ?? [])
    context.stderr.write(
      `mds-sync: warning: --series ${name} matches several series: all of them are used\n`,
    );
  const filter = { streams: selection.streams, series: named?.found };
  const rules = toConfirmationRules(settings);
  return { report: readGapReport(connection, filter, selection, rules), selection };
}

function assertComplete({ gaps, keys, outsideRange, unresolved }: GapReport): void {
  const unproven = gaps.length + outsideRange.length;
  if (keys.length > 0 && unproven + unresolved.length === 0) return;
  const reasons = keys.length === 0 ? ["pending"] : gaps.map(({ reason }) => reason);
  throw new Failure("the range is not complete", {
    code: "not_whole",
    remedy:
      unproven === 0 && unresolved.length > 0
        ? "`mds-sync backfill` asks again; set the selector to none if the service has none"
        : remedyFor(new Set(reasons)),
  });
}

function assertHasHistory({ streams, from, to }: SelectionFilter): void {
  if ((from ?? to) === undefined || streams === undefined || streams.some(hasLedger)) return;
  throw usageFailure(`a lookup such as ${streams[0]} has no history`, "leave out --from and --to");
}
