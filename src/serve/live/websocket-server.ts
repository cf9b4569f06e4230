import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { ConnectedClient } from "../../model/status/serve-status.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { ServeError } from "../rest/serve-error.ts";
import type { Caller } from "../serve-tokens.ts";
import type { ServedWarehouse } from "../served-warehouse.ts";
import { parseReplayOptions, Replay } from "./replay.ts";
import { ServeSession } from "./serve-session.ts";
import { TickPublisher } from "./tick-publisher.ts";
import { readIndexTopics, readListingTopics, readRequestId } from "./topics.ts";

interface WebSocketServerOptions {
  readonly warehouse: ServedWarehouse;
  readonly clock: Clock;
  readonly log: Log;
  /** Throws 401. */
  readonly identify: (token: string | undefined) => Caller;
}

const PING_INTERVAL_MS = 30_000;
const MAX_CLIENTS = 512;
const MAX_MESSAGE_BYTES = 16 * 1024;
const MAX_SUBSCRIPTIONS = 20_000;
/** The code for a client that should try again later. */
const TOO_SLOW = 1013;

type Message = Readonly<Record<string, unknown>>;

const topicReaders = new Map([
  ["INDEX_TICKER", readIndexTopics],
  ["EXCHANGE_TICKER", readListingTopics],
]);

/** The websocket of `serve`: the live feed of what is committed, or a replay of what is stored. */
export class ServeWebSocket {
  readonly #options: WebSocketServerOptions;
  readonly #server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });
  readonly #live = new Set<ServeSession>();
  readonly #replays = new Map<ServeSession, Replay>();
  readonly #publisher: TickPublisher;
  #cancelPing: Cancel | undefined;
  #pings = 0;
  #dropped = 0;
  #sentBefore = 0;

  constructor(options: WebSocketServerOptions) {
    this.#options = options;
    this.#publisher = new TickPublisher({ ...options, sessions: () => this.#live });
  }

  get #sessions(): ServeSession[] {
    return [...this.#live, ...this.#replays.keys()];
  }

  get clients(): readonly ConnectedClient[] {
    return this.#sessions.map((session) => ({
      client_id: session.caller.clientId,
      address: session.address,
      connected_at: new Date(session.connectedAt).toISOString(),
      subscriptions: session.topics.size,
      sent: session.sent,
      is_replay: this.#replays.has(session),
    }));
  }

  /** Messages sent to all clients so far, and clients that were dropped because they read too slowly. */
  get totals(): { readonly sent: number; readonly dropped: number } {
    const sent = this.#sessions.reduce((sum, session) => sum + session.sent, this.#sentBefore);
    return { sent, dropped: this.#dropped };
  }

  /** Accepts a connection. Throws a ServeError if it must be refused. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const query = new URLSearchParams((request.url ?? "").split(/\?(.*)/s, 2)[1]);
    const caller = this.#options.identify(query.get("access_token") ?? undefined);
    if (this.#sessions.length >= MAX_CLIENTS) throw new ServeError(503, "Too many websocket clients");
    const replayOptions = parseReplayOptions(query, () => this.#options.warehouse.now);
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const session = new ServeSession({
        webSocket,
        socket,
        caller,
        address: request.socket.remoteAddress ?? "",
        clock: this.#options.clock,
        onSlow: (slow) => this.#dropSlow(slow),
        eventTime: replayOptions?.from,
      });
      if (replayOptions)
        this.#replays.set(session, new Replay({ ...this.#options, ...replayOptions, session }));
      else this.#live.add(session);
      this.#follow(webSocket, socket, session);
      session.sendEvent("CONNECTED");
      this.#schedulePing();
    });
  }

  stop(): void {
    this.#cancelPing?.();
    this.#publisher.stop();
    for (const replay of this.#replays.values()) replay.stop();
    for (const client of this.#server.clients) client.terminate();
  }

  #follow(webSocket: WebSocket, socket: Duplex, session: ServeSession): void {
    webSocket.on("message", (data) => this.#receive(session, String(data)));
    socket.on("close", () => {
      this.#sentBefore += session.sent;
      this.#live.delete(session);
      this.#replays.get(session)?.stop();
      this.#replays.delete(session);
      if (this.#sessions.length > 0) return;
      this.#cancelPing?.();
      this.#cancelPing = undefined;
      this.#publisher.stop();
    });
  }

  #dropSlow(session: ServeSession): void {
    // A replay waits for its client.
    if (!this.#live.has(session) || !session.isOpen) return;
    this.#dropped++;
    const { clientId } = session.caller;
    this.#options.log.warn({ clientId, address: session.address }, "slow websocket client dropped");
    session.close(TOO_SLOW, "too slow: ticks were not read in time");
  }

  #schedulePing(): void {
    this.#cancelPing ??= this.#options.clock.after(PING_INTERVAL_MS, () => {
      this.#cancelPing = undefined;
      // Every other PING has no requestId: both forms are allowed.
      const requestId = ++this.#pings % 2 === 1 ? { requestId: this.#pings } : {};
      for (const session of this.#sessions) {
        if (session.awaitsPong) session.close(1008, "PING was not answered");
        else {
          session.awaitsPong = true;
          session.sendEvent("PING", requestId);
        }
      }
      if (this.#sessions.length > 0) this.#schedulePing();
    });
  }

  #receive(session: ServeSession, text: string): void {
    try {
      this.#handle(session, parseMessage(text));
    } catch (error) {
      const known = error instanceof ServeError ? error : new ServeError(500, "The request failed");
      if (known !== error) this.#options.log.error({ error: String(error) }, "websocket request failed");
      session.sendEvent("ERROR", { code: String(known.status), message: known.message });
    }
  }

  #handle(session: ServeSession, message: Message): void {
    const { event } = message;
    const [, un, kind = ""] = /^(UN)?SUBSCRIBE_(\w+)$/.exec(String(event)) ?? [];
    const read = topicReaders.get(kind);
    if (event === "PING") session.sendEvent("PONG", readRequestId(message));
    else if (event === "PONG") session.awaitsPong = false;
    else if (!read) throw new ServeError(400, "unknown event");
    else {
      const answer = this.#options.warehouse.snapshot((connection) => read(connection, message));
      if (un === undefined) this.#subscribe(session, answer, kind);
      // The specification shows no confirmation: the ticks just stop.
      else session.setTopics(answer.topics, false);
      this.#replays.get(session)?.subscriptionsChanged();
    }
  }

  #subscribe(
    session: ServeSession,
    { topics, scope, confirmation }: ReturnType<typeof readIndexTopics>,
    kind: string,
  ): void {
    if (!session.caller.scopes.has(scope)) throw new ServeError(403, `the token lacks the scope ${scope}`);
    if (session.topics.size >= MAX_SUBSCRIPTIONS) throw new ServeError(400, "too many subscriptions");
    session.setTopics(topics, true);
    session.sendEvent(`SUBSCRIBED_${kind}`, confirmation);
    if (!this.#replays.has(session)) this.#publisher.addSubscription(topics);
  }
}

function parseMessage(text: string): Message {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    message = undefined;
  }
  if (typeof message !== "object" || message === null || Array.isArray(message))
    throw new ServeError(400, "a message is a JSON object");
  return message as Message;
}
