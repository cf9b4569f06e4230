import { dirname, join } from "node:path";
import type { Settings } from "../config/option-table.ts";
import { exportInProcess } from "../export/run-export.ts";
import { Failure } from "../model/failure.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../model/time.ts";
import { type Problem, type SyncContext, serviceNow } from "../sync/context/context.ts";
import { checkNight, NIGHTLY_JOB } from "../sync/history/nightly-check.ts";
import type { SliceDifference } from "../sync/history/verify.ts";
import type { SyncSupervisor } from "../sync/supervisor.ts";
import type { PrunableStream } from "../warehouse/rows/retention.ts";
import type { ScheduledJob } from "./scheduler.ts";

interface NightlyJobOptions {
  /** Cron expression, UTC; empty: no nightly backfill. */
  readonly nightly: string;
  /** Retention in seconds; undefined: unlimited. */
  readonly retention: Readonly<Record<PrunableStream, number | undefined>>;
  readonly supervisor: Pick<SyncSupervisor, "refresh" | "checkNow">;
  readonly onProblems: (problems: readonly Problem[]) => void;
  readonly onDifferences: (differences: readonly SliceDifference[]) => void;
}

/** Schedule of retention and upkeep when the nightly backfill is switched off. */
const DEFAULT_NIGHTLY_CRON = "10 0 * * *";

/**
 * The nightly jobs. Frequent polls (lookups, market caps, derivatives) are not cron jobs: they follow the service's
 * periods, and cron cannot express a period of 90 s.
 */
export function nightlyJobs(context: SyncContext, options: NightlyJobOptions): ScheduledJob[] {
  const cron = options.nightly || DEFAULT_NIGHTLY_CRON;
  return [
    ...(options.nightly ? [{ name: NIGHTLY_JOB, cron, work: () => backfillAndAudit(context, options) }] : []),
    { name: "retention", cron, runsAtStart: true, work: () => deleteExpiredRows(context, options) },
    {
      name: "upkeep",
      cron,
      work: async () => void (await context.ingest.call("optimizeDatabase", undefined, context.signal)),
    },
  ];
}

/** Refreshes the selection, triggers gap filling (including series that got a 404), and asks again about what is settled. */
async function backfillAndAudit(context: SyncContext, options: NightlyJobOptions): Promise<void> {
  const { supervisor, onProblems, onDifferences } = options;
  await supervisor.refresh();
  supervisor.checkNow();
  const { ends, comparison, hasReopened } = await checkNight(context);
  const { sliceCount, rows, extraChanged, differences, problems } = comparison;
  onProblems(problems);
  onDifferences(differences);
  context.log.info(
    {
      slices: sliceCount,
      rows,
      extraChanged,
      differences: differences.length,
      ends: ends.asked,
      reopened: ends.reopened,
    },
    "audit done",
  );
  for (const { stream, indexType, name, missing, changed, withdrawn, unconfirmed } of differences) {
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
  { retention }: NightlyJobOptions,
): Promise<void> {
  for (const stream of ["exchange_ticks", "derivative_ticks"] as const) {
    const seconds = retention[stream];
    if (seconds === undefined) continue;
    const now = Math.min(serviceNow(context), Math.floor(context.clock.now()) * MICROS_PER_MS);
    const before = now - seconds * MICROS_PER_SECOND;
    let deleted = 0;
    let batch = await ingest.call("pruneBatch", { stream, before }, signal);
    deleted += batch.deleted;
    while (batch.nextKey !== undefined) {
      batch = await ingest.call("pruneBatch", { stream, before, fromKey: batch.nextKey }, signal);
      deleted += batch.deleted;
    }
    if (deleted > 0) log.info({ stream, deleted }, "expired rows deleted");
  }
}

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
