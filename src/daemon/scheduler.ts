import { parse } from "node-cron";
import { Failure } from "../model/failure.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { JobRun } from "../warehouse/read/job-runs.ts";

/** Work with its times. */
export interface Job {
  readonly name: string;
  /** Five cron fields, UTC. */
  readonly cron: string;
  /** Also once when the schedule begins. */
  readonly atStart?: boolean;
  /** Works in a process of its own and writes files of its own: its failures say nothing about the warehouse. */
  readonly isApart?: boolean;
  /** Ends soon after the signal aborts. */
  readonly work: (signal: AbortSignal) => Promise<void>;
}

export interface Schedule {
  readonly jobs: readonly Job[];
  readonly clock: Clock;
  /**
   * By the service's clock, undefined until it is known: its day is the one that ends at midnight, and this machine's
   * clock may be set to anything.
   */
  readonly now: () => Micros | undefined;
  readonly signal: AbortSignal;
  readonly log: Log;
  /** The last runs, from before the start. */
  readonly remembered: readonly JobRun[];
  readonly remember: (run: JobRun) => Promise<void>;
  /** How a run ended: `ok`, or the code of its failure. */
  readonly ended: (job: Job, outcome: string, error: unknown) => void;
}

/**
 * A timer stands still while the machine sleeps, and the wall clock may be stepped: so the time is looked at again at
 * least this often, instead of being waited for in one go.
 */
const LOOK_EVERY_MS = 30_000;
/** What failed is tried again after the first of these, then after twice as long, and so on. */
const RETRY_MS = { first: 15 * 60_000, longest: 4 * 3_600_000 };
const TIME_ASKED_EVERY_MS = 1_000;

/** Runs every job at its moments until the signal aborts. Resolves once the runs under way have ended. */
export async function runSchedule(schedule: Schedule): Promise<void> {
  const { jobs, clock, signal } = schedule;
  let known = schedule.now();
  while (known === undefined && !signal.aborted) {
    await clock.sleep(TIME_ASKED_EVERY_MS, signal).catch(() => {});
    known = schedule.now();
  }
  const begun = known;
  if (begun === undefined) return;
  await Promise.all(jobs.map((job) => runJob(job, schedule, () => schedule.now() ?? begun)));
}

/**
 * One job. It is due when a moment of its schedule has passed that no run has served: after a sleep, or a time when no
 * daemon ran, that is one run however many moments went by. It cannot overlap itself, since the next look comes after it.
 */
async function runJob(job: Job, schedule: Schedule, now: () => Micros): Promise<void> {
  const { clock, signal, log, remembered, remember, ended } = schedule;
  const moments = new CronMoments(job.cron);
  let served = remembered.find((run) => run.job === job.name)?.moment;
  if (served === undefined) {
    served = moments.latest(now());
    await remember({ job: job.name, moment: served, outcome: "new" });
  }
  let tryAt = job.atStart ? 0 : Number.POSITIVE_INFINITY;
  let retryMs = RETRY_MS.first;
  while (!signal.aborted) {
    const at = now();
    const due = moments.latest(at);
    // A clock that ran ahead and was put back left a moment that is long in coming: it would keep the job from running.
    if (served > moments.next(at)) served = due;
    if (due > served || clock.boottime() >= tryAt) {
      served = Math.max(served, due);
      log.info({ job: job.name }, "a job begins");
      const outcome = await run(job, signal, (error, code) => ended(job, code, error));
      if (signal.aborted) return;
      tryAt = outcome === "ok" ? Number.POSITIVE_INFINITY : clock.boottime() + retryMs;
      retryMs = outcome === "ok" ? RETRY_MS.first : Math.min(2 * retryMs, RETRY_MS.longest);
      // A run that was broken off is not remembered: the next start does it again.
      await remember({ job: job.name, moment: served, outcome });
      continue;
    }
    const untilNext = (moments.next(at) - at) / MICROS_PER_MS;
    await clock.sleep(Math.min(LOOK_EVERY_MS, untilNext), signal).catch(() => {});
  }
}

async function run(
  { work }: Job,
  signal: AbortSignal,
  ended: (error: unknown, code: string) => void,
): Promise<string> {
  try {
    await work(signal);
    ended(undefined, "ok");
    return "ok";
  } catch (error) {
    const code = error instanceof Failure ? error.code : "unexpected";
    if (!signal.aborted) ended(error, code);
    return code;
  }
}

const MINUTE = 60_000 * MICROS_PER_MS;
/** A 29 February comes within eight years, also around 2100. */
const FARTHEST_DAYS = 8 * 366 + 1;

/** The moments of a cron expression in UTC: pure arithmetic, since timers belong to the injected clock. */
export class CronMoments {
  /** Of a day, ascending. */
  readonly #minutes: readonly number[];
  readonly #isDay: (midnight: Micros) => boolean;

  constructor(expression: string) {
    const { minute, hour, dayOfMonth, month, dayOfWeek } = parse(expression);
    this.#minutes = hour
      .flatMap((each) => minute.map((within) => each * 60 + within))
      .toSorted((a, b) => a - b);
    const days = new Set(dayOfMonth.map(Number));
    const months = new Set(month);
    const weekdays = new Set(dayOfWeek.map((day) => Number(day) % 7));
    this.#isDay = (midnight) => {
      const date = new Date(midnight / MICROS_PER_MS);
      return (
        months.has(date.getUTCMonth() + 1) && days.has(date.getUTCDate()) && weekdays.has(date.getUTCDay())
      );
    };
  }

  /** The latest moment at or before `at`. */
  latest(at: Micros): Micros {
    return this.#search(at, -1, (moment) => moment <= at);
  }

  /** The first moment after `at`. */
  next(at: Micros): Micros {
    return this.#search(at, 1, (moment) => moment > at);
  }

  #search(at: Micros, step: 1 | -1, fits: (moment: Micros) => boolean): Micros {
    const today = Math.floor(at / MICROS_PER_DAY) * MICROS_PER_DAY;
    for (let day = 0; day < FARTHEST_DAYS; day++) {
      const midnight = today + step * day * MICROS_PER_DAY;
      if (!this.#isDay(midnight)) continue;
      const moments = this.#minutes.map((minute) => midnight + minute * MINUTE);
      const found = step === 1 ? moments.find(fits) : moments.findLast(fits);
      if (found !== undefined) return found;
    }
    throw new Error("a schedule whose moment never comes");
  }
}
