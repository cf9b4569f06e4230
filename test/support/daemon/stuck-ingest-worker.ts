import { workerData } from "node:worker_threads";
import type { IngestCalls, IngestNotices } from "../../../src/ingest/thread/messages.ts";
import { OperationRunner } from "../../../src/ingest/thread/operations.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { Channel } from "../../../src/runtime/thread-channel.ts";

// Works like the ingest thread until the shared flag is 2; then it hangs on the next call.
const runner = new OperationRunner({ log: silentLog, onUpgrade: () => {} });
const flag = workerData as Int32Array;
const waitWhileStuck = () => Atomics.wait(flag, 0, 2);
new Channel<IngestNotices, IngestCalls>({
  bugCode: "ingest_bug",
  handlers: {
    run(call, answer) {
      waitWhileStuck();
      answer(runner.run(call));
    },
  },
});
