import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { encodeFrame } from "./frames.ts";
import type { LiveSeries } from "./subscriptions.ts";

/** The server disconnects a client that leaves more bytes than this unread. */
const MAX_UNREAD_BYTES = 128 * 2 ** 20;

const CLOSE_TIMEOUT_MS = 5000;

/** The server side of one websocket connection. */
export class LiveSession {
  readonly socket: Socket;
  readonly scopes: ReadonlySet<string>;
  readonly subscriptions = new Map<string, readonly LiveSeries[]>();
  /** Sends no ticks, but everything else. */
  isMuted = false;
  /** The last PING has not been answered yet. */
  awaitsPong = false;
  readonly #webSocket: WebSocket;
  readonly #clock: Clock;
  readonly #timers = new Set<Cancel>();
  /** By requestId: when each unanswered PING was sent. */
  readonly #pingsSent = new Map<number, number>();
  #isFrozen = false;

  constructor(webSocket: WebSocket, socket: Socket, scopes: ReadonlySet<string>, clock: Clock) {
    this.#webSocket = webSocket;
    this.socket = socket;
    this.scopes = scopes;
    this.#clock = clock;
    webSocket.on("ping", (data) => {
      if (!this.#isFrozen) webSocket.pong(data);
    });
    // `ws` closes the connection itself after an invalid frame.
    webSocket.on("error", () => {});
    socket.on("close", () => {
      for (const cancel of this.#timers) cancel();
    });
  }

  onMessage(receive: (text: string) => void): void {
    this.#webSocket.on("message", (data) => {
      if (!this.#isFrozen) receive(data.toString());
    });
  }

  onClose(callback: () => void): void {
    this.socket.on("close", callback);
  }

  /** Sends an event with the current time as its timestamp. */
  sendEvent(event: string, properties: Record<string, unknown> = {}): void {
    const timestamp = new Date(this.#clock.now()).toISOString();
    this.write(encodeFrame(JSON.stringify({ event, ...properties, timestamp })));
  }

  /** A PING may carry a requestId, which the PONG echoes. */
  ping(requestId?: number): void {
    if (requestId !== undefined) this.#pingsSent.set(requestId, this.#clock.monotonic());
    this.sendEvent("PING", requestId === undefined ? {} : { requestId });
  }

  /** The time since the PING with this requestId; undefined when there was none. */
  takeRoundTripMs(requestId: unknown): number | undefined {
    const at = this.#pingsSent.get(requestId as number);
    if (at === undefined) return undefined;
    this.#pingsSent.delete(requestId as number);
    return this.#clock.monotonic() - at;
  }

  /** Writes encoded frames directly to the socket. Safe, because `ws` also writes each message in one piece. */
  write(frames: Uint8Array): void {
    if (this.#isFrozen || this.#webSocket.readyState !== this.#webSocket.OPEN) return;
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

  /** Sends nothing more and ignores all input, as after a network failure. */
  freeze(): void {
    this.#isFrozen = true;
    this.socket.removeAllListeners("data");
    this.socket.on("data", () => {});
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
