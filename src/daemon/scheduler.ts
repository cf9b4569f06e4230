import { Cron } from "croner";
import { Failure, failureCode } from "../model/failure.ts";
import { MICROS_PER_MS, type Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { finishesWithin } from "../runtime/timeouts.ts";
import type { JobRun } from "../warehouse/tables/warehouse-state.ts";

export interface ScheduledJob {
  readonly name: string;
  /** Five cron fields, UTC. */
  readonly cron: string;
  readonly runsAtStart?: boolean;
  /** Runs in its own process with its own files, so its failures say nothing about the warehouse. */
  readonly isSeparateProcess?: boolean;
  /** Must end soon after the signal aborts. */
  readonly work: (signal: AbortSignal) => Promise<void>;
}

interface SchedulerOptions {
  readonly jobs: readonly ScheduledJob[];
  readonly clock: Clock;
  /** Service time, undefined until it is known. The local clock may be wrong. */
  readonly now: () => Micros | undefined;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly previousRuns: readonly JobRun[];
  readonly storeRun: (run: JobRun) => Promise<void>;
  /** `outcome`: `ok`, or the code of the failure. */
  readonly onRunEnd: (job: ScheduledJob, outcome: string, error: unknown) => void;
}

/** Read the clock this often: timers stop while the machine sleeps, and the wall clock may be stepped. */
const MAX_SLEEP_MS = 30_000;
/** Delay before a failed job is retried; doubles with each failure. */
const JOB_RETRY_DELAY = { minMs: 15 * 60_000, maxMs: 4 * 3_600_000 };
const CLOCK_POLL_INTERVAL_MS = 1_000;

/** Runs every job on schedule until the signal aborts. Resolves when the current runs have ended. */
export async function runSchedule(options: SchedulerOptions): Promise<void> {
  const { jobs, clock, signal } = options;
  let knownNow = options.now();
  while (knownNow === undefined && !signal.aborted) {
    await clock.sleep(CLOCK_POLL_INTERVAL_MS, signal).catch(() => {});
    knownNow = options.now();
  }
  const startedAt = knownNow;
  if (startedAt === undefined) return;
  await Promise.all(jobs.map((job) => runJob(job, options, () => options.now() ?? startedAt)));
}

/**
 * A job is due when a scheduled time has passed since its last run. One run makes up for all times that were missed while
 * the machine slept or no daemon ran. A job cannot overlap itself, because the next check follows its end.
 */
async function runJob(job: ScheduledJob, options: SchedulerOptions, now: () => Micros): Promise<void> {
  const { clock, signal, log, previousRuns, storeRun, onRunEnd } = options;
  const times = createSchedule(job.cron);
  let lastScheduledAt = previousRuns.find((run) => run.job === job.name)?.scheduledAt;
  if (lastScheduledAt === undefined) {
    lastScheduledAt = times(now()).latest;
    await storeRun({ job: job.name, scheduledAt: lastScheduledAt, outcome: "new" });
  }
  let retryAt = job.runsAtStart ? 0 : Number.POSITIVE_INFINITY;
  let retryMs = JOB_RETRY_DELAY.minMs;
  while (!signal.aborted) {
    const currentTime = now();
    const { latest: dueAt, next } = times(currentTime);
    // If a clock that ran ahead was set back, the last run lies in the future and would block the job.
    if (lastScheduledAt > next) lastScheduledAt = dueAt;
    if (dueAt > lastScheduledAt || clock.boottime() >= retryAt) {
      lastScheduledAt = Math.max(lastScheduledAt, dueAt);
      log.info({ job: job.name }, "job started");
      let failure: unknown;
      try {
        await job.work(signal);
      } catch (error) {
        failure = error;
      }
      if (signal.aborted) return;
      const outcome = failure === undefined ? "ok" : failureCode(failure);
      onRunEnd(job, outcome, failure);
      retryAt = outcome === "ok" ? Number.POSITIVE_INFINITY : clock.boottime() + retryMs;
      retryMs = outcome === "ok" ? JOB_RETRY_DELAY.minMs : Math.min(2 * retryMs, JOB_RETRY_DELAY.maxMs);
      // An interrupted run is not stored, so the next start repeats it.
      await storeRun({ job: job.name, scheduledAt: lastScheduledAt, outcome });
      continue;
    }
    const untilNext = (next - currentTime) / MICROS_PER_MS;
    await clock.sleep(Math.min(MAX_SLEEP_MS, untilNext), signal).catch(() => {});
  }
}

const MINUTE_MS = 60_000;

/** Returns the latest time of a cron expression in UTC at or before a moment, and the first after it. */
export function createSchedule(expression: string) {
  const [, , dayField = "*", , weekdayField = "*"] = expression.trim().split(/\s+/);
  // As in cron: if both fields name days, a day that matches either of them counts.
  const domAndDow = dayField.startsWith("*") || weekdayField.startsWith("*");
  const cron = new Cron(expression, { timezone: "UTC", paused: true, domAndDow });
  return (at: Micros): { readonly latest: Micros; readonly next: Micros } => {
    const minute = Math.floor(at / MICROS_PER_MS / MINUTE_MS);
    const latest = toMicros(cron.previousRuns(1, new Date((minute + 1) * MINUTE_MS))[0]);
    return { latest, next: toMicros(cron.nextRun(new Date(at / MICROS_PER_MS))) };
  };
}

function toMicros(time: Date | null | undefined): Micros {
  if (!time) throw new Error("the cron expression never matches a date");
  return time.getTime() * MICROS_PER_MS;
}

/** Closes one part. A part that closes, but not cleanly, calls `onFailure`. */
type StopStep = (onFailure: (failure: unknown) => void) => unknown;

/** Runs all steps at once: whatever happens to one, the others run. Returns whether all of them succeeded within the time. */
export async function runStopSteps(
  { clock, log, withinMs }: { clock: Clock; log: Log; withinMs: number },
  steps: Readonly<Record<string, StopStep>>,
): Promise<boolean> {
  // Keeps a manual clock from advancing while sockets and threads close.
  const release = clock.beginWork();
  let isClean = true;
  const closing = Object.entries(steps).map(async ([step, close]) => {
    const onFailure = (failure: unknown) => {
      isClean = false;
      const error = failure instanceof Failure ? failure.summary : String(failure);
      log.warn({ step, error }, "stop step failed");
    };
    try {
      await close(onFailure);
    } catch (error) {
      onFailure(error);
    }
  });
  const hasFinished = await finishesWithin(clock, withinMs, Promise.all(closing)).finally(release);
  return hasFinished && isClean;
}
