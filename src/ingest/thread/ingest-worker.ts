import { parentPort, workerData } from "node:worker_threads";
import { serveCalls } from "./serve-calls.ts";

// The entry of the ingest thread.
if (parentPort === null) throw new Error("ingest-worker runs as a worker thread only");
serveCalls(parentPort, workerData as Int32Array);
