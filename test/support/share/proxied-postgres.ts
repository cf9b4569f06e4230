import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { findFreePort } from "../free-port.ts";
import { TestPostgres } from "../postgres-server.ts";

/** The server of the run behind a proxy. While that is stopped, PostgreSQL is down for its clients. */
export class ProxiedPostgres extends TestPostgres {
  readonly #target: TestPostgres;
  readonly #sockets = new Set<Socket>();
  #proxy: Server | undefined;

  private constructor(target: TestPostgres) {
    super();
    this.#target = target;
  }

  static async start(target: TestPostgres): Promise<ProxiedPostgres> {
    const proxied = new ProxiedPostgres(target);
    proxied.port = await findFreePort();
    await proxied.start();
    onTestFinished(() => proxied.stop());
    return proxied;
  }

  async start(): Promise<void> {
    this.#proxy = createServer((client) => {
      const server = connect(this.#target.port, "127.0.0.1");
      client.pipe(server).pipe(client);
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          this.#sockets.delete(socket);
          client.destroy();
          server.destroy();
        });
      }
    }).listen(this.port, "127.0.0.1");
    await once(this.#proxy, "listening");
  }

  async stop(): Promise<void> {
    if (!this.#proxy?.listening) return;
    const closed = once(this.#proxy, "close");
    this.#proxy.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
