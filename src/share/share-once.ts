import { randomUUID } from "node:crypto";
import type { Clock } from "../runtime/clock.ts";
import { readChangePosition } from "../warehouse/coverage/changed-ranges.ts";
import { openReader } from "../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import { Forwarder, type ForwardProgress, type ForwardResult } from "./forwarder.ts";
import { migrateShared } from "./schema/migrate.ts";
import { type Lease, returnLease, takeLease } from "./server/lease.ts";
import { parseServerAddress } from "./server/server-address.ts";
import { SharedSession } from "./server/session.ts";
import { type ComparisonResult, verifyShared } from "./verify.ts";

export interface ShareOptions {
  /** The SQLite file. */
  readonly warehouse: string;
  readonly url: string;
  readonly readPassword: () => string | undefined;
  /** What a person calls this daemon. */
  readonly name: string;
  readonly leaseSeconds: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: ForwardProgress) => void;
}

/** Connected to both stores, with the lease. */
export interface OpenShare {
  readonly forwarder: Forwarder;
  readonly connection: Connection;
  /** What `load` had to compare, because the changes since the last state were unknown. */
  readonly compared: ComparisonResult | undefined;
  close(): Promise<void>;
}

/** Connects, creates or upgrades the schema, takes the lease, and reads what PostgreSQL has. */
export async function openShare(options: ShareOptions): Promise<OpenShare> {
  const { warehouse, url, readPassword, name, leaseSeconds, clock, signal, onProgress } = options;
  const address = parseServerAddress(url);
  const connection = openReader(warehouse, SMALL_CACHE_KIB);
  let session: SharedSession | undefined;
  let lease: Lease | undefined;
  const close = async () => {
    if (session && lease) await returnLease(session, lease).catch(() => {});
    await session?.close();
    connection.close();
  };
  try {
    // Short and ASCII: PostgreSQL would change any other name, and the lease compares it.
    const holder = `mds-sync ${randomUUID()}`;
    session = await SharedSession.connect({ address, readPassword, holder, clock });
    await migrateShared(session);
    lease = await takeLease(session, { holder, name, seconds: leaseSeconds, clock });
    const forwarder = new Forwarder({
      connection,
      session,
      lease,
      clock,
      signal,
      ...(onProgress && { onProgress }),
    });
    const position = readChangePosition(connection);
    let compared: ComparisonResult | undefined;
    if (!(await forwarder.load())) {
      compared = await verifyShared(forwarder, connection);
      await forwarder.storePosition(position);
    }
    return { forwarder, connection, compared, close };
  } catch (error) {
    await close();
    throw error;
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
  const { forwarder, connection, compared: comparedFirst, close } = await openShare(options);
  try {
    const forwarded = await forwarder.forward();
    const verified = options.verify ? await verifyShared(forwarder, connection) : undefined;
    return {
      ...forwarded,
      compared: (comparedFirst?.compared ?? 0) + (verified?.compared ?? 0),
      mended: (comparedFirst?.mended ?? 0) + (verified?.mended ?? 0),
      seconds: (options.clock.monotonic() - startedAt) / 1000,
    };
  } finally {
    await close();
  }
}
