import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { encodeFrame } from "./frames.ts";
import type { LiveSeries } from "./subscriptions.ts";

/** Bytes that a client may leave unread before it is cut off. */
const MAX_UNREAD_BYTES = 128 * 2 ** 20;

const CLOSE_TIMEOUT_MS = 5000;

/** One websocket client, seen from the server. */
export class LiveSession {
  readonly socket: Socket;
  readonly scopes: ReadonlySet<string>;
  readonly subscriptions = new Map<string, readonly LiveSeries[]>();
  /** Ticks are withheld, all else goes on. */
  isMuted = false;
  /** A PING of ours awaits its PONG. */
  awaitsPong = false;
  readonly #webSocket: WebSocket;
  readonly #clock: Clock;
  readonly #timers = new Set<Cancel>();
  /** When each PING with a requestId that still awaits its PONG was sent. */
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
    // A frame that breaks the protocol: the library has closed the connection already.
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

  onClose(forget: () => void): void {
    this.socket.on("close", forget);
  }

  /** One event, with the server's time in it. */
  sendEvent(event: string, properties: Record<string, unknown> = {}): void {
    const timestamp = new Date(this.#clock.now()).toISOString();
    this.write(encodeFrame(JSON.stringify({ event, ...properties, timestamp })));
  }

  /** Every PING may carry a requestId, which its PONG then echoes. */
  ping(requestId?: number): void {
    if (requestId !== undefined) this.#pingsSent.set(requestId, this.#clock.monotonic());
    this.sendEvent("PING", requestId === undefined ? {} : { requestId });
  }

  /** How long that PING took to be answered; undefined when there was none. */
  takeRoundTripMs(requestId: unknown): number | undefined {
    const at = this.#pingsSent.get(requestId as number);
    if (at === undefined) return undefined;
    this.#pingsSent.delete(requestId as number);
    return this.#clock.monotonic() - at;
  }

  /** Frames as bytes: the library writes a message at once and whole, so nothing comes between. */
  write(frames: Uint8Array): void {
    if (this.#isFrozen || this.#webSocket.readyState !== this.#webSocket.OPEN) return;
    if (this.socket.writableLength > MAX_UNREAD_BYTES) {
      this.close(1006);
      return;
    }
    this.socket.write(frames);
  }

  /** Ends the connection; 1006 is what a client sees when no close frame came. */
  close(code: number, reason = ""): void {
    if (code === 1006) this.socket.destroy();
    else {
      this.#webSocket.close(code, reason);
      // A client that does not answer the close frame is not waited for.
      this.after(CLOSE_TIMEOUT_MS, () => this.socket.destroy());
    }
  }

  /** From here on the peer is as silent as behind a pulled cable; bytes from the client are swallowed. */
  freeze(): void {
    this.#isFrozen = true;
    this.socket.removeAllListeners("data");
    this.socket.on("data", () => {});
    for (const cancel of this.#timers) cancel();
  }

  /** Runs once after `ms` unless the connection has ended by then. */
  after(ms: number, callback: () => void): void {
    const cancel = this.#clock.after(ms, () => {
      this.#timers.delete(cancel);
      callback();
    });
    this.#timers.add(cancel);
  }

  /** Runs every `ms` while the connection lasts. */
  every(ms: number, callback: () => void): void {
    this.after(ms, () => {
      callback();
      this.every(ms, callback);
    });
  }
}
