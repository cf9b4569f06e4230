import { parentPort, workerData } from "node:worker_threads";
import type { Call } from "../../../src/ingest/thread/messages.ts";
import { IngestDesk } from "../../../src/ingest/thread/operations.ts";

// The ingest thread, until the shared flag says 2: then it takes the next call and is never heard of again.
const desk = new IngestDesk();
const flag = workerData as Int32Array;
parentPort?.on("message", (call: Call) => {
  if (Atomics.load(flag, 0) === 2) Atomics.wait(flag, 0, 2);
  parentPort?.postMessage({ id: call.id, ...desk.carryOut(call) });
});
