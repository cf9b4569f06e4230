import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { listen } from "../listen.ts";

export type Json = Record<string, unknown>;

/** One connection, seen from the server. */
export class ServerConnection {
  readonly token: string | null;
  readonly received: Json[] = [];
  isClosed = false;
  readonly socket: WebSocket;

  constructor(socket: WebSocket, url: URL) {
    this.socket = socket;
    this.token = url.searchParams.get("access_token");
    socket.on("error", () => {});
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  sendEvent(event: string, fields: Json = {}): void {
    this.socket.send(JSON.stringify({ event, ...fields }));
  }

  receivedEvents(event: string): Json[] {
    return this.received.filter((message) => message.event === event);
  }
}

/** How a test makes the server misbehave. */
export interface ServerBehaviour {
  /** Rejects the upgrade with this status and these headers. */
  rejectUpgrade?: (upgrades: number) => { status: number; headers?: Record<string, string> } | undefined;
  /** Whether the upgrade gets no answer. */
  stallsUpgrade?: (upgrades: number) => boolean;
  greet?: (connection: ServerConnection) => void;
  /** Returns true to suppress the default answer. */
  handleMessage?: (connection: ServerConnection, message: Json) => boolean;
}

/** A real websocket server on a free port that behaves correctly by default. */
export class WebSocketTestServer {
  readonly connections: ServerConnection[] = [];
  readonly behaviour: ServerBehaviour;
  upgrades = 0;
  readonly #http: Server;
  #port = 0;
  readonly #sockets = new WebSocketServer({ noServer: true });

  private constructor(behaviour: ServerBehaviour) {
    this.behaviour = behaviour;
    this.#http = createServer((_, response) => response.writeHead(426).end());
    this.#http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  static async start(behaviour: ServerBehaviour = {}): Promise<WebSocketTestServer> {
    const server = new WebSocketTestServer(behaviour);
    server.#port = await listen(server.#http);
    return server;
  }

  get url(): string {
    return `ws://127.0.0.1:${this.#port}/feed`;
  }

  get lastConnection(): ServerConnection {
    const last = this.connections.at(-1);
    if (!last) throw new Error("no client has connected yet");
    return last;
  }

  async stop(): Promise<void> {
    for (const { socket } of this.connections) socket.terminate();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.upgrades++;
    if (this.behaviour.stallsUpgrade?.(this.upgrades)) {
      socket.on("error", () => {}).on("end", () => socket.destroy());
      socket.resume();
      return;
    }
    const rejection = this.behaviour.rejectUpgrade?.(this.upgrades);
    if (rejection) {
      const headers = Object.entries(rejection.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${rejection.status} No\r\n${headers.join("")}Content-Length: 0\r\n\r\n`);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const connection = new ServerConnection(webSocket, new URL(request.url ?? "", "ws://localhost"));
      this.connections.push(connection);
      webSocket.on("message", (data) => {
        const message = JSON.parse(data.toString()) as Json;
        connection.received.push(message);
        if (!this.behaviour.handleMessage?.(connection, message)) sendDefaultAnswer(connection, message);
      });
      if (this.behaviour.greet) this.behaviour.greet(connection);
      else connection.sendEvent("CONNECTED", { timestamp: "2026-03-01T12:00:00.000Z" });
    });
  }
}

export function sendDefaultAnswer(connection: ServerConnection, { event, requestId, ...fields }: Json): void {
  const timestamp = "2026-03-01T12:00:00.000Z";
  if (event === "PING") connection.sendEvent("PONG", { requestId });
  if (event === "SUBSCRIBE_INDEX_TICKER")
    connection.sendEvent("SUBSCRIBED_INDEX_TICKER", { indexType: fields.indexType, requestId, timestamp });
  if (event === "SUBSCRIBE_EXCHANGE_TICKER")
    connection.sendEvent("SUBSCRIBED_EXCHANGE_TICKER", { ...fields, timestamp });
}
