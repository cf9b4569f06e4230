import { readFileSync } from "node:fs";
import { ApiServer } from "../api-server/api-server.ts";
import { Failure } from "../model/failure.ts";
import type { ServeStatus } from "../model/status/share-status.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { createClientAccess } from "./client-access.ts";
import { assertServable, type ServeSettings } from "./serve-settings.ts";
import { ServedWarehouse } from "./served-warehouse.ts";
import { createWarehouseSource } from "./warehouse-source.ts";

interface ServeServerOptions extends ServeSettings {
  readonly clock: Clock;
  readonly log: Log;
}

export interface ServeServer extends Pick<ApiServer, "baseUrl" | "wsUrl" | "close"> {
  readonly status: ServeStatus;
}

/** Serves the warehouse with the service's own interface. It only reads. */
export async function startServeServer(options: ServeServerOptions): Promise<ServeServer> {
  await assertServable(options);
  const { clock, log, host, port, behindProxy, version } = options;
  const { certFile, keyFile } = options.tls;
  const isTls = certFile !== undefined && keyFile !== undefined;
  const warehouse = new ServedWarehouse(options.warehouse, clock);
  const server = new ApiServer({
    ...{ clock, log, host, port, behindProxy, name: "serve", portSetting: "serve.port (MDS_SERVE_PORT)" },
    source: createWarehouseSource({ warehouse, clock, log }),
    access: createClientAccess(options.clients),
    tls: isTls ? { cert: readPem(certFile), key: readPem(keyFile) } : undefined,
    headers: { server: `mds-sync/${version}` },
  });
  await server.listen();
  return {
    baseUrl: server.baseUrl,
    wsUrl: server.wsUrl,
    get status() {
      return readStatus(server);
    },
    async close() {
      await server.stop();
      warehouse.close();
    },
  };
}

function readStatus({ baseUrl, requests, failures, dropped, live }: ApiServer): ServeStatus {
  const clients = [...live.sessions].map(([session, replay]) => ({
    client_id: session.caller.clientId,
    address: session.socket.remoteAddress ?? "",
    connected_at: new Date(session.connectedAt).toISOString(),
    subscriptions: session.subscriptionCount,
    sent: session.sent,
    is_replay: replay !== undefined,
  }));
  return { address: baseUrl, requests, failures, messages: live.sent, dropped, clients };
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new Failure(`${file} cannot be read`, {
      code: "settings",
      remedy: "name readable files in serve.tls.certFile and serve.tls.keyFile",
    });
  }
}
