import { Failure } from "../model/failure.ts";
import { INTRADAY_DAYS, INTRADAY_WINDOW } from "../model/streams.ts";
import { formatTimestamp } from "../model/time.ts";
import { type HeldDaysResult, MAX_HELD_DAYS } from "../share/held-days.ts";
import type { ShareThread } from "../share/thread/share-thread.ts";
import { type SyncContext, serviceNow } from "../sync/context/context.ts";
import type { HeldDay } from "../warehouse/rows/moved-rows.ts";
import { retentionStart } from "./nightly-jobs.ts";
import type { ScheduledJob } from "./scheduler.ts";

/*
 * Index ticks that are older than their retention leave the warehouse once every other store of the settings has them. If
 * there is an export, the ledger names it, and PostgreSQL must have them too; otherwise PostgreSQL is the place.
 */

type MovingContext = Pick<SyncContext, "ingest" | "signal" | "log">;
export type HeldDayFinder = Pick<ShareThread, "findHeldDays" | "place">;

/** About fifty milliseconds of work, so that other commits hardly wait. */
const DAYS_PER_CALL = 5;

/** Deletes index ticks that another store has. Returns how many. */
async function moveHeldDays(
  { ingest, signal, log }: MovingContext,
  { place, days }: { readonly place: string; readonly days: readonly HeldDay[] },
): Promise<number> {
  let moved = 0;
  for (let at = 0; at < days.length; at += DAYS_PER_CALL)
    moved += await ingest.call("moveDays", { place, days: days.slice(at, at + DAYS_PER_CALL) }, [], signal);
  if (moved > 0) log.info({ stream: "index_ticks", moved, place }, "expired rows moved");
  return moved;
}

/** After an export: moves the days that it has, and that PostgreSQL has too if there is one. */
export async function moveExportedDays(
  context: MovingContext,
  { place, days, shared }: { place: string; days: readonly HeldDay[]; shared: HeldDayFinder | undefined },
): Promise<void> {
  if (!shared || days.length === 0) return void (await moveHeldDays(context, { place, days }));
  const { log, signal } = context;
  try {
    const before = Math.max(...days.map(({ to }) => to));
    const { held, unequal } = await shared.findHeldDays({ before, among: days }, signal);
    reportUnequal(context, unequal);
    await moveHeldDays(context, { place, days: held });
  } catch (error) {
    signal.throwIfAborted();
    // The export itself is done; the next one moves the days.
    const reason = error instanceof Failure ? error.summary : String(error);
    log.warn({ days: days.length, reason }, "index ticks stay: the shared warehouse could not be compared");
  }
}

/** Without an export: moves the days that PostgreSQL has. */
export function moveJob(
  context: SyncContext,
  { shared, seconds, cron }: { shared: HeldDayFinder; seconds: number; cron: string },
): ScheduledJob {
  return {
    name: "move",
    cron,
    async work(stopping) {
      for (let mayHaveMore = true; mayHaveMore; ) {
        const before = retentionStart(context, seconds);
        const { held, unequal, lacking } = await shared.findHeldDays({ before }, stopping);
        const moved = await moveHeldDays(context, { place: shared.place, days: held });
        mayHaveMore = held.length >= MAX_HELD_DAYS && moved > 0;
        if (mayHaveMore) continue;
        reportUnequal(context, unequal);
        await fetchLackingAgain(context, shared.place, lacking);
      }
    },
  };
}

function reportUnequal({ log }: MovingContext, days: number): void {
  if (days > 0)
    log.warn(
      { days },
      "index ticks stay: the shared warehouse has other rows of these days; mds-sync share --verify compares and mends",
    );
}

/** PostgreSQL was restored from an old backup: what the service still serves is fetched and forwarded again. */
async function fetchLackingAgain(
  context: SyncContext,
  place: string,
  lacking: HeldDaysResult["lacking"],
): Promise<void> {
  const { ingest, log, signal } = context;
  const servedFrom = serviceNow(context) - INTRADAY_WINDOW;
  for (const { series, from, to } of lacking) {
    if (to <= servedFrom) continue;
    const range = { from: Math.max(from, servedFrom), to };
    log.warn(
      { series, from: formatTimestamp(range.from), to: formatTimestamp(to), place },
      "moved ticks are gone there, fetching them again",
    );
    const key = { stream: "index_ticks", series } as const;
    await ingest.call("commitRetraction", { key, range }, [], signal);
  }
  const gone = lacking.filter(({ from }) => from < servedFrom);
  const [first] = gone;
  if (!first) return;
  throw new Failure(
    `${place} lacks index ticks that were moved there: ${gone.length} ranges, one from ${formatTimestamp(first.from)}`,
    {
      code: "share_lost",
      remedy: `restore the database from a backup that has them; the service serves only the last ${INTRADAY_DAYS} days`,
    },
  );
}
