import { failureCode } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import { openReader } from "../warehouse/reader.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import { ALL_TIME, Forwarder, type ForwardResult } from "./forwarder.ts";
import { migrateShared } from "./schema/migrate.ts";
import { Lease } from "./server/lease.ts";
import { pooledFailure } from "./server/postgres-errors.ts";
import { createHolder, readPeers } from "./server/read-share-status.ts";
import { parseServerAddress } from "./server/server-address.ts";
import { SharedSession, turnOffCompiling } from "./server/session.ts";
import type { ShareReport, ShareThreadSettings } from "./thread/share-messages.ts";
import { type ComparisonResult, sumUp } from "./verify.ts";

export interface ShareOptions extends ShareThreadSettings {
  readonly readPassword: () => string | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Whether it waits while another daemon forwards; if not, it gives up. */
  readonly standsBy?: boolean;
  readonly report?: (report: ShareReport) => void;
}

/** Connected to both stores, with the lease. */
export interface OpenShare {
  readonly forwarder: Forwarder;
  readonly lease: Lease;
  readonly connection: Connection;
  /** Changes of some period are unknown: compare its covered ranges once what is lacking was forwarded. */
  readonly comparison: AsyncGenerator<ComparisonResult> | undefined;
  /** Reads who else works with the shared warehouse, if that is due. */
  readonly lookAtPeers: () => Promise<void>;
  close(): Promise<void>;
}

/** Connects, creates or upgrades the schema, takes the lease, and reads what PostgreSQL has. */
export async function openShare(options: ShareOptions): Promise<OpenShare> {
  const { warehouse, url, name, leaseSeconds, clock } = options;
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
    const holder = createHolder(name);
    session = await SharedSession.connect({ ...options, address, holder });
    if (await session.isPooled()) throw pooledFailure(session.server);
    await migrateShared(session, clock);
    lease = new Lease({ ...options, session, holder, seconds: leaseSeconds });
    const forwarder = new Forwarder({ ...options, connection, lease });
    const lookAtPeers = createPeersLook(session, options);
    await takeWhenFree(lease, { ...options, forwarder, lookAtPeers });
    await turnOffCompiling(session);
    const unknown = await forwarder.load();
    const comparison = unknown.length === 0 ? undefined : forwarder.compare(unknown);
    return { forwarder, lease, connection, comparison, lookAtPeers, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** How often a daemon reads who else is there, and a standby what PostgreSQL lacks. */
const LOOK_INTERVAL_MS = 5_000;

function createPeersLook(session: SharedSession, { clock, report }: ShareOptions): () => Promise<void> {
  let lookedAt = Number.NEGATIVE_INFINITY;
  return async () => {
    if (!report || clock.monotonic() - lookedAt < LOOK_INTERVAL_MS) return;
    lookedAt = clock.monotonic();
    const peers = await readPeers(session);
    if (peers) report({ kind: "peers", peers });
  };
}

/** A standby tries to take the lease this often, or four times in a lease. */
const MAX_STANDBY_INTERVAL_MS = 500;

async function takeWhenFree(
  lease: Lease,
  options: ShareOptions & Pick<OpenShare, "forwarder" | "lookAtPeers">,
): Promise<void> {
  const { forwarder, lookAtPeers, clock, signal, leaseSeconds, standsBy = false, report } = options;
  let standbyFor: string | undefined;
  let compareAt = Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      return await lease.take({ isPatient: !standsBy });
    } catch (error) {
      if (!standsBy || !isPassing(error)) throw error;
      if (lease.heldBy !== standbyFor) report?.({ kind: "standby", forwardedBy: lease.heldBy });
      standbyFor = lease.heldBy;
    }
    await lookAtPeers();
    if (clock.monotonic() >= compareAt) {
      // The leader begins anew each time it gets its lease back.
      const hasForwarded = await forwardOwnSnapshots(lease, forwarder);
      compareAt = clock.monotonic() + (hasForwarded ? leaseSeconds * 1000 : LOOK_INTERVAL_MS);
    }
    await clock.sleep(Math.min(MAX_STANDBY_INTERVAL_MS, leaseSeconds * 250), signal);
  }
}

/** A standby forwards at once what only it has seen. Returns whether there was any. */
async function forwardOwnSnapshots(lease: Lease, forwarder: Forwarder): Promise<boolean> {
  if (!(await forwarder.hasOwnSnapshots())) return false;
  try {
    await lease.takeForOnce();
    await forwarder.forwardOwnSnapshots();
  } catch (error) {
    // The leader was faster, or is in a long transaction: try later.
    if (!isPassing(error)) throw error;
  } finally {
    await lease.giveBack();
  }
  return true;
}

function isPassing(error: unknown): boolean {
  return ["share_held", "share_fenced", "share_blocked"].includes(failureCode(error) ?? "");
}

export interface ShareResult extends ForwardResult, ComparisonResult {
  readonly seconds: number;
}

export interface ShareOnceOptions extends ShareOptions {
  /** Also compare every covered range. */
  readonly verify?: boolean;
}

/** Forwards everything that the shared warehouse lacks, then exits. */
export async function shareOnce({ verify, ...options }: ShareOnceOptions): Promise<ShareResult> {
  const startedAt = options.clock.monotonic();
  const { forwarder, comparison, close } = await openShare(options);
  try {
    const forwarded = await forwarder.forward();
    const found = await sumUp(verify ? forwarder.compare([ALL_TIME]) : comparison);
    if (comparison) await forwarder.endComparison();
    const seconds = (options.clock.monotonic() - startedAt) / 1000;
    return { ...forwarded, ...found, seconds };
  } finally {
    await close();
  }
}
