import { failureCode, serialiseFailure } from "../../model/failure.ts";
import { backoffDelay } from "../../runtime/backoff.ts";
import { type OpenShare, openShare } from "../share-once.ts";
import { compareFor, MAX_COMPARISON_MS, PASS_INTERVAL_MS, type ShareLoopOptions } from "./loop-options.ts";
import { forwardShare } from "./split-loop.ts";

/** With very many series a comparison takes longer; it may take this part of the thread's time. */
const MAX_BUSY_SHARE = 0.2;
const backoff = { baseMs: 2_000, maxMs: 60_000 };
const MIN_RETRY_MS = 500;
/** The ingest thread creates or upgrades the warehouse a moment after this loop starts. */
const OPENING_RETRY_MS = 1_000;

/** Forwards until the signal aborts. After a failure it connects again and reads anew what PostgreSQL has. */
export async function runShareLoop(options: ShareLoopOptions): Promise<void> {
  const { clock, random, signal, report } = options;
  let attempt = 0;
  while (!signal.aborted) {
    let delayMs = 0;
    let share: OpenShare | undefined;
    try {
      if (options.role === "split") {
        await forwardShare(options, await options.askPassword());
        break;
      }
      share = await connect(options);
      report({ kind: "connected", leases: share.leases.count });
      attempt = 0;
      await forwardUntilAborted(share, options);
    } catch (error) {
      if (!signal.aborted) report({ kind: "failed", failure: serialiseFailure(error, "share_bug") });
      const code = failureCode(error);
      const isOpening = code === "no_warehouse" || code === "older_warehouse";
      delayMs = isOpening ? OPENING_RETRY_MS : MIN_RETRY_MS + backoffDelay(attempt++, backoff, random);
    } finally {
      await share?.close();
    }
    await clock.sleep(delayMs, signal).catch(() => {});
  }
}

async function connect({ askPassword, report, ...options }: ShareLoopOptions): Promise<OpenShare> {
  const password = await askPassword();
  let reported = 0;
  let standbyFor: string | undefined;
  const onStandby = (name: string) => {
    if (name !== standbyFor) report({ kind: "standby", forwardedBy: name });
    standbyFor = name;
  };
  return openShare({
    ...options,
    ...(options.role === "alone" ? {} : { onStandby }),
    readPassword: () => password,
    onProgress({ rows }) {
      report({ kind: "rows", rows: rows - reported });
      reported = rows;
    },
  });
}

async function forwardUntilAborted(share: OpenShare, options: ShareLoopOptions): Promise<void> {
  const { clock, signal, report, leaseSeconds } = options;
  const { forwarder } = share;
  let { comparison } = share;
  while (!signal.aborted) {
    const startedAt = clock.now();
    const begun = clock.monotonic();
    const { rows, commits } = await forwarder.forward();
    await forwarder.writer.renewIfDue();
    report({ kind: "forwarded", startedAt, rows, commits });
    if (comparison) {
      if (await compareFor(comparison, MAX_COMPARISON_MS, options)) continue;
      comparison = undefined;
      await forwarder.endComparison();
    }
    const idleMs = Math.min((clock.monotonic() - begun) / MAX_BUSY_SHARE, (leaseSeconds * 1000) / 3);
    await clock.sleep(Math.max(PASS_INTERVAL_MS, idleMs), signal).catch(() => {});
  }
}
