import { randomUUID } from "node:crypto";
import { openReader } from "../../warehouse/reader.ts";
import { SMALL_CACHE_KIB } from "../../warehouse/sqlite/connection.ts";
import { Forwarder } from "../forwarder.ts";
import { migrateShared } from "../schema/migrate.ts";
import { type LeaseOptions, Leases } from "../server/leases.ts";
import { Member } from "../server/members.ts";
import { parseServerAddress } from "../server/server-address.ts";
import { SharedSession } from "../server/session.ts";
import { readSettledOf } from "../settled-series.ts";
import { compareShared } from "../verify.ts";
import { compareFor, MAX_COMPARISON_MS, PASS_INTERVAL_MS, type ShareLoopOptions } from "./loop-options.ts";

/** A daemon looks this often who is there, or four times in a lease. */
const MAX_BALANCE_INTERVAL_MS = 500;

/** How long what a daemon gives back is forwarded before: the rest is fetched again by whoever takes it. */
const MAX_FLUSH_MS = 10_000;

interface Pass {
  readonly forwarder: Forwarder;
  comparison: ReturnType<typeof compareShared> | undefined;
}

/** Forwards what this daemon follows, and follows what it has the leases of, until the signal aborts or something fails. */
export async function forwardShare(options: ShareLoopOptions, password: string | undefined): Promise<void> {
  const { warehouse, url, name, leaseSeconds, clock, signal } = options;
  const connection = openReader(warehouse, SMALL_CACHE_KIB);
  const holder = `mds-sync ${randomUUID()}`;
  const address = parseServerAddress(url);
  let session: SharedSession | undefined;
  let [leases, member]: [Leases | undefined, Member | undefined] = [undefined, undefined];
  try {
    session = await SharedSession.connect({ address, readPassword: () => password, holder, clock });
    await migrateShared(session);
    const leaseOptions: LeaseOptions = { session, holder, name, seconds: leaseSeconds, clock };
    leases = new Leases(leaseOptions);
    member = new Member(leaseOptions, leases);
    await runShare(options, { connection, session, leases, member });
  } finally {
    if (signal.aborted) {
      await leases?.giveBack().catch(() => {});
      await member?.leave().catch(() => {});
    }
    await session?.close();
    connection.close();
  }
}

interface OpenMember {
  readonly connection: ReturnType<typeof openReader>;
  readonly session: SharedSession;
  readonly leases: Leases;
  readonly member: Member;
}

async function runShare(options: ShareLoopOptions, open: OpenMember): Promise<void> {
  const { clock, signal, report, leaseSeconds, role, follow } = options;
  const { connection, session, leases, member } = open;
  const intervalMs = Math.min(MAX_BALANCE_INTERVAL_MS, leaseSeconds * 250);
  const pause = () => clock.sleep(intervalMs, signal).catch(() => {});
  let reported = 0;
  const onProgress = ({ rows }: { readonly rows: number }) => {
    report({ kind: "rows", rows: rows - reported });
    reported = rows;
  };
  let lookedAt = Number.NEGATIVE_INFINITY;
  let flushUntil = Number.POSITIVE_INFINITY;
  /** A pass may take hours, and others may join or die meanwhile. */
  const beforeTransaction = async () => {
    const now = clock.monotonic();
    if (now >= flushUntil) throw new PassEnded();
    if (now - lookedAt < intervalMs || Number.isFinite(flushUntil)) return;
    lookedAt = now;
    await member.register();
    const { surplus, free } = await member.findBalance();
    if (surplus.length + free.length > 0) throw new PassEnded();
  };
  const load = async (): Promise<Pass> => {
    reported = 0;
    lookedAt = clock.monotonic();
    const forwarder = new Forwarder({
      connection,
      session,
      leases,
      role,
      clock,
      signal,
      onProgress,
      beforeTransaction,
    });
    const isKnown = await forwarder.load();
    return { forwarder, comparison: isKnown ? undefined : compareShared(forwarder.writer, connection) };
  };
  // Daemons that start together see each other before the first one takes everything.
  await member.register();
  await pause();
  let pass: Pass | undefined;
  let passAt = Number.NEGATIVE_INFINITY;
  while (!signal.aborted) {
    await member.register();
    const lost = await leases.renew();
    const { surplus, free } = await member.findBalance();
    if (surplus.length > 0 && pass) {
      // First it stops to follow them, then what it has of them is forwarded: the next daemon fetches nothing again.
      const kept = leases.buckets.filter((bucket) => !surplus.includes(bucket));
      await follow({ buckets: kept, taken: [], settled: [] });
      flushUntil = clock.monotonic() + MAX_FLUSH_MS;
      await endEarly(pass.forwarder.forward());
      flushUntil = Number.POSITIVE_INFINITY;
      await leases.giveBack(surplus);
    }
    const taken = await leases.take(free);
    if (lost.length + surplus.length + taken.length > 0 || !pass) {
      pass = leases.count > 0 ? await load() : undefined;
      passAt = Number.NEGATIVE_INFINITY;
      const settled = taken.length > 0 ? await readSettledOf(session, taken) : [];
      await follow({ buckets: leases.buckets, taken, settled });
      report({ kind: "connected", leases: leases.count });
    }
    if (pass && clock.monotonic() - passAt >= PASS_INTERVAL_MS) {
      passAt = clock.monotonic();
      if (!(await endEarly(runPass(pass, options)))) pass = undefined;
    }
    await pause();
  }
}

/** Others have joined or died: the leases are looked at before the rest is forwarded. */
class PassEnded extends Error {}

/** Returns whether the work came to its end. */
async function endEarly(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (error instanceof PassEnded) return false;
    throw error;
  }
}

async function runPass(pass: Pass, options: ShareLoopOptions): Promise<void> {
  const { clock, report } = options;
  const startedAt = clock.now();
  const { rows, commits } = await pass.forwarder.forward();
  report({ kind: "forwarded", startedAt, rows, commits });
  if (!pass.comparison || (await compareFor(pass.comparison, MAX_COMPARISON_MS / 2, options))) return;
  pass.comparison = undefined;
  await pass.forwarder.endComparison();
}
