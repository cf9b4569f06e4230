import { parentPort, workerData } from "node:worker_threads";
import { serialiseFailure } from "../model/failure.ts";
import { systemClock } from "../runtime/clock.ts";
import type { Log, LogEntry } from "../runtime/log.ts";
import { startServeServer } from "./serve-server.ts";
import type { ServeSettings } from "./serve-settings.ts";
import type { ServeThreadMessage } from "./serve-thread.ts";

const port = parentPort;
if (port === null) throw new Error("serve-worker runs as a worker thread only");

const STATUS_INTERVAL_MS = 1_000;

const send = (message: ServeThreadMessage) => port.postMessage(message);
const forward =
  (level: LogEntry["level"]) =>
  (fields: LogEntry["fields"], message: string): void =>
    send({ kind: "log", entry: { level, fields, message } });
const log: Log = {
  debug: forward("debug"),
  info: forward("info"),
  warn: forward("warn"),
  error: forward("error"),
};

try {
  const server = await startServeServer({ ...(workerData as ServeSettings), clock: systemClock, log });
  send({ kind: "listening", baseUrl: server.baseUrl, wsUrl: server.wsUrl });
  const report = () => {
    send({ kind: "status", status: server.status });
    systemClock.after(STATUS_INTERVAL_MS, report);
  };
  report();
} catch (error) {
  send({ kind: "failed", failure: serialiseFailure(error, "serve_bug") });
}
