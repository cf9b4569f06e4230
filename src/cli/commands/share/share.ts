import { resolve } from "node:path";
import type { Command } from "commander";
import { requireSharedSettings } from "../../../config/service-settings.ts";
import type { ShareResult } from "../../../share/share-once.ts";
import type { ProgressCounts } from "../../../sync/context/run-stats.ts";
import { drawBars, isTerminal } from "../../output/progress-bar.ts";
import { formatNumber, pluralize } from "../../output/text.ts";
import type { CommandContext } from "../../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../../support/flags.ts";

interface ShareFlags {
  verify?: boolean;
  json?: boolean;
  progress: boolean;
}

export function addShareCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("share"))
    .description(
      "Forwards to the PostgreSQL database of shared.url everything that it lacks, each range with its proof in one " +
        "transaction, then exits; for a cron job after `backfill`. `run` forwards all the time. Exits 75 if PostgreSQL is " +
        "unreachable, full or read-only, or while a daemon forwards; 2 if its version, its rights or the settings are wrong.",
    )
    .option("--verify", "also compare the rows of every covered range, and replace the ranges that differ")
    .option("--json", "one JSON object: rows, ranges, relations, commits, compared, mended, seconds")
    .option("--no-progress", "no progress bar")
    .action(async (flags: ShareFlags, command: Command) => {
      const { clock, directory, stdout, stderr, stopping } = context;
      const loaded = loadSettingsAndWarn(command, context);
      const shared = requireSharedSettings(loaded);
      // Loaded lazily, so that other commands do not load SQLite and the PostgreSQL client.
      const { shareOnce } = await import("../../../share/share-once.ts");
      let counts: ProgressCounts = { rows: 0, done: 0, planned: 0 };
      const showsBar = flags.progress && isTerminal(stderr);
      const bar = showsBar ? drawBars(clock, stderr, () => [["share", counts]]) : undefined;
      try {
        const result = await shareOnce({
          ...shared,
          warehouse: resolve(directory, loaded.settings.warehouse.path),
          verify: flags.verify === true,
          clock,
          signal: stopping,
          report(report) {
            if (report.kind === "warning" && report.message !== "")
              stderr.write(`mds-sync: warning: ${report.message}\n`);
            if (report.kind === "rows")
              counts = {
                rows: counts.rows + report.rows,
                done: report.doneMicros,
                planned: report.plannedMicros,
              };
          },
        });
        bar?.end();
        if (flags.json) stdout.write(`${JSON.stringify(result)}\n`);
        stderr.write(`${summarize(result, flags.verify === true)}\n`);
      } finally {
        bar?.end();
      }
    });
}

function summarize({ rows, commits, compared, mended, seconds }: ShareResult, isVerified: boolean): string {
  const forwarded = `${formatNumber(rows)} rows forwarded in ${pluralize(commits, "commit")}, ${seconds.toFixed(1)} s`;
  if (!isVerified && compared === 0) return `the shared warehouse is up to date: ${forwarded}`;
  const found = mended === 0 ? "no difference" : `${pluralize(mended, "range")} differed and were replaced`;
  return `the shared warehouse is up to date: ${forwarded}; ${formatNumber(compared)} rows compared, ${found}`;
}
