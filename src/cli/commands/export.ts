import { resolve } from "node:path";
import type { Command } from "commander";
import type { ExportProgress, ExportResult } from "../../export/export-warehouse.ts";
import { isTerminal } from "../output/progress-bar.ts";
import type { CommandContext } from "../support/context.ts";
import { programVersion } from "../support/context.ts";
import {
  addSettingsFlags,
  createCommandLogger,
  LOG_LEVEL_FLAG,
  LOG_LEVEL_HELP,
  loadSettingsAndWarn,
} from "../support/flags.ts";
import { readTimestamp } from "../support/selection-flags.ts";

interface ExportFlags {
  to: string;
  since?: string;
  json?: boolean;
  progress: boolean;
  logLevel?: string;
}

const BAR_WIDTH = 20;
const REDRAW_INTERVAL_MS = 250;

export function addExportCommand(program: Command, context: CommandContext): void {
  addSettingsFlags(program.command("export").requiredOption("--to <dir>", "the folder to write"))
    .summary("write Parquet files, and a DuckDB file whose views read them")
    .description(
      "Writes the warehouse as Parquet files, one per stream, index type and month, and mds.duckdb with views over them. " +
        "Months that have not changed since the last export are not rewritten. A daemon and readers of the last export may run " +
        "at the same time.",
    )
    .option("--since <time>", "do not rewrite earlier months; YYYY-MM-DD or ISO 8601 in UTC")
    .option("--json", "one JSON object: folder, files, rows and bytes (total and written), seconds")
    .option("--no-progress", "no progress bar")
    .option(LOG_LEVEL_FLAG, `${LOG_LEVEL_HELP}; info, or warn beside a progress bar`)
    .action(async (flags: ExportFlags, command: Command) => {
      const warehouse = resolve(
        context.directory,
        loadSettingsAndWarn(command, context).settings.warehouse.path,
      );
      const showsBar = flags.progress && isTerminal(context.stderr);
      const log = createCommandLogger(flags.logLevel ?? (showsBar ? "warn" : "info"), context.stderr);
      // Loaded lazily, so that other commands do not load SQLite and DuckDB.
      const { exportWarehouse } = await import("../../export/export-warehouse.ts");
      const bar = showsBar ? drawBar(context) : undefined;
      try {
        const result = await exportWarehouse({
          warehouse,
          to: resolve(context.directory, flags.to),
          since: flags.since === undefined ? undefined : readTimestamp("--since", flags.since),
          program: programVersion(),
          clock: context.clock,
          log,
          stopping: context.stopping,
          ...(bar ? { onProgress: bar.show } : {}),
        });
        bar?.end();
        if (flags.json) context.stdout.write(`${JSON.stringify(result)}\n`);
        context.stderr.write(`${summarize(result)}\n`);
      } catch (error) {
        bar?.end();
        throw error;
      }
    });
}

function summarize(result: ExportResult): string {
  const { folder, files, files_written: written, rows_written: rows, bytes_written: bytes, seconds } = result;
  const mebibytes = (bytes / 1024 / 1024).toFixed(1);
  return `${folder} is up to date: ${written} of ${files} files written, ${rows.toLocaleString("en-US")} rows, ${mebibytes} MiB in ${seconds.toFixed(1)} s`;
}

function drawBar({ clock, stderr }: CommandContext): { show(progress: ExportProgress): void; end(): void } {
  const startedAt = clock.monotonic();
  let drawnAt = Number.NEGATIVE_INFINITY;
  let last: ExportProgress = { rows: 0, allRows: 0 };
  const draw = () => {
    const ms = clock.monotonic() - startedAt;
    const share = last.allRows === 0 ? 1 : Math.min(1, last.rows / last.allRows);
    const full = Math.round(share * BAR_WIDTH);
    const rate = ms === 0 ? 0 : Math.round((last.rows / ms) * 1000);
    stderr.write(
      `\r\u001b[2Kexport ${"█".repeat(full)}${"░".repeat(BAR_WIDTH - full)} ${String(Math.floor(share * 100)).padStart(3)} %  ${last.rows.toLocaleString("en-US")} rows  ${rate.toLocaleString("en-US")}/s`,
    );
    drawnAt = clock.monotonic();
  };
  return {
    show(progress) {
      last = progress;
      if (clock.monotonic() - drawnAt >= REDRAW_INTERVAL_MS) draw();
    },
    end() {
      if (drawnAt === Number.NEGATIVE_INFINITY) return;
      draw();
      stderr.write("\n");
    },
  };
}
