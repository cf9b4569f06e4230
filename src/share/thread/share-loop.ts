import { failureCode, serialiseFailure } from "../../model/failure.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import { type OpenShare, openShare } from "../share-once.ts";
import type { ComparisonResult } from "../verify.ts";
import type { ShareReport, ShareThreadSettings } from "./share-messages.ts";

/** How often the journal is read. Without a change a read takes a millisecond. */
const PASS_INTERVAL_MS = 1_000;
/** A comparison of everything may take hours, so new changes go first. */
const MAX_COMPARISON_MS = 2_000;
const backoff = { baseMs: 2_000, maxMs: 60_000 };
const MIN_RETRY_MS = 500;
/** The ingest thread creates or upgrades the warehouse a moment after this loop starts. */
const OPENING_RETRY_MS = 1_000;

interface ShareLoopOptions extends ShareThreadSettings {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal;
  readonly askPassword: () => Promise<string | undefined>;
  readonly report: (report: ShareReport) => void;
}

/** Forwards until the signal aborts. After a failure it connects again and reads anew what PostgreSQL has. */
export async function runShareLoop(options: ShareLoopOptions): Promise<void> {
  const { clock, random, signal, report } = options;
  let attempt = 0;
  while (!signal.aborted) {
    let delayMs = 0;
    let share: OpenShare | undefined;
    try {
      const password = await options.askPassword();
      share = await openShare({
        ...options,
        standsBy: options.role === "pair",
        readPassword: () => password,
      });
      report({ kind: "connected" });
      attempt = 0;
      await forwardUntilAborted(share, options);
    } catch (error) {
      const code = failureCode(error);
      // The other daemon of a pair has taken over, or has taken the lease for a moment.
      if (code === "share_fenced" && options.role === "pair") continue;
      if (!signal.aborted) report({ kind: "failed", failure: serialiseFailure(error, "share_bug") });
      const isOpening = code === "no_warehouse" || code === "older_warehouse";
      delayMs = isOpening ? OPENING_RETRY_MS : MIN_RETRY_MS + backoffDelay(attempt++, backoff, random);
    } finally {
      await share?.close();
    }
    await clock.sleep(delayMs, signal).catch(() => {});
  }
}

async function forwardUntilAborted(share: OpenShare, options: ShareLoopOptions): Promise<void> {
  const { clock, signal, report } = options;
  const { forwarder } = share;
  let { comparison } = share;
  while (!signal.aborted) {
    const startedAt = clock.now();
    const { rows, commits } = await forwarder.forward();
    await share.lease.renewIfDue();
    await share.lookAtPeers();
    report({ kind: "forwarded", startedAt, rows, commits });
    if (comparison) {
      if (await compareForAWhile(comparison, options)) continue;
      comparison = undefined;
      await forwarder.endComparison();
    }
    await clock.sleep(PASS_INTERVAL_MS, signal).catch(() => {});
  }
}

/** Returns whether there is more to compare. */
async function compareForAWhile(
  comparison: AsyncGenerator<ComparisonResult>,
  { clock, signal }: ShareLoopOptions,
): Promise<boolean> {
  const until = clock.monotonic() + MAX_COMPARISON_MS;
  while (clock.monotonic() < until && !signal.aborted) if ((await comparison.next()).done) return false;
  return true;
}
