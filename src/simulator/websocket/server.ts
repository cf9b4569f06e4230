import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { Clock } from "../../runtime/clock.ts";
import type { Interceptor } from "../interceptor.ts";
import { errorBody } from "../rest/errors.ts";
import type { World } from "../world.ts";
import { LiveProtocol, parseMessage } from "./protocol.ts";
import { LiveSession } from "./session.ts";
import { SubscriptionDirectory } from "./subscriptions.ts";
import { LiveTicker } from "./ticker.ts";

interface LiveServerOptions {
  clock: Clock;
  world: World;
  interceptor: Interceptor;
  /** The path at which clients connect. */
  path: string;
  /** The scopes of a websocket token; undefined when the token is invalid. */
  scopesOf(token: string): ReadonlySet<string> | undefined;
  /** Interval of JSON PINGs. A client that has not replied by the next PING is disconnected. 0: no PINGs. */
  pingSeconds: number;
}

/** The websocket server: sends live ticks to subscribers. */
export class LiveServer {
  readonly #options: LiveServerOptions;
  readonly #clock: Clock;
  readonly #sessions = new Set<LiveSession>();
  readonly #sockets = new Set<Socket>();
  readonly #ticker: LiveTicker;
  readonly #protocol: LiveProtocol;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: 2 ** 20,
  });

  constructor(options: LiveServerOptions) {
    const { clock, world } = options;
    this.#options = options;
    this.#clock = clock;
    this.#ticker = new LiveTicker(clock, world, this.#sessions);
    this.#protocol = new LiveProtocol(new SubscriptionDirectory(world.universe, world.table), this.#ticker);
  }

  /** Handles an upgrade request. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // A client may disconnect in the middle of a frame.
    socket.on("error", () => {});
    const { interceptor } = this.#options;
    const proceed = () => this.#answerUpgrade(request, socket, head);
    if (interceptor.upgrade) interceptor.upgrade(request, socket, proceed);
    else proceed();
  }

  /** Closes all connections, as when the port closes. */
  dropAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.#ticker.stop();
    this.dropAll();
    await new Promise<void>((resolve) => this.#webSockets.close(() => resolve()));
  }

  /** Returns the status. */
  #answerUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): number {
    const url = new URL(request.url ?? "/", "http://localhost");
    const reject = (status: number, message: string) => {
      rejectUpgrade(socket, status, message, this.#clock.now());
      return status;
    };
    if (url.pathname !== this.#options.path) return reject(404, "No websocket at this path");
    const scopes = this.#options.scopesOf(url.searchParams.get("access_token") ?? "");
    if (!scopes) return reject(401, "No valid OAuth 2.0 token provided");
    // `ws` rejects an invalid request itself, and does not call back.
    let status = 400;
    this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
      status = 101;
      const { interceptor } = this.#options;
      this.#accept(
        new LiveSession(webSocket, socket, scopes, this.#clock, interceptor.send?.bind(interceptor)),
      );
    });
    return status;
  }

  #accept(session: LiveSession): void {
    const { interceptor } = this.#options;
    this.#sessions.add(session);
    session.onClose(() => this.#sessions.delete(session));
    session.onMessage((text) => {
      const message = parseMessage(text);
      const proceed = () => this.#protocol.receive(session, message);
      if (message && interceptor.receive) interceptor.receive(session, message, proceed);
      else proceed();
    });
    this.#schedulePings(session);
    session.sendEvent("CONNECTED");
  }

  #schedulePings(session: LiveSession): void {
    const { pingSeconds } = this.#options;
    if (pingSeconds <= 0) return;
    let requestId = 0;
    session.every(pingSeconds * 1000, () => {
      if (session.awaitsPong) {
        session.close(1008, "PING was not answered");
        return;
      }
      session.awaitsPong = true;
      // Every other PING carries a requestId: it is optional, and clients must handle both.
      requestId++;
      session.sendEvent("PING", requestId % 2 === 1 ? { requestId } : {});
    });
  }
}

/** Rejects the upgrade with an HTTP response. */
export function rejectUpgrade(
  socket: Duplex,
  status: number,
  message: string,
  nowMs: number,
  headers: Record<string, string> = {},
): void {
  const body = errorBody(status, message, new Date(nowMs).toISOString());
  const lines = Object.entries({
    date: new Date(nowMs).toUTCString(),
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n${body}`);
}
