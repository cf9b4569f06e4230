// Loaded before the daemon (`node --import`): appends one line of JSON per second to the file MDS_SOAK_VITALS. Plain
// JavaScript: loading TypeScript would take tens of megabytes in every thread.
import { appendFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const file = process.env.MDS_SOAK_VITALS;
if (isMainThread && file !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  setInterval(() => {
    const vitals = { rss: process.memoryUsage.rss(), stallMs: delay.max / 1e6 };
    delay.reset();
    appendFileSync(file, `${JSON.stringify(vitals)}\n`);
  }, 1_000).unref();
}
