import type { Command } from "commander";
import { type ExitCode, exitCode, Failure } from "../../model/failure.ts";
import { formatInstant } from "../../model/time.ts";
import { type BackfillReport, backfill } from "../../sync/history/backfill.ts";
import { isTerminal, showProgress } from "../output/progress-bar.ts";
import { numbersTable, wrapped } from "../output/text.ts";
import type { CommandContext } from "../support/context.ts";
import { addSettingsFlags, logLevelFlag, logLevelHelp, readLogger, settingsFor } from "../support/flags.ts";
import { addSelectionFlags, readSelection, type SelectionFlags } from "../support/selection-flags.ts";
import { syncSettings, withSyncSession } from "../support/session.ts";

/** What a run did, for people, on 80 columns. */
export function reportText(report: BackfillReport): string {
  const rows = report.streams.map(({ stream, inserted, changed, withdrawn, requests, open, rejected }) => [
    stream,
    count(inserted),
    count(changed + withdrawn),
    count(requests),
    count(open),
    count(rejected),
  ]);
  const head = ["stream", "new rows", "changed", "requests", "holes left", "rejects"];
  const lines = [numbersTable([head, ...rows])];
  for (const { stream, what, message } of report.problems) {
    lines.push(wrapped(`${stream}${what === undefined ? "" : ` (${what})`}: ${message}`, "- "));
  }
  const total = report.streams.reduce((sum, { inserted }) => sum + inserted, 0);
  lines.push(`${count(total)} new rows in ${report.seconds.toFixed(1)} s`);
  return `${lines.join("\n")}\n`;
}

/** The same for machines. */
export function reportJson(report: BackfillReport): string {
  return JSON.stringify(
    {
      finished_at: formatInstant(report.finishedAt),
      seconds: report.seconds,
      exit: report.exit,
      streams: report.streams.map(({ stream, inserted, changed, withdrawn, requests, open, rejected }) => ({
        stream,
        rows: inserted,
        changed,
        withdrawn,
        requests,
        open,
        rejected,
      })),
      problems: report.problems,
    },
    null,
    2,
  );
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}

interface Flags extends SelectionFlags {
  json?: boolean;
  progress: boolean;
  logLevel?: string;
}

export function addBackfillCommand(program: Command, context: CommandContext): void {
  addSelectionFlags(addSettingsFlags(program.command("backfill")))
    .summary("fill every hole of what the settings select, then exit: the nightly cron job")
    .description(
      "Refreshes the lookups, fills every hole of what the settings select, takes one snapshot of each latest-only " +
        "stream, reports, and exits. Run again with nothing missing it fetches nearly nothing and changes no row. " +
        "Interrupted at any moment it goes on where it was. The options narrow what is filled now, not what is wanted.",
    )
    .option("--json", "the report as one JSON object")
    .option("--no-progress", "neither progress bars nor lines about progress")
    .option(logLevelFlag, `${logLevelHelp}; info, or warn beside progress bars`)
    .action(async (flags: Flags, command: Command) => {
      const loaded = settingsFor(command, context);
      const { streams, series, from, to } = readSelection(flags);
      const isWindow = from !== undefined || to !== undefined;
      const window = { from: from ?? Number.MIN_SAFE_INTEGER, to: to ?? Number.MAX_SAFE_INTEGER };
      const hasBars = flags.progress && isTerminal(context.stderr);
      const log = readLogger(flags.logLevel ?? (hasBars ? "warn" : "info"), context.stderr);
      const report = await withSyncSession(loaded, context, log, async ({ intake, reader, random }) => {
        const progress = flags.progress ? showProgress(intake, context.stderr) : undefined;
        try {
          return await backfill(intake, {
            settings: syncSettings(loaded),
            reader,
            random,
            scope: {
              ...(streams ? { streams: new Set(streams) } : {}),
              ...(series ? { series } : {}),
              ...(isWindow ? { window } : {}),
            },
          });
        } finally {
          progress?.end();
        }
      });
      context.stdout.write(flags.json ? `${reportJson(report)}\n` : reportText(report));
      if (report.exit !== exitCode.ok) throw incomplete(report.problems.length, report.exit);
    });
}

function incomplete(problems: number, exit: ExitCode): Failure {
  const what =
    problems > 0 ? "not everything selected could be synced" : "some records or ranges are missing";
  return new Failure(what, {
    family: "operator",
    code: "incomplete",
    remedy: "the report names what is left",
    exit,
  });
}
