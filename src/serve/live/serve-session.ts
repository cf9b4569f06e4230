import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { timestampText } from "../rest/record-text.ts";
import type { Caller } from "../serve-tokens.ts";
import { encodeTextFrame } from "./text-frames.ts";

/** A client that leaves more bytes unread is disconnected: others must not wait for it, nor memory. */
const MAX_UNREAD_BYTES = 8 * 2 ** 20;
/** How long a client may take to answer a close frame. */
const CLOSE_TIMEOUT_MS = 5_000;

interface ServeSessionOptions {
  readonly webSocket: WebSocket;
  readonly socket: Duplex;
  readonly caller: Caller;
  readonly address: string;
  readonly clock: Clock;
  readonly onSlow: (session: ServeSession) => void;
  /** The timestamp of events. Default: the present; a replay lives in the past. */
  readonly eventTime?: Micros | undefined;
}

/** The server side of one websocket connection. */
export class ServeSession {
  readonly caller: Caller;
  readonly address: string;
  readonly connectedAt: number;
  readonly topics = new Set<string>();
  /** The last PING has not been answered yet. */
  awaitsPong = false;
  /** Messages sent, ticks and others. */
  sent = 0;
  readonly #options: ServeSessionOptions;
  #signature: string | undefined;
  #cancelClose: Cancel | undefined;

  constructor(options: ServeSessionOptions) {
    this.#options = options;
    this.caller = options.caller;
    this.address = options.address;
    this.connectedAt = options.clock.now();
    options.webSocket.on("error", () => {});
    options.socket.on("close", () => this.#cancelClose?.());
  }

  get isOpen(): boolean {
    const { webSocket } = this.#options;
    return webSocket.readyState === webSocket.OPEN;
  }

  /** The same text for sessions with the same topics: they get the same bytes. */
  get signature(): string {
    this.#signature ??= [...this.topics].sort().join("\n");
    return this.#signature;
  }

  setTopics(topics: readonly string[], isSubscribed: boolean): void {
    for (const topic of topics) {
      if (isSubscribed) this.topics.add(topic);
      else this.topics.delete(topic);
    }
    this.#signature = undefined;
  }

  hasAnyTopic(topics: readonly string[]): boolean {
    return topics.some((topic) => this.topics.has(topic));
  }

  sendEvent(event: string, properties: Readonly<Record<string, unknown>> = {}): void {
    const { clock, eventTime = clock.now() * MICROS_PER_MS } = this.#options;
    const { timestamp = timestampText(eventTime), ...others } = properties;
    this.write(encodeTextFrame(JSON.stringify({ event, ...others, timestamp })), 1);
  }

  /**
   * Writes encoded frames to the socket itself: `ws` writes each message in one piece too. Returns false if the client has
   * fallen behind, so that a replay waits.
   */
  write(frames: Uint8Array, count: number): boolean {
    const { socket, onSlow } = this.#options;
    if (!this.isOpen) return false;
    this.sent += count;
    const hasRoom = socket.write(frames);
    if (socket.writableLength > MAX_UNREAD_BYTES) onSlow(this);
    return hasRoom;
  }

  /** Resolves when the client has read what was sent, or is gone. */
  drained(): Promise<void> {
    const { socket } = this.#options;
    if (!socket.writableNeedDrain || socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        socket.off("drain", done).off("close", done);
        resolve();
      };
      socket.on("drain", done).on("close", done);
    });
  }

  close(code: number, reason: string): void {
    const { webSocket, socket, clock } = this.#options;
    webSocket.close(code, reason);
    this.#cancelClose ??= clock.after(CLOSE_TIMEOUT_MS, () => socket.destroy());
  }
}
