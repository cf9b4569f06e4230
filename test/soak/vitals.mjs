// Loaded before the daemon and into each of its threads (`node --import`): the main thread appends one line of JSON per second
// to the file MDS_SOAK_VITALS. Plain JavaScript: loading TypeScript would take tens of megabytes in every thread.
import { appendFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const { MDS_SOAK_VITALS: file } = process.env;

if (file !== undefined && isMainThread) {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  setInterval(() => {
    const vitals = { rss: process.memoryUsage.rss(), stallMs: delay.max / 1e6 };
    delay.reset();
    appendFileSync(file, `${JSON.stringify(vitals)}\n`);
  }, 1_000).unref();
}
