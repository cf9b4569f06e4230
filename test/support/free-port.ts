import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Connections to it are refused: nobody listens there. */
export const UNUSED_PORT = 1;

/** Below the ports that the system gives to others: none of them takes it while its server is stopped. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_240, 32_768);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}
