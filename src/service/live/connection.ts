import type { Agent } from "node:https";
import { WebSocket } from "ws";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import type { Cancel, Clock, Random } from "../../runtime/clock.ts";
import type { AccessToken } from "../auth/access-tokens.ts";
import { percentEncode } from "../http/request.ts";
import type { ServerClock } from "../http/server-clock.ts";
import { ANSWER_TIMEOUT_MS, MAX_PAUSE_MS, PING_INTERVAL_MS, TEN_MINUTES_MS } from "../limits.ts";
import {
  type CloseReason,
  classifyCloseCode,
  classifySocketError,
  classifyUpgradeStatus,
  isProtocolError,
} from "./close-reason.ts";
import { readFrame, type UnknownFrame } from "./frames.ts";
import { Subscriber, type SubscriberListener } from "./subscriber.ts";
import type { TrackedSubscription } from "./subscription-states.ts";

const MAX_FRAME_BYTES = 2 ** 20;
const MAX_FRAGMENTS = 4_096;
const HEALTH_CHECK_INTERVAL_MS = PING_INTERVAL_MS / 3;
const SILENCE_TIMEOUT_MS = 3 * PING_INTERVAL_MS;

interface ConnectionListener extends SubscriberListener {
  onGreeting(): void;
  /** The first tick or confirmation: CONNECTED alone does not prove that the token is valid. */
  onTokenAccepted(): void;
  onTick(source: "index" | "exchange", text: string): void;
  onUnknown(message: Pick<UnknownFrame, "event" | "reason" | "text">): void;
  /** An ERROR that answers nothing. */
  onError(code: string, message: string): void;
  onHealthCheck(): void;
  onClosed(reason: CloseReason): void;
}

interface LiveConnectionOptions {
  readonly wsUrl: URL;
  readonly token: AccessToken;
  readonly agent: Agent | undefined;
  /** Removes the token from a text of the service. */
  readonly redact: (text: string) => string;
  readonly subscriptions: readonly TrackedSubscription[];
  readonly clock: Clock;
  readonly random: Random;
  readonly server: ServerClock;
  readonly listener: ConnectionListener;
}

/** One websocket connection. It closes once, by itself or by `close`, and calls no listener afterwards. */
export class LiveConnection {
  readonly #options: LiveConnectionOptions;
  readonly #socket: WebSocket;
  readonly #subscriber: Subscriber;
  readonly #closing = Promise.withResolvers<CloseReason>();
  readonly closed = this.#closing.promise;
  /** Resolves when every subscription was answered or has timed out. */
  readonly subscribed: Promise<void>;
  readonly #timers = new Set<Cancel>();
  readonly #startBoottime: number;
  readonly #startMonotonic: number;
  #isClosed = false;
  #lastReceivedMs: number;
  /** When the last message arrived, by the service's clock. */
  lastReceivedTs: Micros;
  #lastPingMs: number;
  /** When CONNECTED arrived. A second one changes nothing. */
  #greetingMs: number | undefined;
  hasReceivedTick = false;
  #isTokenAccepted = false;
  #pauseTimer: Cancel | undefined;
  /** A manual clock stands still until this call: the greeting timeout must not expire meanwhile. */
  readonly #endConnectWork: Cancel;

  constructor(options: LiveConnectionOptions) {
    const { wsUrl, token, clock, server } = options;
    this.#options = options;
    this.#startBoottime = clock.boottime();
    this.#startMonotonic = this.#lastReceivedMs = this.#lastPingMs = clock.monotonic();
    this.lastReceivedTs = server.nowMicros();
    this.#subscriber = new Subscriber({ ...options, send: (text) => this.#send(text) });
    this.subscribed = this.#subscriber.allAnswered;
    // The URL contains the token: never log it, nor an error of the library, which may quote it.
    this.#socket = new WebSocket(buildFeedUrl(wsUrl, token.text), {
      perMessageDeflate: false,
      maxPayload: MAX_FRAME_BYTES,
      followRedirects: false,
      ...(options.agent ? { agent: options.agent } : {}),
      // The type definitions of `ws` lack this option.
      ...{ maxFragments: MAX_FRAGMENTS },
    });
    this.#listen();
    this.#endConnectWork = clock.beginWork();
    this.#setTimer(ANSWER_TIMEOUT_MS, () => {
      // Without any answer to the upgrade there was no connection.
      const end = this.#isConnecting ? "refused" : "dropped";
      if (!this.hasReceivedGreeting) this.close({ reason: "no_greeting", end });
    });
    this.#setTimer(HEALTH_CHECK_INTERVAL_MS, () => this.#checkHealth());
  }

  /** The upgrade has no answer yet. */
  get #isConnecting(): boolean {
    return !this.#isClosed && this.#socket.readyState === WebSocket.CONNECTING;
  }

  get token(): AccessToken {
    return this.#options.token;
  }

  get hasReceivedGreeting(): boolean {
    return this.#greetingMs !== undefined;
  }

  /** Since CONNECTED arrived. */
  get connectedMs(): number {
    return this.#greetingMs === undefined ? 0 : this.#options.clock.monotonic() - this.#greetingMs;
  }

  resubscribe(tracked: TrackedSubscription): void {
    if (this.hasReceivedGreeting) this.#subscriber.resubscribe(tracked);
  }

  replaceSubscriptions(subscriptions: readonly TrackedSubscription[]): void {
    this.#subscriber.replaceSubscriptions(subscriptions);
    if (this.hasReceivedGreeting) this.#subscriber.sendNext();
  }

  /** Stops reading the socket, for a short time only: a PING may be among the unread messages. */
  pause(onTimeout: () => void): void {
    if (this.#pauseTimer || this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.pause();
    this.#pauseTimer = this.#setTimer(MAX_PAUSE_MS, () => {
      this.resume();
      onTimeout();
    });
  }

  resume(): void {
    if (!this.#pauseTimer) return;
    this.#timers.delete(this.#pauseTimer);
    this.#pauseTimer();
    this.#pauseTimer = undefined;
    this.#lastReceivedMs = this.#options.clock.monotonic();
    this.#socket.resume();
  }

  /** The service answers again: an upgrade that it has not answered so far may be lost. */
  retryUpgrade(): void {
    if (this.#isConnecting) this.close({ reason: "no_greeting", end: "recovered" });
  }

  close(reason: CloseReason): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#endConnectWork();
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#subscriber.stop();
    // Send the close frame if the socket is open; do not wait for the answer.
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.close(1000);
    this.#socket.terminate();
    this.#options.listener.onClosed(reason);
    this.#closing.resolve(reason);
  }

  #listen(): void {
    this.#socket.on("open", () => this.#endConnectWork());
    // With the default `binaryType` each message is one buffer.
    this.#socket.on("message", (data, isBinary) => this.#receive(data as Buffer, isBinary));
    this.#socket.on("ping", () => this.#recordReceived());
    this.#socket.on("pong", () => this.#recordReceived());
    this.#socket.on("unexpected-response", (_request, response) => {
      this.close(classifyUpgradeStatus(response.statusCode, response.headers, this.#options.clock.now()));
      response.destroy();
    });
    this.#socket.on("error", (error) => {
      if (this.#isClosed) return;
      const closeReason = classifySocketError(error, this.#options.wsUrl);
      if (isProtocolError(error))
        this.#options.listener.onUnknown({ event: "(frame)", reason: closeReason.reason, text: "" });
      this.close(closeReason);
    });
    this.#socket.on("close", (code) => this.close(classifyCloseCode(code, this.hasReceivedGreeting)));
  }

  #receiveGreeting(): void {
    if (this.hasReceivedGreeting) return;
    this.#greetingMs = this.#options.clock.monotonic();
    this.#options.listener.onGreeting();
    this.#subscriber.sendNext();
  }

  #receive(data: Buffer, isBinary: boolean): void {
    if (this.#isClosed) return;
    this.#recordReceived();
    const frame = readFrame(data, isBinary);
    const { listener, server, redact } = this.#options;
    switch (frame.kind) {
      case "tick":
        this.hasReceivedTick = true;
        this.#acceptToken();
        listener.onTick(frame.source, frame.text);
        break;
      case "ping":
        this.#send(
          JSON.stringify({
            event: "PONG",
            timestamp: formatTimestamp(server.nowMicros()),
            requestId: frame.requestId,
          }),
        );
        break;
      case "pong":
        server.recordMoment(frame.timestamp);
        break;
      case "connected":
        server.recordMoment(frame.timestamp);
        this.#receiveGreeting();
        break;
      case "subscribed":
        this.#acceptToken();
        this.#subscriber.handleConfirmation(frame.source, frame.fields);
        break;
      case "error":
        this.#handleError(frame.code, redact(frame.message));
        break;
      case "unknown":
        listener.onUnknown({ ...frame, event: redact(frame.event), text: redact(frame.text) });
    }
  }

  #handleError(code: string, message: string): void {
    // A fresh token that works for other subscriptions is good: a new one would get the same 401. So is an
    // old token if this subscription got a 401 before: the service may issue the same token all day.
    const isFresh = this.#options.clock.boottime() - this.token.firstSeenAt < TEN_MINUTES_MS;
    const isTokenGood = this.#isTokenAccepted && (isFresh || this.#subscriber.isInFlightSuspect);
    if ((code !== "401" || isTokenGood) && this.#subscriber.handleError(code, message)) return;
    if (code === "401") {
      this.#subscriber.markInFlightSuspect();
      this.close({ reason: "error_401", isTokenRejected: true });
    } else this.#options.listener.onError(code, message);
  }

  #acceptToken(): void {
    if (this.#isTokenAccepted) return;
    this.#isTokenAccepted = true;
    this.#options.listener.onTokenAccepted();
  }

  #recordReceived(): void {
    this.#lastReceivedMs = this.#options.clock.monotonic();
    this.lastReceivedTs = this.#options.server.nowMicros();
  }

  #checkHealth(): void {
    const { clock, listener } = this.#options;
    const now = clock.monotonic();
    const suspendedMs = clock.boottime() - this.#startBoottime - (now - this.#startMonotonic);
    const silentMs = this.#pauseTimer ? 0 : now - this.#lastReceivedMs;
    if (suspendedMs > ANSWER_TIMEOUT_MS || silentMs >= SILENCE_TIMEOUT_MS) {
      // After a suspension the service has long closed its side.
      this.close({ reason: suspendedMs > ANSWER_TIMEOUT_MS ? "suspended" : "silent" });
      return;
    }
    // An ERROR that answers a PING would count for the subscription in flight: ping only after a silence.
    const mayPing = !this.#subscriber.isAwaitingAnswer || silentMs >= PING_INTERVAL_MS;
    if (this.hasReceivedGreeting && mayPing && now - this.#lastPingMs >= PING_INTERVAL_MS) {
      this.#lastPingMs = now;
      this.#send('{"event":"PING"}');
    }
    if (this.hasReceivedGreeting) listener.onHealthCheck();
    this.#setTimer(HEALTH_CHECK_INTERVAL_MS, () => this.#checkHealth());
  }

  #send(text: string): void {
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    // A failed write closes the socket and fires `close`.
    this.#socket.send(text, () => {});
  }

  #setTimer(ms: number, callback: () => void): Cancel {
    const cancel = this.#options.clock.after(ms, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
    return cancel;
  }
}

/** The URL contains the token: never log it. */
export function buildFeedUrl(wsUrl: URL, token: string): string {
  const url = new URL(wsUrl);
  url.hash = "";
  // Not URLSearchParams: it encodes differently, and the redactor would not find the token in texts.
  url.search = `${url.search}${url.search === "" ? "?" : "&"}access_token=${percentEncode(token)}`;
  return url.href;
}
