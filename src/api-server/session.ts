import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import { formatShort, MICROS_PER_MS, type Micros } from "../model/time.ts";
import type { Cancel, Clock } from "../runtime/clock.ts";
import { encodeFrame } from "./frames.ts";
import type { Caller } from "./tokens.ts";

/** How long a client may take to answer a close frame. */
const CLOSE_TIMEOUT_MS = 5_000;
/** Memory of a write that waits for the client, besides its bytes. */
const WRITE_OVERHEAD_BYTES = 512;
/** The code for a client that should try again later. */
const TOO_SLOW = 1013;

/** Sees messages before they are sent, and may change them. `proceed` sends them. */
export type InterceptMessages = (session: Session, messages: readonly string[], proceed: () => void) => void;

export interface SessionOptions {
  readonly webSocket: WebSocket;
  readonly socket: Socket;
  readonly caller: Caller;
  readonly clock: Clock;
  /** A client that leaves more unread is disconnected, so that it costs neither memory nor time of others. */
  readonly maxUnreadBytes: number;
  readonly onSlow: (session: Session) => void;
  /** The timestamp of events. Default: the present; a replay lives in the past. */
  readonly eventTime: Micros | undefined;
  readonly intercept: InterceptMessages | undefined;
}

/** The server side of one websocket connection. */
export class Session {
  readonly socket: Socket;
  readonly caller: Caller;
  readonly connectedAt: number;
  /** The last PING has not been answered yet. */
  awaitsPong = false;
  /** Messages sent, ticks and others. */
  sent = 0;
  readonly #options: SessionOptions;
  /** By the body of the message that began it: topics that the client is subscribed to. */
  readonly #subscriptions = new Map<string, readonly string[]>();
  #topics: ReadonlySet<string> | undefined;
  #signature: string | undefined;
  readonly #timers = new Set<Cancel>();
  #unreadBytes = 0;

  constructor(options: SessionOptions) {
    const { socket, webSocket } = options;
    this.#options = options;
    this.socket = socket;
    this.caller = options.caller;
    this.connectedAt = options.clock.now();
    // `ws` closes the connection itself after an invalid frame.
    webSocket.on("error", () => {});
    socket.on("close", () => this.cancelTimers());
  }

  get isOpen(): boolean {
    const { webSocket } = this.#options;
    return webSocket.readyState === webSocket.OPEN;
  }

  get subscriptionCount(): number {
    return this.#subscriptions.size;
  }

  get topics(): ReadonlySet<string> {
    this.#topics ??= new Set([...this.#subscriptions.values()].flat());
    return this.#topics;
  }

  /** Sessions with the same text get the same bytes. */
  get signature(): string {
    this.#signature ??= [...this.topics].sort().join("\n");
    return this.#signature;
  }

  /** `topics`: undefined ends the subscription. */
  setSubscription(key: string, topics: readonly string[] | undefined): void {
    if (topics) this.#subscriptions.set(key, topics);
    else this.#subscriptions.delete(key);
    this.#topics = undefined;
    this.#signature = undefined;
  }

  /** The timestamp is that of the present, unless the properties have one. */
  sendEvent(event: string, properties: Readonly<Record<string, unknown>> = {}): void {
    const { clock, eventTime = Math.floor(clock.now()) * MICROS_PER_MS } = this.#options;
    const { timestamp = formatShort(eventTime), ...others } = properties;
    const text = JSON.stringify({ event, ...others, timestamp });
    this.send([text], encodeFrame(text));
  }

  /** `frames`: the encoded messages. */
  send(messages: readonly string[], frames: Uint8Array): void {
    const proceed = () => void this.write(frames, messages.length);
    const { intercept } = this.#options;
    if (intercept) intercept(this, messages, proceed);
    else proceed();
  }

  /**
   * Writes encoded frames to the socket itself: `ws` writes each message in one piece too. Returns false if the client has
   * fallen behind, so that a replay waits.
   */
  write(frames: Uint8Array, count = 1): boolean {
    if (!this.isOpen) return false;
    this.sent += count;
    const cost = frames.length + WRITE_OVERHEAD_BYTES;
    this.#unreadBytes += cost;
    const hasRoom = this.socket.write(frames, () => {
      this.#unreadBytes -= cost;
    });
    if (this.#unreadBytes > this.#options.maxUnreadBytes) {
      this.#options.onSlow(this);
      this.close(TOO_SLOW, "too slow: messages were not read in time");
    }
    return hasRoom;
  }

  /** Resolves when the client has read what was sent, or is gone. */
  drained(): Promise<void> {
    const { socket } = this;
    if (!socket.writableNeedDrain || socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        socket.off("drain", done).off("close", done);
        resolve();
      };
      socket.on("drain", done).on("close", done);
    });
  }

  /** Closes the connection; 1006 closes it without a close frame. */
  close(code: number, reason = ""): void {
    if (code === 1006) this.socket.destroy();
    else {
      this.#options.webSocket.close(code, reason);
      this.after(CLOSE_TIMEOUT_MS, () => this.socket.destroy());
    }
  }

  cancelTimers(): void {
    for (const cancel of this.#timers) cancel();
  }

  /** Runs once after `ms`, unless the connection has closed. */
  after(ms: number, callback: () => void): void {
    const cancel = this.#options.clock.after(ms, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
  }
}
