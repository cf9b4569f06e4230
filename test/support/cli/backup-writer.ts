import { writeSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { IngestThread } from "../../../src/ingest/thread/ingest-thread.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { commitHour } from "./backup-pages.ts";

// `node backup-writer.ts PATH` commits hour after hour until it is killed, and prints each hour.
const ingest = await new IngestThread({
  path: process.argv[2] ?? "",
  clock: systemClock,
  log: silentLog,
}).start();
for (let hour = 0; ; hour++) {
  await commitHour(ingest, hour);
  writeSync(1, `hour ${hour}\n`);
  // It need not occupy a core to commit often while a backup runs.
  await setTimeout(5);
}
