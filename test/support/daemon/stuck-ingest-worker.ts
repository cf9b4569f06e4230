import { workerData } from "node:worker_threads";
import type { IngestCalls, IngestNotices, IngestWorkerData } from "../../../src/ingest/thread/messages.ts";
import { OperationRunner } from "../../../src/ingest/thread/operations.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { Channel } from "../../../src/runtime/thread.ts";

// Works like the ingest thread until the shared flag is 2; then it hangs on the next call.
const { stopFlag, pages } = workerData as IngestWorkerData;
const runner = new OperationRunner(pages, { log: silentLog, onUpgrade: () => {} });
const waitWhileStuck = () => Atomics.wait(stopFlag, 0, 2);
new Channel<IngestNotices, IngestCalls>({
  bugCode: "ingest_bug",
  handlers: {
    run(call, answer) {
      waitWhileStuck();
      answer(runner.run(call));
    },
  },
});
