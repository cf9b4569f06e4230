import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { WebSocketServer } from "ws";
import type { Clock } from "../../runtime/clock.ts";
import { waitWhileConnected } from "../faults/delivery-faults.ts";
import type { FaultScript } from "../faults/script.ts";
import {
  acceptFaults,
  applyConnectionFault,
  rejectUpgrade,
  retryAfterHeaders,
  upgradeFaults,
} from "./faults.ts";
import { PongLog } from "./pong-log.ts";
import { LiveProtocol } from "./protocol.ts";
import { LiveSession } from "./session.ts";
import type { SubscriptionDirectory } from "./subscriptions.ts";
import { type LiveMessageSource, LiveTicker } from "./ticker.ts";

export interface LiveServerOptions {
  clock: Clock;
  source: LiveMessageSource;
  directory: SubscriptionDirectory;
  /** The path at which clients connect. */
  path: string;
  /** The scopes of a good token for the websocket; undefined when it is none. */
  scopesOf(token: string): ReadonlySet<string> | undefined;
  /** Told of every attempt to connect; the path comes without its token. */
  logAttempt(path: string, status: number): void;
  /** A JSON PING so often; who has not answered by the next one is cut off. 0: never. */
  pingSeconds: number;
}

type RejectUpgrade = (status: number, message: string, headers?: Record<string, string>) => void;

/** The websocket: live ticks for whoever subscribes. */
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

  /** Undefined: good days. What has befallen a connection already stays with it. */
  setFaults(script: FaultScript | undefined): void {
    this.#faults = script;
    this.#ticker.faults = script;
    this.#protocol.faults = script;
  }

  get clients(): number {
    return this.#sessions.size;
  }

  /** Sends `ticks` real records to every subscriber at once, and says how many were written; see LiveTicker.prepare. */
  publish(ticks: number, upTo?: number): number {
    return this.prepareBurst(ticks, upTo)();
  }

  /** The same in two steps, so that a benchmark does not measure how records are rendered. */
  prepareBurst(ticks: number, upTo?: number): () => number {
    return this.#ticker.prepareBurst(ticks, upTo);
  }

  /** Takes over a connection that asks for the websocket. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // A client that goes away in the middle of a frame is its own affair.
    socket.on("error", () => {});
    const url = new URL(request.url ?? "/", "http://localhost");
    const refuse = (status: number, message: string, headers?: Record<string, string>) => {
      this.#options.logAttempt(url.pathname, status);
      rejectUpgrade(socket, status, message, this.#clock.now(), headers);
    };
    if (url.pathname !== this.#options.path) refuse(404, "No websocket at this path");
    else if (!this.#applyUpgradeFault(socket, url.pathname, refuse))
      this.#authenticate(request, socket, head, url, refuse);
  }

  /** Ends every connection, as when the port closes. */
  dropAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.#ticker.stop();
    this.dropAll();
    await new Promise<void>((resolve) => this.#webSockets.close(() => resolve()));
  }

  /** True when a fault has dealt with the upgrade. */
  #applyUpgradeFault(socket: Socket, path: string, refuse: RejectUpgrade): boolean {
    const strike = upgradeFaults(this.#faults, path).at(-1);
    if (strike?.line.definition.name === "upgrade-stall") {
      this.#options.logAttempt(path, 0);
      // Nobody else reads this socket: without this its end would go unnoticed.
      socket.on("end", () => socket.destroy()).resume();
      void waitWhileConnected(this.#clock, socket, Number.POSITIVE_INFINITY);
    } else if (strike) {
      const headers = retryAfterHeaders(strike, this.#clock.now());
      refuse(strike.line.numberOf("code"), "the simulator was told to fail", headers);
    }
    return strike !== undefined;
  }

  #authenticate(
    request: IncomingMessage,
    socket: Socket,
    head: Buffer,
    url: URL,
    refuse: RejectUpgrade,
  ): void {
    const scopes = this.#options.scopesOf(url.searchParams.get("access_token") ?? "");
    if (!scopes) refuse(401, "No valid OAuth 2.0 token provided");
    else
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        this.#options.logAttempt(url.pathname, 101);
        this.#accept(new LiveSession(webSocket, socket, scopes, this.#clock), url.pathname);
      });
  }

  #accept(session: LiveSession, path: string): void {
    this.#sessions.add(session);
    session.onClose(() => this.#sessions.delete(session));
    session.onMessage((text) => this.#protocol.receive(session, text));
    const strikes = acceptFaults(this.#faults, path);
    const greeting = strikes.find(({ line }) => line.definition.name === "connected")?.line;
    const greet = () => session.sendEvent("CONNECTED");
    switch (greeting?.textOf("is")) {
      case "never":
        break;
      case "late":
        session.after(greeting?.numberOf("by") ?? 0, greet);
        break;
      case "twice":
        greet();
        greet();
        break;
      default:
        greet();
    }
    this.#schedulePings(session);
    for (const strike of strikes) applyConnectionFault(strike, session);
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
      // Every other PING carries a requestId: it is optional, and a PONG echoes it only if given.
      requestId++;
      session.ping(requestId % 2 === 1 ? requestId : undefined);
    });
  }
}
