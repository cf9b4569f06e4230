import { Failure } from "../model/failure.ts";
import { MICROS_PER_MS, MICROS_PER_SECOND } from "../model/time.ts";
import type { Random } from "../runtime/backoff.ts";
import type { SyncSettings } from "../sync/context/context.ts";
import { type Intake, serviceNow } from "../sync/context/context.ts";
import type { Problem } from "../sync/context/error-policy.ts";
import { type Difference, dueTonight, verify } from "../sync/history/verify.ts";
import type { CurrentKeeper } from "../sync/supervisor.ts";
import type { PrunedStream } from "../warehouse/rows/retention.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import type { Job } from "./scheduler.ts";

export interface DailyWork {
  readonly settings: SyncSettings;
  /** Cron, UTC; empty: never. */
  readonly nightly: string;
  /** Seconds to keep; undefined: for ever. */
  readonly retention: Readonly<Record<PrunedStream, number | undefined>>;
  readonly keeper: Pick<CurrentKeeper, "refresh" | "lookAgain">;
  readonly reader: Connection;
  readonly random: Random;
  readonly problems: (problems: readonly Problem[]) => void;
  readonly audited: (differences: readonly Difference[]) => void;
}

/** What has to be done once a day also where the nightly backfill is switched off. */
const USUAL_NIGHT = "10 0 * * *";

/**
 * The jobs of the night. What is due every few minutes (lookups, market caps, derivatives) is no job: those are polled on
 * the service's own grid, where a cron expression knows neither its seconds nor a period of 90 s.
 */
export function dailyJobs(intake: Intake, work: DailyWork): Job[] {
  const night = work.nightly || USUAL_NIGHT;
  return [
    ...(work.nightly ? [{ name: "nightly", cron: night, work: () => backfillAndAudit(intake, work) }] : []),
    { name: "retention", cron: night, atStart: true, work: () => retain(intake, work) },
    {
      name: "upkeep",
      cron: night,
      work: async () => void (await intake.ingest.call("tidy", undefined, [], intake.signal)),
    },
  ];
}

/** Fills whatever is open, series that were answered with 404 among it, and compares its share of what is settled. */
async function backfillAndAudit(intake: Intake, work: DailyWork): Promise<void> {
  const { keeper, reader, random, settings, problems, audited } = work;
  await keeper.refresh();
  keeper.lookAgain();
  const { refreshSeconds, concurrency } = settings;
  const verified = await verify(intake, {
    reader,
    random,
    refreshSeconds,
    concurrency,
    sample: (stretches) => dueTonight(stretches, serviceNow(intake)),
  });
  const { stretches, rows, differences } = verified;
  problems(verified.problems);
  audited(differences);
  intake.log.info({ stretches, rows, differences: differences.length }, "audit done");
  for (const { stream, indexType, name, missing, changed, withdrawn } of differences) {
    intake.log.warn(
      { stream, indexType, name, missing, changed, withdrawn },
      "the service had changed what was settled: put right",
    );
  }
  // What was un-settled is open: it should not wait for the next round.
  if (verified.problems.length > 0) {
    keeper.lookAgain();
    throw new Failure(`${verified.problems.length} stretches could not be compared with the service`, {
      family: "retry",
      code: "incomplete",
      remedy: "they are open again and are fetched anew",
    });
  }
}

/** Deletes what is older than the settings keep, bite by bite: others commit in between. */
async function retain({ ingest, signal, log, ...intake }: Intake, { retention }: DailyWork): Promise<void> {
  for (const stream of ["exchange_ticks", "derivative_ticks"] as const) {
    const seconds = retention[stream];
    if (seconds === undefined) continue;
    // What is deleted is gone: a clock that runs ahead, whoever's it is, must not make young rows old.
    const now = Math.min(serviceNow(intake), Math.floor(intake.clock.now()) * MICROS_PER_MS);
    const before = now - seconds * MICROS_PER_SECOND;
    let deleted = 0;
    for (let isDone = false; !isDone; ) {
      const bite = await ingest.call("pruneBite", { stream, before }, [], signal);
      deleted += bite.deleted;
      isDone = bite.isDone;
    }
    if (deleted > 0) log.info({ stream, deleted }, "rows older than the retention were deleted");
  }
}
