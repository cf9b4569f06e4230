import { constants } from "node:os";
import { workerData } from "node:worker_threads";
import { systemClock } from "../../runtime/clock.ts";
import { Channel, lowerPriority } from "../../runtime/thread.ts";
import { runShareLoop } from "./share-loop.ts";
import type { ShareCalls, ShareHostCalls, ShareThreadSettings } from "./share-messages.ts";

lowerPriority(constants.priority.PRIORITY_BELOW_NORMAL);
const stop = new AbortController();
const host = new Channel<ShareHostCalls, ShareCalls>({
  bugCode: "share_bug",
  handlers: {
    async stop(_, answer) {
      stop.abort();
      answer(await loop);
    },
  },
});
const loop = runShareLoop({
  ...(workerData as ShareThreadSettings),
  clock: systemClock,
  signal: stop.signal,
  random: Math.random,
  askPassword: () => host.call("readPassword", undefined),
  report: (report) => host.send("report", report),
});
await loop;
