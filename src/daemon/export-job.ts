import { dirname, join } from "node:path";
import { exportInProcess } from "../export/run-export.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { ScheduledJob } from "./scheduler.ts";

interface ExportJobOptions {
  /** Of the warehouse. */
  readonly path: string;
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Exports Parquet files to a folder beside the warehouse, in a separate process. */
export function exportJob(cron: string, { path, version, clock, log }: ExportJobOptions): ScheduledJob {
  const request = { warehouse: path, to: join(dirname(path), "export"), program: version };
  return {
    name: "export",
    cron,
    isSeparateProcess: true,
    async work(stopping) {
      const { files_written, rows_written, seconds } = await exportInProcess(request, { clock, stopping });
      log.info({ files_written, rows_written, seconds }, "export done");
    },
  };
}
