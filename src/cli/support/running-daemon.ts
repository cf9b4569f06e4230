import { resolve } from "node:path";
import type { ServiceCondition } from "../../model/service-condition.ts";
import type { ShareStatus } from "../../model/share-status.ts";
import type { Clock } from "../../runtime/clock.ts";

interface AskDaemonOptions {
  readonly clock: Clock;
  readonly http: { readonly host: string; readonly port: number };
  readonly warehousePath: string;
}

/** A daemon reads its warehouse for this answer; anything slower is not worth waiting for. */
const DAEMON_TIMEOUT_MS = 2_000;
const anyAddress: ReadonlySet<string> = new Set(["0.0.0.0", "::"]);

/** What only a running daemon knows. */
export interface RunningDaemon {
  /** How the service bears its requests; null if no daemon runs at the configured port. */
  readonly service: ServiceCondition | null;
  /** How forwarding goes; null without a daemon or a shared warehouse. */
  readonly shared: ShareStatus | null;
}

const noDaemon: RunningDaemon = { service: null, shared: null };

/** Asks the daemon of this warehouse. */
export async function askRunningDaemon(options: AskDaemonOptions): Promise<RunningDaemon> {
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
      service?: ServiceCondition;
      shared?: ShareStatus | null;
    };
    // Another daemon may have taken the port.
    const isSameWarehouse = resolve(status.warehouse ?? "") === resolve(warehousePath);
    return isSameWarehouse ? { service: status.service ?? null, shared: status.shared ?? null } : noDaemon;
  } catch {
    return noDaemon;
  } finally {
    await transport.close();
  }
}
