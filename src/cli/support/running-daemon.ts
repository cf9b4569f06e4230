import { resolve } from "node:path";
import type { ServiceCondition } from "../../model/status/service-condition.ts";
import type { ShareStatus } from "../../model/status/share-status.ts";
import type { Clock } from "../../runtime/clock.ts";

interface AskDaemonOptions {
  readonly clock: Clock;
  readonly http: { readonly host: string; readonly port: number };
  readonly warehousePath: string;
}

/** A daemon that needs longer to read its warehouse counts as absent. */
const DAEMON_TIMEOUT_MS = 2_000;
const anyAddress: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** What a running daemon adds to the status of its warehouse. */
export interface RunningDaemonStatus {
  /** How the service bears the requests; null: no daemon runs. */
  readonly service: ServiceCondition | null;
  /** Why the daemon is unhealthy, as `/healthz` says it; null: it is healthy, or none runs. */
  readonly problem: string | null;
  /** How forwarding goes; null without a daemon or a shared warehouse. */
  readonly shared: ShareStatus | null;
}

const noDaemon: RunningDaemonStatus = { service: null, problem: null, shared: null };

/** Requests the state of the daemon of this warehouse, if one runs at the configured port. */
export async function askRunningDaemon(options: AskDaemonOptions): Promise<RunningDaemonStatus> {
  const { clock, http, warehousePath } = options;
  if (http.port === 0) return noDaemon;
  // Loaded lazily, because `status` is often run in a loop.
  const { createTransport } = await import("../../service/http/transport.ts");
  const { ServerClock } = await import("../../service/http/server-clock.ts");
  const { decodeBody } = await import("../../model/response-body.ts");
  const host = anyAddress.has(http.host) ? "127.0.0.1" : http.host;
  const origin = `http://${host.includes(":") ? `[${host}]` : host}:${http.port}`;
  const transport = createTransport({ clock, server: new ServerClock(clock) });
  try {
    const request = { method: "GET", origin, path: "/api/status", headers: {} } as const;
    const response = await transport.send({ ...request, timeoutMs: DAEMON_TIMEOUT_MS });
    if (response.status !== 200) return noDaemon;
    const status = JSON.parse(new TextDecoder().decode(decodeBody(response.body))) as {
      warehouse?: string;
    } & Partial<RunningDaemonStatus>;
    // Another daemon may have taken the port.
    const isSameWarehouse = resolve(status.warehouse ?? "") === resolve(warehousePath);
    if (!isSameWarehouse) return noDaemon;
    // A daemon of an older version does not report all of it.
    const service = status.service
      ? { ...{ throttled: false, recent_failures: {}, limit: null, limit_since: null }, ...status.service }
      : null;
    return { service, problem: status.problem ?? null, shared: status.shared ?? null };
  } catch {
    return noDaemon;
  } finally {
    await transport.close();
  }
}
