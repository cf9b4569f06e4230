import { workerData } from "node:worker_threads";
import type { IngestWorkerData } from "./messages.ts";
import { serveCalls } from "./serve-calls.ts";

// The entry of the ingest thread.
serveCalls(workerData as IngestWorkerData);
