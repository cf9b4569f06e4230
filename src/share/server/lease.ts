import type { Clock } from "../../runtime/clock.ts";
import { fencedFailure, heldFailure } from "./postgres-errors.ts";
import type { SharedSession } from "./session.ts";

/*
 * Who may forward. The database's clock decides when a lease may be taken, the epoch who may commit: every transaction
 * begins with a lock on the lease's row that checks the epoch, and whoever takes the lease raises it. No clock of a
 * client is trusted. Role `alone` has one lease, of bucket 0, for everything.
 */

const BUCKET = 0;

interface LeaseRow {
  readonly epoch: string;
  readonly holder: string;
  readonly name: string;
  readonly isValid: boolean;
  readonly isConnected: boolean;
}

export interface Lease {
  readonly epoch: number;
  readonly seconds: number;
}

/** A killed program's session ends a moment after it: only then it is known to be dead. */
const HELD_RETRIES = 10;
const HELD_RETRY_INTERVAL_MS = 300;

export interface LeaseOptions {
  readonly clock: Pick<Clock, "sleep">;
  /** Unique per start of the program; also the session's `application_name`. */
  readonly holder: string;
  /** What a person calls this daemon. */
  readonly name: string;
  readonly seconds: number;
}

/** Takes the lease. Throws if another program holds it: one whose session is alive and whose lease is valid. */
export async function takeLease(
  session: SharedSession,
  { holder, name, seconds, clock }: LeaseOptions,
): Promise<Lease> {
  let found = await readLease(session);
  for (let i = 0; isHeld(found, holder) && i < HELD_RETRIES; i++) {
    await clock.sleep(HELD_RETRY_INTERVAL_MS);
    found = await readLease(session);
  }
  if (isHeld(found, holder)) throw heldFailure(found.name);
  // A session that waits for the rows of a COPY ignores every timeout of the server: only this ends it.
  if (found.isConnected && found.holder !== holder)
    await session.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND pid <> pg_backend_pid()",
      [found.holder],
    );
  const taken = await session.transaction(async () => {
    // Waits for the transactions of the former holder, which lock the row against this.
    await session.query(`SELECT 1 FROM mds.leases WHERE bucket = ${BUCKET} FOR UPDATE`);
    return session.query<{ epoch: string }>(
      `UPDATE mds.leases SET epoch = epoch + 1, holder = $1, name = $2, until = ${endOfLease(seconds)}
      WHERE bucket = ${BUCKET} AND epoch = $3 RETURNING epoch`,
      [holder, name, found.epoch],
    );
  });
  const [lease] = taken;
  if (!lease) throw fencedFailure();
  return { epoch: Number(lease.epoch), seconds };
}

async function readLease(session: SharedSession): Promise<LeaseRow> {
  const [found] = await session.query<LeaseRow>(
    `SELECT l.epoch, l.holder, l.name, l.until > clock_timestamp() AS "isValid",
      EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.application_name = l.holder AND l.holder <> '') AS "isConnected"
    FROM mds.leases l WHERE l.bucket = ${BUCKET}`,
  );
  if (!found) throw new Error("schema mds has no lease");
  return found;
}

function isHeld({ holder, isValid, isConnected }: LeaseRow, by: string): boolean {
  return holder !== by && isValid && isConnected;
}

function endOfLease(seconds: number): string {
  return `clock_timestamp() + interval '${seconds} seconds'`;
}

/** Extends the lease. Unlike taking it, this does not wait for transactions of this epoch. */
export async function renewLease(session: SharedSession, { epoch, seconds }: Lease): Promise<void> {
  const renewed = await session.query<{ epoch: string }>(
    `UPDATE mds.leases SET until = ${endOfLease(seconds)} WHERE bucket = ${BUCKET} AND epoch = ${epoch} RETURNING epoch`,
  );
  if (renewed.length === 0) throw fencedFailure();
}

/** Gives the lease back, so that another program need not wait for its end. */
export async function returnLease(session: SharedSession, { epoch }: Lease): Promise<void> {
  await session.query(
    `UPDATE mds.leases SET until = '-infinity', holder = '' WHERE bucket = ${BUCKET} AND epoch = ${epoch}`,
  );
}

/** Runs `work` in a transaction that commits only if the lease is still ours. */
export async function inFence<T>(
  session: SharedSession,
  { epoch }: Lease,
  work: () => Promise<T>,
): Promise<T> {
  return session.transaction(async () => {
    // READ COMMITTED checks the epoch again after it has waited for the lock.
    const sql = `SELECT 1 FROM mds.leases WHERE bucket = ${BUCKET} AND epoch = ${epoch} FOR KEY SHARE`;
    if ((await session.query(sql)).length === 0) throw fencedFailure();
    return work();
  });
}
