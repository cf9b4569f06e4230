import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocketServer } from "ws";
import type { Clock } from "../../runtime/clock.ts";
import { waitWhileConnected } from "../faults/delivery-faults.ts";
import type { FaultScript } from "../faults/script.ts";
import {
  applyConnectionFault,
  findFault,
  liveFaults,
  rejectUpgrade,
  retryAfterHeaders,
  sendAsFaultSays,
} from "./faults.ts";
import { PongLog } from "./pong-log.ts";
import { LiveProtocol } from "./protocol.ts";
import { LiveSession } from "./session.ts";
import type { SubscriptionDirectory } from "./subscriptions.ts";
import { type LiveMessageSource, LiveTicker } from "./ticker.ts";

interface LiveServerOptions {
  clock: Clock;
  source: LiveMessageSource;
  directory: SubscriptionDirectory;
  /** The path at which clients connect. */
  path: string;
  /** The scopes of a websocket token; undefined when the token is invalid. */
  scopesOf(token: string): ReadonlySet<string> | undefined;
  /** Logs every attempt to connect; the path excludes the token. */
  logAttempt(path: string, status: number): void;
  /** Interval of JSON PINGs. A client that has not replied by the next PING is disconnected. 0: no PINGs. */
  pingSeconds: number;
}

type RejectUpgrade = (status: number, message: string, headers?: Record<string, string>) => void;

/** The websocket server: sends live ticks to subscribers. */
export class LiveServer {
  readonly pongs = new PongLog();
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
  #faults: FaultScript | undefined;

  constructor(options: LiveServerOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#ticker = new LiveTicker(options.clock, options.source, this.#sessions);
    this.#protocol = new LiveProtocol(options.directory, this.#ticker, this.pongs);
  }

  /** Undefined: no faults. Faults that already changed a connection stay in effect. */
  setFaults(script: FaultScript | undefined): void {
    this.#faults = script;
    this.#ticker.faults = script;
    this.#protocol.faults = script;
  }

  /** Handles an upgrade request. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // A client may disconnect in the middle of a frame.
    socket.on("error", () => {});
    const url = new URL(request.url ?? "/", "http://localhost");
    const reject = (status: number, message: string, headers?: Record<string, string>) => {
      this.#options.logAttempt(url.pathname, status);
      rejectUpgrade(socket, status, message, this.#clock.now(), headers);
    };
    if (url.pathname !== this.#options.path) reject(404, "No websocket at this path");
    else if (!this.#applyUpgradeFault(socket, url.pathname, reject))
      this.#authenticate(request, socket, head, url, reject);
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

  /** Returns true when a fault has handled the upgrade. */
  #applyUpgradeFault(socket: Socket, path: string, reject: RejectUpgrade): boolean {
    const fault = liveFaults(this.#faults, "upgrade").at(-1);
    if (fault?.line.definition.name === "upgrade-stall") {
      this.#options.logAttempt(path, 0);
      // No other code reads this socket: read it here, to notice when the client disconnects.
      socket.on("end", () => socket.destroy()).resume();
      void waitWhileConnected(this.#clock, socket, Number.POSITIVE_INFINITY);
    } else if (fault) {
      const headers = retryAfterHeaders(fault, this.#clock.now());
      reject(fault.line.numberOf("code"), "simulated failure", headers);
    }
    return fault !== undefined;
  }

  #authenticate(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    url: URL,
    reject: RejectUpgrade,
  ): void {
    const scopes = this.#options.scopesOf(url.searchParams.get("access_token") ?? "");
    if (!scopes) reject(401, "No valid OAuth 2.0 token provided");
    else
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        this.#options.logAttempt(url.pathname, 101);
        this.#accept(new LiveSession(webSocket, socket, scopes, this.#clock));
      });
  }

  #accept(session: LiveSession): void {
    this.#sessions.add(session);
    session.onClose(() => this.#sessions.delete(session));
    session.onMessage((text) => this.#protocol.receive(session, text));
    const faults = liveFaults(this.#faults, "accept");
    sendAsFaultSays(session, findFault(faults, "connected"), () => session.sendEvent("CONNECTED"));
    this.#schedulePings(session);
    for (const fault of faults) applyConnectionFault(fault, session);
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
      session.ping(requestId % 2 === 1 ? requestId : undefined);
    });
  }
}
