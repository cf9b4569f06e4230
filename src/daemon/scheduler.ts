import { parse } from "node-cron";
import { failureCode } from "../model/failure.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { JobRun } from "../warehouse/tables/job-runs.ts";

/** A job and its schedule. */
export interface ScheduledJob {
  readonly name: string;
  /** Five cron fields, UTC. */
  readonly cron: string;
  /** Also runs once when the scheduler starts. */
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
  /** The last run of each job before this start. */
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
  const times = new CronSchedule(job.cron);
  let lastScheduledAt = previousRuns.find((run) => run.job === job.name)?.scheduledAt;
  if (lastScheduledAt === undefined) {
    lastScheduledAt = times.latest(now());
    await storeRun({ job: job.name, scheduledAt: lastScheduledAt, outcome: "new" });
  }
  let retryAt = job.runsAtStart ? 0 : Number.POSITIVE_INFINITY;
  let retryMs = JOB_RETRY_DELAY.minMs;
  while (!signal.aborted) {
    const currentTime = now();
    const dueAt = times.latest(currentTime);
    // If a clock that ran ahead was set back, the last run lies in the future and would block the job.
    if (lastScheduledAt > times.next(currentTime)) lastScheduledAt = dueAt;
    if (dueAt > lastScheduledAt || clock.boottime() >= retryAt) {
      lastScheduledAt = Math.max(lastScheduledAt, dueAt);
      log.info({ job: job.name }, "job started");
      const outcome = await runOnce(job, signal, (error, code) => onRunEnd(job, code, error));
      if (signal.aborted) return;
      retryAt = outcome === "ok" ? Number.POSITIVE_INFINITY : clock.boottime() + retryMs;
      retryMs = outcome === "ok" ? JOB_RETRY_DELAY.minMs : Math.min(2 * retryMs, JOB_RETRY_DELAY.maxMs);
      // An interrupted run is not stored, so the next start repeats it.
      await storeRun({ job: job.name, scheduledAt: lastScheduledAt, outcome });
      continue;
    }
    const untilNext = (times.next(currentTime) - currentTime) / MICROS_PER_MS;
    await clock.sleep(Math.min(MAX_SLEEP_MS, untilNext), signal).catch(() => {});
  }
}

async function runOnce(
  { work }: ScheduledJob,
  signal: AbortSignal,
  onEnd: (error: unknown, code: string) => void,
): Promise<string> {
  try {
    await work(signal);
    onEnd(undefined, "ok");
    return "ok";
  } catch (error) {
    const code = failureCode(error);
    if (!signal.aborted) onEnd(error, code);
    return code;
  }
}

const MICROS_PER_MINUTE = 60_000 * MICROS_PER_MS;
/** 29 February occurs at least once in eight years, even around 2100. */
const MAX_SEARCH_DAYS = 8 * 366 + 1;

/**
 * The times of a cron expression in UTC. node-cron parses the expression, but it computes only future times, only from its
 * own clock, and only days that both fields name.
 */
export class CronSchedule {
  /** Minutes since midnight, ascending. */
  readonly #minutesOfDay: readonly number[];
  readonly #isScheduledDay: (midnight: Micros) => boolean;

  constructor(expression: string) {
    const { minute, hour, dayOfMonth, month, dayOfWeek } = parse(expression);
    this.#minutesOfDay = hour
      .flatMap((each) => minute.map((within) => each * 60 + within))
      .toSorted((a, b) => a - b);
    const days = new Set(dayOfMonth.map(Number));
    const months = new Set(month);
    const weekdays = new Set(dayOfWeek.map((day) => Number(day) % 7));
    const [, , dayField = "*", , weekdayField = "*"] = expression.trim().split(/\s+/);
    // As cron has it: if both fields name days, a day that one of them names will do.
    const isEither = !dayField.startsWith("*") && !weekdayField.startsWith("*");
    this.#isScheduledDay = (midnight) => {
      const date = new Date(midnight / MICROS_PER_MS);
      const named = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())];
      return months.has(date.getUTCMonth() + 1) && (isEither ? named.includes(true) : !named.includes(false));
    };
  }

  /** The latest scheduled time at or before `at`. */
  latest(at: Micros): Micros {
    return this.#search(at, -1, (time) => time <= at);
  }

  /** The first scheduled time after `at`. */
  next(at: Micros): Micros {
    return this.#search(at, 1, (time) => time > at);
  }

  #search(at: Micros, step: 1 | -1, matches: (time: Micros) => boolean): Micros {
    const today = Math.floor(at / MICROS_PER_DAY) * MICROS_PER_DAY;
    for (let day = 0; day < MAX_SEARCH_DAYS; day++) {
      const midnight = today + step * day * MICROS_PER_DAY;
      if (!this.#isScheduledDay(midnight)) continue;
      const times = this.#minutesOfDay.map((minute) => midnight + minute * MICROS_PER_MINUTE);
      const found = step === 1 ? times.find(matches) : times.findLast(matches);
      if (found !== undefined) return found;
    }
    throw new Error("the cron expression never matches a date");
  }
}
