import { parentPort, workerData } from "node:worker_threads";
import { sendFailure } from "../../model/failure.ts";
import { afterBacklog } from "../../runtime/loop.ts";
import { type Call, closing, memoryOf, type Reply } from "./messages.ts";
import { IngestDesk } from "./operations.ts";

/** A WAL of so many pages is worth the two waits for the disk that moving it costs. */
const LONG_WAL = 2_000;

// The thread's whole life: take a call, carry it out, answer, tidy up. Synchronous, so that calls cannot overlap.
const port = parentPort;
if (port === null) throw new Error("ingest-worker runs as a worker thread only");
const desk = new IngestDesk();
const stopFlag = workerData as Int32Array;

port.on("message", (call: Call) => {
  let reply: Reply;
  try {
    if (Atomics.load(stopFlag, 0) === 1 && call.operation !== "close") throw closing();
    reply = { id: call.id, ...desk.carryOut(call) };
    port.postMessage(reply);
  } catch (error) {
    reply = { id: call.id, failure: sendFailure(error, "ingest_bug"), bodies: call.bodies };
    port.postMessage(reply, memoryOf(call.bodies));
    return;
  }
  if (reply.hasCommitted) tidyUpAfter(call);
});

/** Live batches that are waiting are part of the same burst: all of it goes to disk first. */
function tidyUpAfter({ operation }: Call): void {
  const tidyUp = () => desk.tidyUp(LONG_WAL);
  if (operation === "commitLive") afterBacklog(tidyUp);
  else tidyUp();
}
