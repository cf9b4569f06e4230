import { type MessagePort, workerData } from "node:worker_threads";
import { serveScans } from "./serve-scans.ts";

// The entry of the scan thread.
serveScans(workerData as MessagePort);
