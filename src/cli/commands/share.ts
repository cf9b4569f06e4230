import { resolve } from "node:path";
import type { Command } from "commander";
import { requireSharedSettings } from "../../config/load-settings.ts";
import { type ShareResult, shareOnce } from "../../share/share-once.ts";
import type { ProgressCounts } from "../../sync/context/run-stats.ts";
import { underBar } from "../output/progress-bar.ts";
import { formatNumber, pluralize } from "../output/text.ts";
import type { CommandContext, CommonFlags } from "../support/context.ts";
import { addSettingsFlags, loadSettingsAndWarn } from "../support/flags.ts";

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
    .action(async (flags: CommonFlags & { readonly verify?: boolean }, command: Command) => {
      const { clock, directory, stdout, stderr, stopping } = context;
      const loaded = loadSettingsAndWarn(command, context);
      const verify = flags.verify === true;
      const shared = requireSharedSettings(loaded);
      let counts: ProgressCounts = { rows: 0, done: 0, planned: 0 };
      const share = () =>
        shareOnce({
          ...shared,
          warehouse: resolve(directory, loaded.settings.warehouse.path),
          verify,
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
      const result = await underBar(flags, context, "share", () => counts, share);
      if (flags.json) stdout.write(`${JSON.stringify(result)}\n`);
      stderr.write(`${summarize(result, verify)}\n`);
    });
}

function summarize({ rows, commits, compared, mended, seconds }: ShareResult, isVerified: boolean): string {
  const forwarded = `${formatNumber(rows)} rows forwarded in ${pluralize(commits, "commit")}, ${seconds.toFixed(1)} s`;
  if (!isVerified && compared === 0) return `the shared warehouse is up to date: ${forwarded}`;
  const found = mended === 0 ? "no difference" : `${pluralize(mended, "range")} differed and were replaced`;
  return `the shared warehouse is up to date: ${forwarded}; ${formatNumber(compared)} rows compared, ${found}`;
}
