import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { listen } from "../listen.ts";

const READY = "Z".charCodeAt(0);
const TERMINATE = "X".charCodeAt(0);
const IDLE = "I".charCodeAt(0);
/** AuthenticationOk and ReadyForQuery: what a client reads that shares a connection. */
const WELCOME = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0, READY, 0, 0, 0, 5, IDLE]);

/**
 * A pool in transaction mode with one connection, which the first client logs in. Whoever speaks has the connection until its
 * transaction ends.
 */
export async function startTransactionPool(targetPort: number): Promise<number> {
  let target: Socket | undefined;
  let owner: Socket | undefined;
  let isLoggedIn = false;
  let unread = Buffer.alloc(0);
  const waiting: { readonly client: Socket; readonly bytes: Buffer }[] = [];
  const next = () => {
    const first = owner ? waiting.findIndex(({ client }) => client === owner) : 0;
    const [turn] = first < 0 ? [] : waiting.splice(first, 1);
    if (!turn) return;
    owner = turn.client;
    target?.write(turn.bytes);
  };
  const receive = (chunk: Buffer) => {
    const client = owner;
    client?.write(chunk);
    unread = Buffer.concat([unread, chunk]);
    while (unread.length >= 5 && unread.length > unread.readInt32BE(1)) {
      if (unread[0] === READY) {
        isLoggedIn = true;
        if (unread[5] === IDLE) owner = undefined;
      }
      unread = unread.subarray(1 + unread.readInt32BE(1));
    }
    next();
  };
  const server = createServer((client) => {
    let isGreeted = false;
    client.on("error", () => {});
    client.on("data", (bytes: Buffer) => {
      if (!target) {
        target = connect(targetPort, "127.0.0.1")
          .on("data", receive)
          .on("error", () => {});
        onTestFinished(() => void target?.destroy());
        owner = client;
        isGreeted = true;
      } else if (!isGreeted) {
        isGreeted = true;
        client.write(WELCOME);
        return;
      }
      if (isLoggedIn && bytes[0] === TERMINATE) return void client.end();
      if (!isLoggedIn) return void target.write(bytes);
      waiting.push({ client, bytes });
      next();
    });
  });
  const port = await listen(server);
  onTestFinished(() => void server.close());
  return port;
}
