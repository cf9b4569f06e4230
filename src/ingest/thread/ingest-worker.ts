import { workerData } from "node:worker_threads";
import { serveCalls } from "./serve-calls.ts";

// The entry of the ingest thread.
serveCalls(workerData as Int32Array);
