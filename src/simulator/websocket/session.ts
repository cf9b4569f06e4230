import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { encodeFrame } from "./frames.ts";
import type { LiveSeries } from "./subscriptions.ts";

/** Sees messages before they are sent, and may change them. `proceed` sends them. */
export type InterceptMessages = (
  session: LiveSession,
  messages: readonly string[],
  proceed: () => void,
) => void;

/** The server disconnects a client that leaves more bytes than this unread. */
const MAX_UNREAD_BYTES = 128 * 2 ** 20;

const CLOSE_TIMEOUT_MS = 5000;

/** The server side of one websocket connection. */
export class LiveSession {
  readonly socket: Socket;
  readonly scopes: ReadonlySet<string>;
  readonly subscriptions = new Map<string, readonly LiveSeries[]>();
  /** The last PING has not been answered yet. */
  awaitsPong = false;
  readonly #webSocket: WebSocket;
  readonly #clock: Clock;
  readonly #intercept: InterceptMessages | undefined;
  readonly #timers = new Set<Cancel>();

  constructor(
    webSocket: WebSocket,
    socket: Socket,
    scopes: ReadonlySet<string>,
    clock: Clock,
    intercept: InterceptMessages | undefined,
  ) {
    this.#webSocket = webSocket;
    this.socket = socket;
    this.scopes = scopes;
    this.#clock = clock;
    this.#intercept = intercept;
    webSocket.on("ping", (data) => webSocket.pong(data));
    // `ws` closes the connection itself after an invalid frame.
    webSocket.on("error", () => {});
    socket.on("close", () => this.cancelTimers());
  }

  onMessage(receive: (text: string) => void): void {
    this.#webSocket.on("message", (data) => receive(data.toString()));
  }

  onClose(callback: () => void): void {
    this.socket.on("close", callback);
  }

  /** Sends an event with the current time as its timestamp. */
  sendEvent(event: string, properties: Record<string, unknown> = {}): void {
    const timestamp = new Date(this.#clock.now()).toISOString();
    const text = JSON.stringify({ event, ...properties, timestamp });
    this.send([text], encodeFrame(text));
  }

  /** `frames`: the encoded messages. */
  send(messages: readonly string[], frames: Uint8Array): void {
    if (this.#intercept) this.#intercept(this, messages, () => this.write(frames));
    else this.write(frames);
  }

  /** Writes encoded frames directly to the socket. Safe, because `ws` also writes each message in one piece. */
  write(frames: Uint8Array): void {
    if (this.#webSocket.readyState !== this.#webSocket.OPEN) return;
    if (this.socket.writableLength > MAX_UNREAD_BYTES) {
      this.close(1006);
      return;
    }
    this.socket.write(frames);
  }

  /** Closes the connection; 1006 closes it without a close frame. */
  close(code: number, reason = ""): void {
    if (code === 1006) this.socket.destroy();
    else {
      this.#webSocket.close(code, reason);
      // Do not wait for a client that does not answer the close frame.
      this.after(CLOSE_TIMEOUT_MS, () => this.socket.destroy());
    }
  }

  cancelTimers(): void {
    for (const cancel of this.#timers) cancel();
  }

  /** Runs once after `ms`, unless the connection has closed. */
  after(ms: number, callback: () => void): void {
    const cancel = this.#clock.after(ms, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
  }

  /** Runs every `ms` until the connection closes. */
  every(ms: number, callback: () => void): void {
    this.after(ms, () => {
      callback();
      this.every(ms, callback);
    });
  }
}
