import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { ApiError, errorBody } from "./api-error.ts";
import { encodeFrames } from "./frames.ts";
import type { Interceptor, LiveMessage } from "./interceptor.ts";
import { Session, type SessionOptions } from "./session.ts";
import type { Audience, Feed, Source, TickNews } from "./source.ts";
import { readRequestId, subscriptionReaders } from "./subscription.ts";
import { type Caller, parseJsonObject } from "./tokens.ts";

interface LiveServerOptions extends Pick<SessionOptions, "clock" | "maxUnreadBytes" | "onSlow"> {
  readonly source: Source;
  readonly interceptor: Interceptor;
  /** The caller of an upgrade request; throws an ApiError if it must be refused. */
  readonly identify: (request: IncomingMessage, query: URLSearchParams) => Caller;
  readonly toApiError: (error: unknown) => ApiError;
  /** Interval of PINGs. A client that has not replied by the next one is disconnected. 0: no PINGs. */
  readonly pingSeconds: number;
}

const MAX_CLIENTS = 512;
const MAX_MESSAGE_BYTES = 16 * 1024;
const MAX_SUBSCRIPTIONS = 20_000;

/** The websocket: sends ticks to those who subscribe, live or as a replay. */
export class LiveServer implements Audience {
  readonly #options: LiveServerOptions;
  readonly #sockets = new Set<Socket>();
  /** All connections, with the feed of those that hear a replay. */
  readonly sessions = new Map<Session, Feed | undefined>();
  readonly #live: Feed;
  readonly #webSockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });
  #sentBefore = 0;

  constructor(options: LiveServerOptions) {
    this.#options = options;
    this.#live = options.source.follow(this);
  }

  get #listeners(): Session[] {
    return [...this.sessions].filter(([, replay]) => !replay).map(([session]) => session);
  }

  get topics(): ReadonlySet<string> {
    return new Set(this.#listeners.flatMap(({ topics }) => [...topics]));
  }

  get hasSubscribers(): boolean {
    return this.#listeners.some(({ subscriptionCount }) => subscriptionCount > 0);
  }

  /** Messages sent to all clients so far. */
  get sent(): number {
    return [...this.sessions.keys()].reduce((sum, session) => sum + session.sent, this.#sentBefore);
  }

  upgrade(request: IncomingMessage, socket: Socket, head: Buffer): void {
    const { interceptor } = this.#options;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // A client may disconnect in the middle of a frame.
    socket.on("error", () => socket.destroy());
    const proceed = () => this.#answerUpgrade(request, socket, head);
    if (interceptor.upgrade) interceptor.upgrade(request, socket, proceed);
    else proceed();
  }

  /** Closes all connections, as when the port closes. */
  dropAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  stop(): void {
    for (const [session, replay] of this.sessions) {
      replay?.stop();
      session.cancelTimers();
    }
    this.#live.stop();
    this.dropAll();
  }

  /** Sessions with the same topics get the same bytes: a tick is encoded once, not once per client. */
  deliver(news: readonly TickNews[]): void {
    const groups = Map.groupBy(this.#listeners, ({ signature }) => signature);
    for (const sessions of groups.values()) {
      const subscribed = sessions[0]?.topics;
      const wanted = news.filter(({ topics }) => topics.some((topic) => subscribed?.has(topic)));
      const texts = wanted.flatMap(({ texts }) => texts);
      if (texts.length === 0) continue;
      const frames = encodeFrames(texts);
      for (const session of sessions) session.send(texts, frames);
    }
  }

  /** Returns the status. */
  #answerUpgrade(request: IncomingMessage, socket: Socket, head: Buffer): number {
    try {
      const query = new URLSearchParams((request.url ?? "").split(/\?(.*)/s, 2)[1]);
      const caller = this.#options.identify(request, query);
      if (this.sessions.size >= MAX_CLIENTS) throw new ApiError(503, "Too many websocket clients");
      const replay = this.#options.source.openReplay?.(query);
      // `ws` rejects an invalid request itself, and does not call back.
      let status = 400;
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => {
        status = 101;
        const { clock, maxUnreadBytes, onSlow, interceptor } = this.#options;
        const intercept = interceptor.send?.bind(interceptor);
        const eventTime = replay?.from;
        const session = new Session({
          ...{ webSocket, socket, caller, clock, maxUnreadBytes, onSlow, eventTime, intercept },
        });
        this.#accept(webSocket, session, replay?.open(session));
      });
      return status;
    } catch (error) {
      const { status, message, headers } = this.#options.toApiError(error);
      rejectUpgrade(socket, status, message, this.#options.clock.now(), headers);
      return status;
    }
  }

  #accept(webSocket: WebSocket, session: Session, replay: Feed | undefined): void {
    const { interceptor } = this.#options;
    this.sessions.set(session, replay);
    session.socket.on("close", () => {
      this.#sentBefore += session.sent;
      this.sessions.delete(session);
      replay?.stop();
      if (this.sessions.size === 0) this.#live.stop();
    });
    webSocket.on("message", (data) => {
      const message = parseJsonObject(String(data));
      const proceed = () => this.#receive(session, message);
      if (message && interceptor.receive) interceptor.receive(session, message, proceed);
      else proceed();
    });
    this.#schedulePings(session);
    session.sendEvent("CONNECTED");
  }

  #schedulePings(session: Session): void {
    const { pingSeconds } = this.#options;
    if (pingSeconds <= 0) return;
    let requestId = 0;
    const ping = () => {
      if (session.awaitsPong) return session.close(1008, "PING was not answered");
      session.awaitsPong = true;
      // Every other PING carries a requestId: it is optional, and clients must handle both.
      requestId++;
      session.sendEvent("PING", requestId % 2 === 1 ? { requestId } : {});
      session.after(pingSeconds * 1000, ping);
    };
    session.after(pingSeconds * 1000, ping);
  }

  #receive(session: Session, message: LiveMessage | undefined): void {
    try {
      if (!message) throw new ApiError(400, "a message is a JSON object");
      this.#handle(session, message);
    } catch (error) {
      const { status, message } = this.#options.toApiError(error);
      session.sendEvent("ERROR", { code: String(status), message });
    }
  }

  #handle(session: Session, message: LiveMessage): void {
    const { event } = message;
    if (event === "PING") session.sendEvent("PONG", readRequestId(message));
    else if (event === "PONG") session.awaitsPong = false;
    else this.#changeSubscription(session, message);
  }

  #changeSubscription(session: Session, message: LiveMessage): void {
    const [, un, kind = ""] = /^(UN)?SUBSCRIBE_(\w+)$/.exec(String(message.event)) ?? [];
    const read = subscriptionReaders[kind];
    if (!read) throw new ApiError(400, "unknown event");
    const { source, clock } = this.#options;
    const { key, topics, scope, confirmation } = source.read(clock.now(), (state) => read(state, message));
    // The specification shows no confirmation of an end: the ticks just stop.
    if (un !== undefined) session.setSubscription(key, undefined);
    else {
      if (!session.caller.scopes.has(scope)) throw new ApiError(403, `the token lacks the scope ${scope}`);
      if (session.subscriptionCount >= MAX_SUBSCRIPTIONS) throw new ApiError(400, "too many subscriptions");
      session.setSubscription(key, topics);
      session.sendEvent(`SUBSCRIBED_${kind}`, confirmation);
    }
    (this.sessions.get(session) ?? this.#live).subscriptionsChanged(topics);
  }
}

/** Rejects the upgrade with an HTTP response. */
export function rejectUpgrade(
  socket: Socket,
  status: number,
  message: string,
  nowMs: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = errorBody(status, message, nowMs);
  const lines = Object.entries({
    date: new Date(nowMs).toUTCString(),
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n${body}`);
}
