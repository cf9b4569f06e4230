import { resolve } from "node:path";
import type { Command } from "commander";
import { type ExportResult, exportWarehouse } from "../../export/export-warehouse.ts";
import { isBucketUrl } from "../../export/s3/s3-target.ts";
import { usageFailure } from "../../model/failure.ts";
import { MICROS_PER_SECOND, type Micros, parseDuration } from "../../model/time.ts";
import type { ProgressCounts } from "../../sync/context/run-stats.ts";
import { underBar } from "../output/progress-bar.ts";
import { formatBytes, formatNumber } from "../output/text.ts";
import { type CommandContext, type CommonFlags, programVersion } from "../support/context.ts";
import { addSettingsFlags, loadWithLog, logLevelOption } from "../support/flags.ts";
import { readTimestamp } from "../support/selection-flags.ts";
import { addKnownAtFlags, type KnownAtFlags, showState } from "./data/known-at-flags.ts";

interface ExportFlags extends KnownAtFlags, CommonFlags {
  readonly to: string;
  readonly since?: string;
  readonly keep?: string;
}

export function addExportCommand(program: Command, context: CommandContext): void {
  const command = program
    .command("export")
    .requiredOption("--to <dir>", "the folder to write, or s3://BUCKET/PREFIX");
  addKnownAtFlags(addSettingsFlags(command, "warehouse"))
    .description(
      "Writes the warehouse as Parquet files, by stream, index type and month (daily bars: in one file or by year), and " +
        "mds.duckdb with views over them. Each relation is a Delta table too: DIR/versions/RELATION. Files that have not changed since the last export are not rewritten. A daemon and readers of the last export may run " +
        "at the same time.",
    )
    .option("--since <time>", "do not rewrite files from before a time such as 2026-03-01 or -7d")
    .option(
      "--keep <duration>",
      "how long replaced files stay for readers of earlier versions, such as 7d (default: 1h, in a bucket 1d)",
    )
    .option("--json", "one JSON object: folder, files, rows and bytes (total and written), seconds")
    .option("--no-progress", "no progress bar")
    .option(...logLevelOption("; info, or warn beside a progress bar"))
    .action(async (flags: ExportFlags, command: Command) => {
      const { loaded, log } = loadWithLog(command, context);
      let counts: ProgressCounts = { rows: 0, done: 0, planned: 0 };
      const writeExport = () =>
        exportWarehouse({
          warehouse: resolve(context.directory, loaded.settings.warehouse.path),
          to: isBucketUrl(flags.to) ? flags.to : resolve(context.directory, flags.to),
          env: context.env,
          since: flags.since === undefined ? undefined : readTimestamp("--since", flags.since, context.clock),
          showState: (connection) => showState(connection, flags, context),
          keep: readKeep(flags.keep),
          program: programVersion(),
          clock: context.clock,
          log,
          stopping: context.stopping,
          onProgress({ rows, allRows }) {
            counts = { rows, done: rows, planned: allRows };
          },
        });
      const result = await underBar(flags, context, "export", () => counts, writeExport);
      if (flags.json) context.stdout.write(`${JSON.stringify(result)}\n`);
      context.stderr.write(`${summarize(result)}\n`);
      if (result.warning !== undefined) context.stderr.write(`mds-sync: warning: ${result.warning}\n`);
    });
}

function readKeep(text: string | undefined): Micros | undefined {
  if (text === undefined) return undefined;
  const seconds = parseDuration(text);
  if (seconds === undefined)
    throw usageFailure(`--keep cannot be ${text}`, "give a duration such as 90m, 1h or 7d");
  return seconds * MICROS_PER_SECOND;
}

function summarize(result: ExportResult): string {
  const { folder, files, files_written: written, rows_written: rows, bytes_written: bytes, seconds } = result;
  return `${folder} is up to date: ${written} of ${files} files written, ${formatNumber(rows)} rows, ${formatBytes(bytes)} in ${seconds.toFixed(1)} s`;
}
