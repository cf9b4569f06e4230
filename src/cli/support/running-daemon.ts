import { resolve } from "node:path";
import type { Settings } from "../../config/option-table.ts";
import type { StatusReport } from "../../model/status/warehouse-status.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withTimeout } from "../../runtime/timeouts.ts";

/** A daemon that needs longer to read its warehouse counts as absent. */
const DAEMON_TIMEOUT_MS = 2_000;
const anyAddress: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** What a running daemon adds to the status of its warehouse; null without one. */
type RunningDaemonStatus = Required<Pick<StatusReport, "service" | "problem" | "shared">>;

const noDaemon: RunningDaemonStatus = { service: null, problem: null, shared: null };

/** Requests the state of the daemon of this warehouse, if one runs at the configured port. */
export async function askRunningDaemon(
  clock: Clock,
  http: Settings["http"],
  warehousePath: string,
): Promise<RunningDaemonStatus> {
  if (http.port === 0) return noDaemon;
  const host = anyAddress.has(http.host) ? "127.0.0.1" : http.host;
  const address = `http://${host.includes(":") ? `[${host}]` : host}:${http.port}/api/status`;
  const read = async (signal: AbortSignal) => {
    const response = await fetch(address, { signal });
    return response.ok ? ((await response.json()) as Partial<StatusReport>) : undefined;
  };
  const limits = { clock, ms: DAEMON_TIMEOUT_MS, stopping: new AbortController().signal };
  const status = await withTimeout(limits, read).catch(() => undefined);
  // Another daemon may have taken the port.
  if (!status || resolve(status.warehouse ?? "") !== resolve(warehousePath)) return noDaemon;
  // A daemon of an older version does not report all of it.
  const service = status.service
    ? { ...{ throttled: false, recent_failures: {}, limit: null, limit_since: null }, ...status.service }
    : null;
  return { service, problem: status.problem ?? null, shared: status.shared ?? null };
}
