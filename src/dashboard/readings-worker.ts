import { parentPort } from "node:worker_threads";
import { systemClock } from "../runtime/clock.ts";
import { type Answer, type Question, ReadingsDesk } from "./readings-desk.ts";

const port = parentPort;
if (port === null) throw new Error("readings-worker runs as a worker thread only");
const desk = new ReadingsDesk(systemClock);
port.on("message", (question: Question) => {
  let answer: Answer;
  try {
    answer = { id: question.id, value: desk.answer(question) };
  } catch (error) {
    answer = { id: question.id, failure: error instanceof Error ? error.message : String(error) };
  }
  port.postMessage(answer);
});
