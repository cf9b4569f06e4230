import { readFileSync } from "node:fs";
import { ApiServer } from "../api-server/api-server.ts";
import { Failure } from "../model/failure.ts";
import { isLoopback } from "../model/service-url.ts";
import type { ServeStatus } from "../model/status/share-status.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { createClientAccess, readSecretHash, type ServeClient } from "./client-access.ts";
import { ServedWarehouse } from "./served-warehouse.ts";
import { createWarehouseSource } from "./warehouse-source.ts";

/** The settings of `mds-sync serve` and `run`, as they are passed to the thread. */
export interface ServeSettings {
  readonly warehouse: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly clients: readonly ServeClient[];
  readonly tls: { readonly certFile?: string | undefined; readonly keyFile?: string | undefined };
  /** A proxy in front of the server speaks TLS, under names of its own. */
  readonly behindProxy: boolean;
  readonly version: string;
}

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
      const { baseUrl: address, requests, failures, dropped, live } = server;
      const clients = [...live.sessions].map(([session, replay]) => ({
        client_id: session.caller.clientId,
        address: session.socket.remoteAddress ?? "",
        connected_at: new Date(session.connectedAt).toISOString(),
        subscriptions: session.subscriptionCount,
        sent: session.sent,
        is_replay: replay !== undefined,
      }));
      return { address, requests, failures, messages: live.sent, dropped, clients };
    },
    async close() {
      await server.stop();
      warehouse.close();
    },
  };
}

/**
 * Refuses unsafe settings before anything listens: without TLS the network can read a token, without clients everybody may
 * read the warehouse.
 */
async function assertServable({ host, clients, tls, behindProxy }: ServeSettings): Promise<void> {
  const refuse = (message: string, remedy: string): never => {
    throw new Failure(message, { code: "settings", remedy });
  };
  if ((tls.certFile === undefined) !== (tls.keyFile === undefined))
    refuse("serve.tls has only one of certFile and keyFile", "set both");
  for (const { secretHashFile } of clients) await readSecretHash(secretHashFile);
  if (isLoopback({ hostname: host })) return;
  if (clients.length === 0)
    refuse(
      `serve.host ${host} can be reached from elsewhere, and serve.clients is empty`,
      "add a client to serve.clients, or listen on 127.0.0.1",
    );
  if (tls.certFile === undefined && !behindProxy)
    refuse(
      `serve.host ${host} can be reached from elsewhere, and serve.tls is not set`,
      "set serve.tls.certFile and keyFile, or serve.behindProxy: true if a proxy speaks TLS",
    );
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
