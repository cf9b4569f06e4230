import { Failure } from "../model/failure.ts";
import { isLoopback } from "../model/service-url.ts";
import type { ServeClient } from "./client-access.ts";
import { readSecretHash } from "./client-secrets.ts";

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

/**
 * Refuses unsafe settings before anything listens: without TLS the network can read a token, without clients everybody may
 * read the warehouse.
 */
export async function assertServable({ host, clients, tls, behindProxy }: ServeSettings): Promise<void> {
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
