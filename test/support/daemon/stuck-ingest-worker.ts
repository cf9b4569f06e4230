import { parentPort, workerData } from "node:worker_threads";
import type { IngestCall, ScannedPageMessage } from "../../../src/ingest/thread/messages.ts";
import { OperationRunner } from "../../../src/ingest/thread/operations.ts";

// Works like the ingest thread until the shared flag is 2; then it hangs on the next call.
const runner = new OperationRunner(() => {});
const flag = workerData as Int32Array;
parentPort?.on("message", (call: IngestCall | ScannedPageMessage) => {
  if (Atomics.load(flag, 0) === 2) Atomics.wait(flag, 0, 2);
  if ("page" in call) runner.addPage(call);
  else parentPort?.postMessage({ id: call.id, ...runner.run(call) });
});
