import { dirname, join } from "node:path";
import type { Settings } from "../config/option-table.ts";
import { exportInProcess } from "../export/run-export.ts";
import type { SyncContext } from "../sync/context/context.ts";
import type { ScheduledJob } from "./scheduler.ts";

/** The scheduled export, in a separate process. */
export function exportJobs(
  { clock, log }: SyncContext,
  { warehouse: { path }, schedule }: Pick<Settings, "warehouse" | "schedule">,
  program: string,
): ScheduledJob[] {
  if (!schedule.export) return [];
  const request = { warehouse: path, to: schedule.exportTo || join(dirname(path), "export"), program };
  return [
    {
      name: "export",
      cron: schedule.export,
      isSeparateProcess: true,
      async work(stopping) {
        const result = await exportInProcess(request, { clock, stopping });
        const { files_written, rows_written, seconds, warning } = result;
        log.info({ files_written, rows_written, seconds }, "export done");
        if (warning !== undefined) log.warn({ reason: warning }, "old export files not removed");
      },
    },
  ];
}
