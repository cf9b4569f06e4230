import { writeSync } from "node:fs";
import { Ingest } from "../../../src/ingest/thread/ingest-thread.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { commitHour } from "./backup-pages.ts";

// A daemon's ingest, hard at work: `node backup-writer.ts PATH`. Commits hour after hour until it is killed, and says so.
const ingest = await Ingest.start({ path: process.argv[2] ?? "", clock: systemClock, log: silentLog });
for (let hour = 0; ; hour++) {
  await commitHour(ingest, hour);
  writeSync(1, `hour ${hour}\n`);
}
