import { constants, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { deserialiseFailure, serialiseFailure } from "../../model/failure.ts";
import { systemClock } from "../../runtime/clock.ts";
import { finishesWithin } from "../../runtime/timeouts.ts";
import { findHeldDays } from "../held-days.ts";
import { runShareLoop } from "./share-loop.ts";
import type { ShareReport, ShareRequest, ShareThreadSettings } from "./share-messages.ts";

const port = parentPort;
if (port === null) throw new Error("share-worker runs as a worker thread only");
const stop = new AbortController();
let passwordAsked: PromiseWithResolvers<string | undefined> | undefined;
/** By number: shares that the sync has been asked to follow. */
const followed = new Map<number, () => void>();
let lastFollow = 0;
port.on("message", (request: ShareRequest) => {
  if (request.kind === "stop") stop.abort();
  else if (request.kind === "followed") followed.get(request.id)?.();
  else if (request.kind === "find-held") void answerHeld(request);
  else if (request.kind === "no-password") passwordAsked?.reject(deserialiseFailure(request.failure));
  else passwordAsked?.resolve(request.value);
});
const report = (message: ShareReport) => port.postMessage(message);
lowerPriority();
const settings = workerData as ShareThreadSettings;
await runShareLoop({
  ...settings,
  clock: systemClock,
  random: Math.random,
  signal: stop.signal,
  askPassword() {
    passwordAsked = Promise.withResolvers();
    report({ kind: "ask-password" });
    return passwordAsked.promise;
  },
  report,
  async follow(change) {
    const id = ++lastFollow;
    const { promise, resolve } = Promise.withResolvers<void>();
    followed.set(id, resolve);
    report({ kind: "follow", id, change });
    // A busy sync must not cost the leases.
    await finishesWithin(systemClock, (settings.leaseSeconds * 1000) / 2, promise);
    followed.delete(id);
  },
});
process.exit();

async function answerHeld({ id, password, request }: ShareRequest & { kind: "find-held" }): Promise<void> {
  try {
    const readPassword = () => password;
    const options = { ...settings, readPassword, clock: systemClock, signal: stop.signal };
    report({ kind: "held", id, result: await findHeldDays(options, request) });
  } catch (error) {
    report({ kind: "not-held", id, failure: serialiseFailure(error, "share_bug") });
  }
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
