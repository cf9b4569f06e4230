// Loaded before the daemon and into each of its threads (`node --import`): appends one line of JSON per second to the file
// MDS_SOAK_VITALS. Plain JavaScript: loading TypeScript would take tens of megabytes in every thread.
import { appendFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { getHeapStatistics, writeHeapSnapshot } from "node:v8";
import { isMainThread, threadId } from "node:worker_threads";

const { MDS_SOAK_VITALS: file, MDS_SOAK_SNAPSHOTS: snapshots } = process.env;
const HEAP_INTERVAL_SECONDS = 60;
/** Seconds after the start. */
const SNAPSHOT_TIMES = [30 * 60, 110 * 60];

/** What is alive in this thread: without the collection it would be mostly garbage. */
function measureHeap() {
  globalThis.gc?.();
  const { used_heap_size: used, total_heap_size: reserved, external_memory: external } = getHeapStatistics();
  return { thread: threadId, used, reserved, external };
}

if (file !== undefined) {
  const delay = isMainThread ? monitorEventLoopDelay({ resolution: 5 }) : undefined;
  delay?.enable();
  let second = 0;
  setInterval(() => {
    second++;
    if (delay !== undefined) {
      const vitals = { rss: process.memoryUsage.rss(), stallMs: delay.max / 1e6 };
      delay.reset();
      appendFileSync(file, `${JSON.stringify(vitals)}\n`);
    }
    if (snapshots === undefined) return;
    if (second % HEAP_INTERVAL_SECONDS === 0)
      appendFileSync(
        `${snapshots}/heaps`,
        `${JSON.stringify({ second, rss: process.memoryUsage.rss(), ...measureHeap() })}\n`,
      );
    if (SNAPSHOT_TIMES.includes(second)) writeHeapSnapshot(`${snapshots}/${threadId}-${second}.heapsnapshot`);
  }, 1_000).unref();
}
