import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** Receives a daemon's heartbeats, and answers them with `answer.status`. */
export async function startHeartbeatServer() {
  const received: string[] = [];
  const answer = { status: 200 };
  const server = createServer((request, response) => {
    received.push(`${request.method} ${request.url}`);
    response.writeHead(answer.status).end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, answer, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
