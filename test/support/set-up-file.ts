import { Worker } from "node:worker_threads";
import { afterAll, afterEach, beforeAll, expect, vi } from "vitest";
import { readPresent } from "./present.ts";

/* Runs before each test file. Files share a process: what one changes in it must be as before when it ends. */

await readPresent();

const watchedEvents = ["uncaughtException", "uncaughtExceptionMonitor", "unhandledRejection", "warning"];
const describeProcess = () => ({
  folder: process.cwd(),
  environment: { ...process.env },
  listeners: watchedEvents.map((event) => [event, process.listenerCount(event)]),
  Worker,
  fetch,
});

let before: ReturnType<typeof describeProcess>;
beforeAll(() => {
  before = describeProcess();
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});
afterAll(() => {
  expect(describeProcess(), "this test file changed its process").toEqual(before);
});
