import { createServer } from "node:http";
import { onTestFinished } from "vitest";
import { listen } from "../listen.ts";

/** Receives a daemon's heartbeats, and answers them with `answer.status`. */
export async function startHeartbeatServer() {
  const received: string[] = [];
  const answer = { status: 200 };
  const server = createServer((request, response) => {
    received.push(`${request.method} ${request.url}`);
    response.writeHead(answer.status).end();
  });
  const port = await listen(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { received, answer, origin: `http://127.0.0.1:${port}` };
}
