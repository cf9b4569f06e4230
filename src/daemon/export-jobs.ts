import { dirname, join } from "node:path";
import type { Settings } from "../config/option-table.ts";
import { exportInProcess } from "../export/run-export.ts";
import type { SyncContext } from "../sync/context/context.ts";
import { type HeldDayFinder, moveExportedDays, moveJob } from "./move-ticks.ts";
import { DEFAULT_NIGHTLY_CRON, retentionStart } from "./nightly-jobs.ts";
import type { ScheduledJob } from "./scheduler.ts";

type ExportSettings = Pick<Settings, "warehouse" | "schedule" | "retention">;

interface ExportJobOptions {
  readonly version: string;
  readonly shared: HeldDayFinder | undefined;
}

/** The export and, with it or without, the move of old index ticks out of the warehouse. */
export function exportJobs(
  context: SyncContext,
  settings: ExportSettings,
  options: ExportJobOptions,
): ScheduledJob[] {
  const { schedule, retention } = settings;
  const { indexTicks: seconds } = retention;
  const { shared } = options;
  if (schedule.export) return [exportJob(context, settings, options)];
  if (seconds === undefined) return [];
  if (shared) return [moveJob(context, { shared, seconds, cron: schedule.nightly || DEFAULT_NIGHTLY_CRON })];
  context.log.warn({}, "retention.indexTicks has no effect without schedule.export or shared.url");
  return [];
}

/** Exports in a separate process. Afterwards index ticks that are older than their retention may leave the warehouse. */
function exportJob(
  context: SyncContext,
  { warehouse, schedule, retention }: ExportSettings,
  { version, shared }: ExportJobOptions,
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
      const { folder, files_written, rows_written, seconds, held_days = [], warning } = result;
      log.info({ files_written, rows_written, seconds }, "export done");
      if (warning !== undefined) log.warn({ reason: warning }, "old export files not removed");
      await moveExportedDays(context, { place: folder, days: held_days, shared });
    },
  };
}
