import { constants, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { systemClock } from "../../runtime/clock.ts";
import { runShareLoop } from "./share-loop.ts";
import type { ShareReport, ShareRequest, ShareThreadSettings } from "./share-messages.ts";

const port = parentPort;
if (port === null) throw new Error("share-worker runs as a worker thread only");
const stop = new AbortController();
let receivePassword: (password: string | undefined) => void = () => {};
port.on("message", (request: ShareRequest) => {
  if (request.kind === "stop") stop.abort();
  else receivePassword(request.value);
});
const report = (message: ShareReport) => port.postMessage(message);
lowerPriority();
await runShareLoop({
  ...(workerData as ShareThreadSettings),
  clock: systemClock,
  random: Math.random,
  signal: stop.signal,
  askPassword: () =>
    new Promise((resolve) => {
      receivePassword = resolve;
      report({ kind: "ask-password" });
    }),
  report,
});
process.exit();

/** On Linux this affects only the calling thread: when the CPU is busy, forwarding waits for ingest. */
function lowerPriority(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A hardened systemd unit forbids the call.
  }
}
