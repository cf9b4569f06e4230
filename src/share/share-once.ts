import { randomUUID } from "node:crypto";
import { failureCode } from "../model/failure.ts";
import type { ShareRole } from "../model/status/share-status.ts";
import type { Clock } from "../runtime/clock.ts";
import { openReader } from "../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import { Forwarder, type ForwardResult } from "./forwarder.ts";
import { migrateShared } from "./schema/migrate.ts";
import { Lease } from "./server/lease.ts";
import { heldBy } from "./server/postgres-errors.ts";
import { parseServerAddress } from "./server/server-address.ts";
import { SharedSession } from "./server/session.ts";
import type { ForwardProgress } from "./share-writer.ts";
import { type ComparisonResult, compareShared, verifyShared } from "./verify.ts";

export interface ShareOptions {
  /** The SQLite file. */
  readonly warehouse: string;
  readonly url: string;
  readonly readPassword: () => string | undefined;
  readonly role: ShareRole;
  /** What a person calls this daemon. */
  readonly name: string;
  readonly leaseSeconds: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ForwardProgress) => void;
  /** Called with the name of the daemon that forwards: this one waits until it may. Without it, it gives up. */
  readonly onStandby?: (name: string) => void;
}

/** Connected to both stores, with the lease. */
export interface OpenShare {
  readonly forwarder: Forwarder;
  readonly connection: Connection;
  /** The changes since the last state are unknown: every covered range is to be compared, after what is lacking. */
  readonly comparison: AsyncGenerator<ComparisonResult> | undefined;
  close(): Promise<void>;
}

/** Connects, creates or upgrades the schema, takes the lease, and reads what PostgreSQL has. */
export async function openShare(options: ShareOptions): Promise<OpenShare> {
  const { warehouse, url, readPassword, role, name, leaseSeconds, clock, signal, onProgress } = options;
  const address = parseServerAddress(url);
  const connection = openReader(warehouse, SMALL_CACHE_KIB);
  let session: SharedSession | undefined;
  let lease: Lease | undefined;
  const close = async () => {
    await lease?.giveBack().catch(() => {});
    await session?.close();
    connection.close();
  };
  try {
    // Short and ASCII: PostgreSQL would change any other name, and the lease compares it.
    const holder = `mds-sync ${randomUUID()}`;
    session = await SharedSession.connect({ address, readPassword, holder, clock });
    await migrateShared(session);
    lease = new Lease({ session, holder, name, seconds: leaseSeconds, clock });
    await takeWhenFree(lease, options);
    const forwarder = new Forwarder({
      connection,
      session,
      lease,
      role,
      clock,
      signal,
      ...(onProgress && { onProgress }),
    });
    const isKnown = await forwarder.load();
    const comparison = isKnown ? undefined : compareShared(forwarder.writer, connection);
    return { forwarder, connection, comparison, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A standby looks this often, or four times in a lease. */
const MAX_STANDBY_INTERVAL_MS = 500;

async function takeWhenFree(lease: Lease, options: ShareOptions): Promise<void> {
  const { clock, signal, leaseSeconds, onStandby } = options;
  for (;;) {
    try {
      return await lease.take({ isPatient: onStandby === undefined });
    } catch (error) {
      const code = failureCode(error);
      if (!onStandby || (code !== "share_held" && code !== "share_fenced")) throw error;
      onStandby(heldBy(error));
      await clock.sleep(Math.min(MAX_STANDBY_INTERVAL_MS, leaseSeconds * 250), signal);
    }
  }
}

export interface ShareResult extends ForwardResult {
  readonly compared: number;
  readonly mended: number;
  readonly seconds: number;
}

/** Forwards everything that the shared warehouse lacks. With `verify` it also compares every covered range. */
export async function shareOnce(options: ShareOptions & { readonly verify?: boolean }): Promise<ShareResult> {
  const startedAt = options.clock.monotonic();
  const { forwarder, connection, comparison, close } = await openShare(options);
  try {
    const forwarded = await forwarder.forward();
    const isCompared = options.verify || comparison !== undefined;
    const found = isCompared ? await verifyShared(forwarder.writer, connection) : { compared: 0, mended: 0 };
    if (comparison) await forwarder.endComparison();
    return { ...forwarded, ...found, seconds: (options.clock.monotonic() - startedAt) / 1000 };
  } finally {
    await close();
  }
}
