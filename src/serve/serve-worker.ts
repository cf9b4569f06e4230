import { systemClock } from "../runtime/clock.ts";
import { Channel } from "../runtime/thread.ts";
import { startServeServer } from "./serve-server.ts";
import type { ServeCalls, ServeNotices } from "./serve-thread.ts";

const STATUS_INTERVAL_MS = 1_000;

const host = new Channel<ServeNotices, ServeCalls>({
  bugCode: "serve_bug",
  handlers: {
    async listen(settings, answer) {
      const server = await startServeServer({ ...settings, clock: systemClock, log: host.log });
      answer({ baseUrl: server.baseUrl, wsUrl: server.wsUrl });
      const report = () => {
        host.send("status", server.status);
        systemClock.after(STATUS_INTERVAL_MS, report);
      };
      report();
    },
  },
});
