import { constants, setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { systemClock } from "../runtime/clock.ts";
import { type Answer, type Question, ReadingsDesk } from "./page-queries.ts";

const port = parentPort;
if (port === null) throw new Error("reader-worker runs as a worker thread only");
giveWay();
const desk = new ReadingsDesk(systemClock);
port.on("message", (question: Question) => {
  let answer: Answer;
  const moved: ArrayBuffer[] = [];
  try {
    const value = desk.answer(question);
    answer = { id: question.id, value };
    if (question.inBytes && value !== undefined) {
      const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
      moved.push(bytes.buffer);
      answer = { id: question.id, value: bytes };
    }
  } catch (error) {
    answer = { id: question.id, failure: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(answer, moved);
});

/** On Linux this is about the calling thread alone: where processors are short, looking on waits for ingest. */
function giveWay(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A hardened unit refuses the call. Kept answers and turns bound what we take of a processor there, too.
  }
}
