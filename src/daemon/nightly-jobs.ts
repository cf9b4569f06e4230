import { dirname, join } from "node:path";
import type { Settings } from "../config/option-table.ts";
import { exportInProcess } from "../export/run-export.ts";
import { Failure } from "../model/failure.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../model/time.ts";
import { type SyncContext, serviceNow } from "../sync/context/context.ts";
import { checkNight, NIGHTLY_JOB } from "../sync/history/verify.ts";
import type { SyncSupervisor } from "../sync/supervisor.ts";
import type { DaemonTelemetry } from "./daemon-telemetry.ts";
import type { ScheduledJob } from "./scheduler.ts";

interface JobOptions {
  readonly settings: Pick<Settings, "schedule" | "retention" | "warehouse">;
  readonly supervisor: Pick<SyncSupervisor, "refresh" | "checkNow">;
  readonly telemetry: Pick<DaemonTelemetry, "streamErrors" | "metrics">;
  readonly version: string;
}

/** Schedule of retention and upkeep when the nightly backfill is switched off. */
const DEFAULT_NIGHTLY_CRON = "10 0 * * *";

/**
 * The nightly jobs and the export. Frequent polls (lookups, market caps, derivatives) are not cron jobs: they follow the service's
 * periods, and cron cannot express a period of 90 s.
 */
export function scheduledJobs(context: SyncContext, options: JobOptions): ScheduledJob[] {
  const { nightly, export: exportCron } = options.settings.schedule;
  const cron = nightly || DEFAULT_NIGHTLY_CRON;
  const jobs: ScheduledJob[] = [
    { name: NIGHTLY_JOB, cron: nightly, work: () => backfillAndAudit(context, options) },
    { name: "retention", cron, runsAtStart: true, work: () => deleteExpiredRows(context, options) },
    {
      name: "upkeep",
      cron,
      work: async () => void (await context.ingest.call("optimizeDatabase", undefined, context.signal)),
    },
    {
      name: "export",
      cron: exportCron,
      isSeparateProcess: true,
      work: (stopping) => exportFiles(context, options, stopping),
    },
  ];
  // An empty schedule switches its job off.
  return jobs.filter((job) => job.cron !== "");
}

/** Refreshes the selection, triggers gap filling (including series that got a 404), and asks again about what is settled. */
async function backfillAndAudit(context: SyncContext, options: JobOptions): Promise<void> {
  const { supervisor, telemetry } = options;
  await supervisor.refresh();
  supervisor.checkNow();
  const { ends, comparison, hasReopened } = await checkNight(context);
  const { sliceCount, rows, extraChanged, differences, problems } = comparison;
  telemetry.streamErrors.setProblems("audit", problems);
  const compared = { slices: sliceCount, rows, extraChanged, differences: differences.length };
  context.log.info({ ...compared, ends: ends.asked, reopened: ends.reopened }, "audit done");
  for (const { stream, indexType, name, missing, changed, withdrawn, unconfirmed } of differences) {
    telemetry.metrics.increment("audit_differences_total", 1, { stream });
    context.log.warn(
      { stream, indexType, name, missing, changed, withdrawn, unconfirmed },
      missing + changed + withdrawn > 0 ? "covered rows repaired" : "covered rows differ",
    );
  }
  if (hasReopened) supervisor.checkNow();
  if (problems.length > 0)
    throw new Failure(`${problems.length} slices could not be compared with the service`, {
      family: "retry",
      code: "incomplete",
      remedy: "the job is retried; ranges that the service contradicts are open again and are fetched again",
    });
}

/**
 * Deletes rows older than the retention, in batches, so that other commits can run in between. They cannot be fetched again,
 * so this uses the earlier of both clocks: one may run ahead.
 */
async function deleteExpiredRows(
  { ingest, signal, log, ...context }: SyncContext,
  { settings: { retention } }: JobOptions,
): Promise<void> {
  const limits = { exchange_ticks: retention.exchangeTicks, derivative_ticks: retention.derivativeTicks };
  for (const stream of ["exchange_ticks", "derivative_ticks"] as const) {
    const seconds = limits[stream];
    if (seconds === undefined) continue;
    const now = Math.min(serviceNow(context), Math.floor(context.clock.now()) * MICROS_PER_MS);
    const before = now - seconds * MICROS_PER_SECOND;
    let batch = await ingest.call("pruneBatch", { stream, before }, signal);
    let { deleted } = batch;
    while (batch.nextKey !== undefined) {
      batch = await ingest.call("pruneBatch", { stream, before, fromKey: batch.nextKey }, signal);
      deleted += batch.deleted;
    }
    if (deleted > 0) log.info({ stream, deleted }, "expired rows deleted");
  }
}

/** In a separate process. */
async function exportFiles(
  { clock, log }: SyncContext,
  { settings: { warehouse, schedule }, version }: JobOptions,
  stopping: AbortSignal,
): Promise<void> {
  const to = schedule.exportTo || join(dirname(warehouse.path), "export");
  const request = { warehouse: warehouse.path, to, program: version };
  const { files_written, rows_written, seconds, warning } = await exportInProcess(request, {
    clock,
    stopping,
  });
  log.info({ files_written, rows_written, seconds }, "export done");
  if (warning !== undefined) log.warn({ reason: warning }, "old export files not removed");
}
