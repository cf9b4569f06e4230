import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { systemClock } from "../runtime/clock.ts";
import { PageQueries, type PageQuery, type PageQueryReply } from "./page-queries.ts";

/** Hardly less than ingest gets: with much less, a page waits for most of a second while ingest keeps all cores busy. */
const NICENESS = 2;

const port = parentPort;
if (port === null) throw new Error("reader-worker runs as a worker thread only");
lowerPriority();
const queries = new PageQueries(systemClock);
port.on("message", async (query: PageQuery) => {
  try {
    const value = await queries.run(query);
    if (query.asBytes && value !== undefined) {
      const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
      send({ id: query.id, value: bytes }, [bytes.buffer]);
    } else send({ id: query.id, value });
  } catch (error) {
    send({ id: query.id, failure: error instanceof Error ? error.message : String(error) });
  }
});

function send(reply: PageQueryReply, transferred: readonly ArrayBuffer[] = []): void {
  port?.postMessage(reply, transferred);
}

/** On Linux this affects only the calling thread: when the CPU is busy, ingest goes first. */
function lowerPriority(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(NICENESS);
  } catch {
    // A hardened systemd unit forbids the call; then only the cache limits the CPU time of this thread.
  }
}
