import { failureCode } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import { blockedFailure } from "./postgres-errors.ts";
import { SESSION_SQL, type SharedSession } from "./session.ts";

/*
 * An exclusive lock on a table waits for every open transaction that has read it, and every new reader waits behind it. So
 * nobody waits for one: the transaction is given up at once, and tried again later.
 */

/** The first statement of a transaction that changes tables or views. */
export const WITHOUT_WAITING = "SET LOCAL lock_timeout = '200ms'";

const RETRIES = 10;
const RETRY_INTERVAL_MS = 1_000;

/** Runs a transaction that changes tables or views. If a lock is not to be had, the failure names the sessions that hold one. */
export async function nameBlockers<T>(session: SharedSession, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (failureCode(error) !== "share_blocked") throw error;
    throw blockedFailure(session.server, await findBlockers(session));
  }
}

/** The same, and tries again for a while. */
export async function retryBlocked<T>(
  session: SharedSession,
  clock: Pick<Clock, "sleep">,
  work: () => Promise<T>,
): Promise<T> {
  for (let i = 0; i < RETRIES; i++) {
    try {
      return await work();
    } catch (error) {
      if (failureCode(error) !== "share_blocked") throw error;
      await clock.sleep(RETRY_INTERVAL_MS);
    }
  }
  return nameBlockers(session, work);
}

/** The other sessions that hold a lock in schema `mds`. */
async function findBlockers(session: SharedSession): Promise<string[]> {
  const rows = await session.query<{ who: string }>(
    `SELECT ${SESSION_SQL} AS who
    FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.pid IN (SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
      WHERE l.granted AND c.relnamespace = to_regnamespace('mds')::oid) ORDER BY a.pid`,
  );
  return rows.map(({ who }) => who);
}
