import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";

export type Json = Record<string, unknown>;

/** One connection, seen from the server. */
export class Peer {
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

  say(event: string, fields: Json = {}): void {
    this.socket.send(JSON.stringify({ event, ...fields }));
  }

  /** What it was asked, by event. */
  asked(event: string): Json[] {
    return this.received.filter((message) => message.event === event);
  }
}

/** What a test changes about an otherwise well-behaved service. */
export interface Manners {
  /** Refuses the upgrade with this status and these headers. */
  refuse?: (upgrades: number) => { status: number; headers?: Record<string, string> } | undefined;
  greet?: (peer: Peer) => void;
  /** Answers a message; true when the usual answer is not wanted. */
  answer?: (peer: Peer, message: Json) => boolean;
}

/** A real websocket server on a free port, well-mannered unless told otherwise. */
export class FeedServer {
  readonly peers: Peer[] = [];
  readonly manners: Manners;
  upgrades = 0;
  readonly #http: Server;
  readonly #sockets = new WebSocketServer({ noServer: true });

  private constructor(manners: Manners) {
    this.manners = manners;
    this.#http = createServer((_, response) => response.writeHead(426).end());
    this.#http.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
  }

  static async start(manners: Manners = {}): Promise<FeedServer> {
    const server = new FeedServer(manners);
    await new Promise<void>((resolve) => server.#http.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#http.address() as AddressInfo).port}/feed`;
  }

  /** The connection that came last. */
  get peer(): Peer {
    const last = this.peers.at(-1);
    if (!last) throw new Error("nobody has connected yet");
    return last;
  }

  async stop(): Promise<void> {
    for (const { socket } of this.peers) socket.terminate();
    this.#http.closeAllConnections();
    await new Promise((resolve) => this.#http.close(resolve));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.upgrades++;
    const refusal = this.manners.refuse?.(this.upgrades);
    if (refusal) {
      const headers = Object.entries(refusal.headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${refusal.status} No\r\n${headers.join("")}Content-Length: 0\r\n\r\n`);
      return;
    }
    this.#sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const peer = new Peer(webSocket, new URL(request.url ?? "", "ws://localhost"));
      this.peers.push(peer);
      webSocket.on("message", (data) => {
        const message = JSON.parse(data.toString()) as Json;
        peer.received.push(message);
        if (!this.manners.answer?.(peer, message)) answer(peer, message);
      });
      if (this.manners.greet) this.manners.greet(peer);
      else peer.say("CONNECTED", { timestamp: "2026-03-01T12:00:00.000Z" });
    });
  }
}

export function answer(peer: Peer, { event, requestId, ...fields }: Json): void {
  const timestamp = "2026-03-01T12:00:00.000Z";
  if (event === "PING") peer.say("PONG", { requestId });
  if (event === "SUBSCRIBE_INDEX_TICKER")
    peer.say("SUBSCRIBED_INDEX_TICKER", { indexType: fields.indexType, requestId, timestamp });
  if (event === "SUBSCRIBE_EXCHANGE_TICKER") peer.say("SUBSCRIBED_EXCHANGE_TICKER", { ...fields, timestamp });
}
