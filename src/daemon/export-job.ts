import { dirname, join } from "node:path";
import type { Settings } from "../config/option-table.ts";
import { exportInProcess } from "../export/run-export.ts";
import type { SyncContext } from "../sync/context/context.ts";
import { type HeldDayFinder, moveExportedDays } from "./move-ticks.ts";
import { retentionStart } from "./nightly-jobs.ts";
import type { ScheduledJob } from "./scheduler.ts";

/** Exports in a separate process. Afterwards index ticks that are older than their retention may leave the warehouse. */
export function exportJob(
  context: SyncContext,
  { warehouse, schedule, retention }: Pick<Settings, "warehouse" | "schedule" | "retention">,
  { version, shared }: { readonly version: string; readonly shared: HeldDayFinder | undefined },
): ScheduledJob {
  const { clock, log } = context;
  const { path } = warehouse;
  const request = {
    warehouse: path,
    to: schedule.exportTo || join(dirname(path), "export"),
    program: version,
  };
  return {
    name: "export",
    cron: schedule.export,
    isSeparateProcess: true,
    async work(stopping) {
      const moveBefore =
        retention.indexTicks === undefined ? undefined : retentionStart(context, retention.indexTicks);
      const result = await exportInProcess({ ...request, moveBefore }, { clock, stopping });
      const { folder, files_written, rows_written, seconds, held_days = [] } = result;
      log.info({ files_written, rows_written, seconds }, "export done");
      await moveExportedDays(context, { place: folder, days: held_days, shared });
    },
  };
}
