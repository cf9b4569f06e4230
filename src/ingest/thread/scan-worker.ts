import { parentPort } from "node:worker_threads";
import { serveScans } from "./serve-scans.ts";

// The entry of the scan thread.
if (parentPort === null) throw new Error("scan-worker runs as a worker thread only");
serveScans(parentPort);
