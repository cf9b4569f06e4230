import { spawn } from "node:child_process";
import { type Clock, runLoop } from "../runtime/clock.ts";

/** What the daemon knows about the ingest thread. */
interface IngestLiveness {
  /** Number of answers so far, errors included. */
  readonly replyCount: number;
  /** How long the oldest call has been without an answer. */
  readonly oldestCallAgeMs: number;
  /** Why it cannot write, in one line with the remedy; undefined while it can. */
  readonly blockedBy: string | undefined;
}

interface WatchdogOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly ingest: IngestLiveness;
  /** Sends the ingest thread a call that does nothing; resolves with its answer. */
  readonly ping: () => Promise<unknown>;
  /** Why the daemon is unhealthy; undefined while it is healthy. */
  readonly problem: () => string | undefined;
  readonly isReady: () => boolean;
  readonly feedWatchdog: () => void;
  /** Called after each minute during which the daemon was ready and without problem. */
  readonly onHealthyMinute: () => void;
}

const CHECK_INTERVAL_MS = 10_000;
const WATCHDOG_INTERVAL_MS = 30_000;
const MINUTE_MS = 60_000;
/** No commit takes this long: a thread without an answer by then is stuck. */
const STUCK_TIMEOUT_MS = 60_000;

/** Why the daemon is unhealthy, in one line; undefined while it is healthy. */
export function describeProblem(
  ingest: Pick<IngestLiveness, "oldestCallAgeMs" | "blockedBy"> | undefined,
  credentials: string,
): string | undefined {
  if (ingest && ingest.oldestCallAgeMs > STUCK_TIMEOUT_MS)
    return `the ingest thread has not answered for ${Math.round(ingest.oldestCallAgeMs / 1000)} seconds: nothing is written`;
  if (ingest?.blockedBy !== undefined) return ingest.blockedBy;
  if (credentials === "credentials_rejected" || credentials === "auth_failed")
    return `the service refuses the credentials (${credentials})`;
  if (credentials === "secret_unreadable")
    return "the client secret cannot be read: check its file and permissions, `mds-sync doctor` says why";
  return undefined;
}

/**
 * Feeds systemd's watchdog while the ingest thread answers, not by a timer alone. An error (full disk,
 * rejected credentials) counts as an answer, because a restart would not repair it.
 */
export async function runWatchdog(options: WatchdogOptions): Promise<void> {
  const { clock, ingest } = options;
  let isPingPending = false;
  let answersSeen = -1;
  let fedAt = Number.NEGATIVE_INFINITY;
  let healthySince: number | undefined;
  await runLoop({
    clock,
    signal: options.signal,
    delayMs: () => CHECK_INTERVAL_MS,
    async runOnce() {
      if (!isPingPending) {
        isPingPending = true;
        // Not awaited: a stuck thread never answers, and this loop must go on to report it.
        options
          .ping()
          .catch(() => {})
          .finally(() => {
            isPingPending = false;
          });
      }
      const now = clock.monotonic();
      if (
        ingest.replyCount > answersSeen &&
        ingest.oldestCallAgeMs <= STUCK_TIMEOUT_MS &&
        now - fedAt >= WATCHDOG_INTERVAL_MS
      ) {
        answersSeen = ingest.replyCount;
        fedAt = now;
        options.feedWatchdog();
      }
      if (!options.isReady() || options.problem() !== undefined) healthySince = undefined;
      else if (healthySince === undefined) healthySince = now;
      else if (now - healthySince >= MINUTE_MS) {
        healthySince = now;
        options.onHealthyMinute();
      }
    },
    onError: (error) => {
      throw error;
    },
  });
}

/**
 * Notifies systemd, if the daemon runs under systemd. Node cannot write to systemd's datagram socket, so this
 * runs `systemd-notify`, and ignores it if that program is missing or fails.
 */
export function notifyServiceManager(message: string, env: NodeJS.ProcessEnv = process.env): void {
  if (!env.NOTIFY_SOCKET) return;
  const { NOTIFY_SOCKET, PATH = "/usr/bin:/bin" } = env;
  spawn("systemd-notify", [message], { stdio: "ignore", env: { NOTIFY_SOCKET, PATH } })
    .on("error", () => {})
    .unref();
}

/** Beyond the time that the unit allows for a start: the estimate may be far off. */
const START_TIMEOUT_MARGIN_S = 3_600;

/** Lets systemd wait for work before READY that is expected to take `seconds`. */
export function extendStartTimeout(seconds: number): void {
  notifyServiceManager(`EXTEND_TIMEOUT_USEC=${(10 * seconds + START_TIMEOUT_MARGIN_S) * 1_000_000}`);
}

const SUSPENDED_WATCHDOG_S = 6 * 3_600;

/** Before the last work of a daemon, during which the ingest thread does not answer. */
export function suspendWatchdog(): void {
  notifyServiceManager(`WATCHDOG_USEC=${SUSPENDED_WATCHDOG_S * 1_000_000}`);
}
