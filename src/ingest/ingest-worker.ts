import { parentPort } from "node:worker_threads";
import { IngestDesk } from "./operations.ts";
import { type Call, memoryOf, type Reply, sendFailure } from "./thread-messages.ts";

// The thread's whole life: take a call, carry it out, answer. Synchronous, so that calls cannot overlap.
const port = parentPort;
if (port === null) throw new Error("ingest-worker runs as a worker thread only");
const desk = new IngestDesk();
port.on("message", (call: Call) => {
  let reply: Reply;
  try {
    reply = { id: call.id, value: desk.carryOut(call) };
    port.postMessage(reply);
  } catch (error) {
    reply = { id: call.id, failure: sendFailure(error), bodies: call.bodies };
    port.postMessage(reply, memoryOf(call.bodies));
  }
});
