import { constants, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { failureCode, serialiseFailure } from "../model/failure.ts";
import { backoffDelay } from "../runtime/backoff.ts";
import { systemClock } from "../runtime/clock.ts";
import type { ShareReport, ShareRequest, ShareThreadSettings } from "./share-messages.ts";
import { type OpenShare, openShare } from "./share-once.ts";

/** How often the stores are compared while the daemon runs: an idle comparison takes some milliseconds. */
const PASS_INTERVAL_MS = 2_000;
/** A pass over many series may take this much of the thread's time. */
const MAX_BUSY_SHARE = 0.2;
const backoff = { baseMs: 2_000, maxMs: 60_000 };

const port = parentPort;
if (port === null) throw new Error("share-worker runs as a worker thread only");
const settings = workerData as ShareThreadSettings;
const stop = new AbortController();
let receivePassword: (password: string | undefined) => void = () => {};
port.on("message", (request: ShareRequest) => {
  if (request.kind === "stop") stop.abort();
  else receivePassword(request.value);
});
lowerPriority();
await run();
process.exit();

async function run(): Promise<void> {
  for (let attempt = 0; !stop.signal.aborted; attempt++) {
    let share: OpenShare | undefined;
    try {
      const password = await askPassword();
      let reported = 0;
      share = await openShare({
        ...settings,
        readPassword: () => password,
        clock: systemClock,
        signal: stop.signal,
        onProgress({ rows }) {
          report({ kind: "rows", rows: rows - reported });
          reported = rows;
        },
      });
      report({ kind: "connected" });
      attempt = 0;
      await forwardUntilStopped(share);
    } catch (error) {
      if (!stop.signal.aborted) report({ kind: "failed", failure: serialiseFailure(error, "share_bug") });
      // The warehouse is created by the ingest thread, a moment after this thread starts.
      const isEarly = failureCode(error) === "no_warehouse" || failureCode(error) === "older_warehouse";
      await share?.close();
      const delayMs = isEarly ? 1_000 : 500 + backoffDelay(attempt, backoff, Math.random);
      await systemClock.sleep(delayMs, stop.signal).catch(() => {});
    }
  }
}

async function forwardUntilStopped({ forwarder, close }: OpenShare): Promise<void> {
  try {
    while (!stop.signal.aborted) {
      const startedAt = systemClock.now();
      const begun = systemClock.monotonic();
      const { rows, commits } = await forwarder.forward();
      await forwarder.renewIfDue();
      report({ kind: "forwarded", startedAt, rows, commits });
      const busyMs = systemClock.monotonic() - begun;
      const pauseMs = rows > 0 ? 0 : busyMs / MAX_BUSY_SHARE;
      await systemClock.sleep(Math.max(PASS_INTERVAL_MS, pauseMs), stop.signal).catch(() => {});
    }
  } finally {
    await close();
  }
}

function askPassword(): Promise<string | undefined> {
  return new Promise((resolve) => {
    receivePassword = resolve;
    report({ kind: "ask-password" });
  });
}

function report(message: ShareReport): void {
  port?.postMessage(message);
}

/** On Linux this affects only the calling thread: when the CPU is busy, forwarding waits for ingest. */
function lowerPriority(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A hardened systemd unit forbids the call.
  }
}
