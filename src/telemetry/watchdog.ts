import { spawn } from "node:child_process";
import type { Clock } from "../runtime/clock.ts";
import { loop } from "../runtime/loop.ts";

/** What can be seen of the thread that writes. */
export interface Pulse {
  /** Answers so far, refusals included. */
  readonly answers: number;
  /** How long it has been silent on something that it was asked. */
  readonly silentMs: number;
  /** What keeps it from writing, in one line with its remedy; undefined: nothing does. */
  readonly trouble: string | undefined;
}

export interface VitalSigns {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly pulse: Pulse;
  /** Asks the thread for a sign of life; resolves with its answer. */
  readonly ask: () => Promise<unknown>;
  readonly problem: () => string | undefined;
  readonly ready: () => boolean;
  readonly feedWatchdog: () => void;
  /** A minute has passed in which the daemon was well throughout. */
  readonly healthyMinute: () => void;
}

const LOOK_EVERY_MS = 10_000;
const WATCHDOG_EVERY_MS = 30_000;
const MINUTE_MS = 60_000;
/** No commit takes so long: the thread that has not answered by then is stuck, whatever else still lives. */
const STUCK_MS = 60_000;

/** Why the daemon does not do its work, in one line; undefined while it does. */
export function problemOf(
  pulse: Pick<Pulse, "silentMs" | "trouble"> | undefined,
  credentials: string,
): string | undefined {
  if (pulse && pulse.silentMs > STUCK_MS)
    return `the ingest thread has not answered for ${Math.round(pulse.silentMs / 1000)} seconds: nothing is written`;
  if (pulse?.trouble !== undefined) return pulse.trouble;
  if (credentials === "credentials_rejected" || credentials === "auth_failed")
    return `the service refuses the credentials (${credentials})`;
  return undefined;
}

/**
 * Looks after the daemon while it works. The watchdog is fed by answers of the thread that writes, not by a timer that only
 * shows that time passes; a refusal (the disk is full, the credentials are not taken) is an answer too, since a restart would
 * not mend it.
 */
export async function watchOver(signs: VitalSigns): Promise<void> {
  const { clock, pulse } = signs;
  let isAsking = false;
  let heard = -1;
  let fedAt = Number.NEGATIVE_INFINITY;
  let wellSince: number | undefined;
  await loop({
    clock,
    signal: signs.signal,
    everyMs: () => LOOK_EVERY_MS,
    async work() {
      if (!isAsking) {
        isAsking = true;
        // Not awaited: a thread that is stuck never answers, and then this loop has something to tell.
        signs
          .ask()
          .catch(() => {})
          .finally(() => {
            isAsking = false;
          });
      }
      const now = clock.monotonic();
      if (pulse.answers > heard && pulse.silentMs <= STUCK_MS && now - fedAt >= WATCHDOG_EVERY_MS) {
        heard = pulse.answers;
        fedAt = now;
        signs.feedWatchdog();
      }
      if (!signs.ready() || signs.problem() !== undefined) wellSince = undefined;
      else if (wellSince === undefined) wellSince = now;
      else if (now - wellSince >= MINUTE_MS) {
        wellSince = now;
        signs.healthyMinute();
      }
    },
    failed: (error) => {
      throw error;
    },
  });
}

/**
 * Tells systemd how the daemon stands, where it runs under systemd. Node cannot speak to its socket, so systemd's own
 * little program does; that it is missing or fails is nobody's trouble.
 */
export function notifyServiceManager(message: string, env: NodeJS.ProcessEnv = process.env): void {
  if (!env.NOTIFY_SOCKET) return;
  const { NOTIFY_SOCKET, PATH = "/usr/bin:/bin" } = env;
  spawn("systemd-notify", [message], { stdio: "ignore", env: { NOTIFY_SOCKET, PATH } })
    .on("error", () => {})
    .unref();
}
