import { constants, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { systemClock } from "../runtime/clock.ts";
import { PageQueries, type PageQuery, type PageQueryReply } from "./page-queries.ts";

const port = parentPort;
if (port === null) throw new Error("reader-worker runs as a worker thread only");
lowerPriority();
const queries = new PageQueries(systemClock);
port.on("message", (query: PageQuery) => {
  let reply: PageQueryReply;
  const transferred: ArrayBuffer[] = [];
  try {
    const value = queries.run(query);
    reply = { id: query.id, value };
    if (query.asBytes && value !== undefined) {
      const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
      transferred.push(bytes.buffer);
      reply = { id: query.id, value: bytes };
    }
  } catch (error) {
    reply = { id: query.id, failure: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(reply, transferred);
});

/** On Linux this affects only the calling thread: when the CPU is busy, the dashboard waits for ingest. */
function lowerPriority(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A hardened unit forbids the call. There, caching and throttling alone limit the CPU time of this thread.
  }
}
