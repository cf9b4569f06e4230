import { constants } from "node:os";
import { workerData } from "node:worker_threads";
import { systemClock } from "../../runtime/clock.ts";
import { Channel, lowerPriority } from "../../runtime/thread-channel.ts";
import { findHeldDays } from "../held-days.ts";
import { runShareLoop } from "./share-loop.ts";
import type { ShareCalls, ShareHostCalls, ShareThreadSettings } from "./share-messages.ts";

lowerPriority(constants.priority.PRIORITY_BELOW_NORMAL);
const settings = workerData as ShareThreadSettings;
const stop = new AbortController();
const common = { ...settings, clock: systemClock, signal: stop.signal };
const host = new Channel<ShareHostCalls, ShareCalls>({
  bugCode: "share_bug",
  handlers: {
    async findHeldDays({ password, request }, answer) {
      answer(await findHeldDays({ ...common, readPassword: () => password }, request));
    },
    async stop(_, answer) {
      stop.abort();
      answer(await loop);
    },
  },
});
const loop = runShareLoop({
  ...common,
  random: Math.random,
  askPassword: () => host.call("readPassword", undefined),
  report: (report) => host.send("report", report),
});
await loop;
