import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { formatInstant } from "../../src/model/time.ts";
import { frame } from "../../src/simulator/websocket/frames.ts";

/** What the benchmark asks of its sender. */
export type Order =
  | { readonly order: "steady"; readonly ticksASecond: number; readonly seconds: number }
  | { readonly order: "burst"; readonly ticks: number }
  /** PINGs from now on, until `pongs` asks how they were answered. */
  | { readonly order: "ping"; readonly everyMs: number }
  | { readonly order: "pongs" };

/** Ticks that went out together: from which one on, and when, in milliseconds since 1970. */
export interface Sent {
  readonly first: number;
  readonly at: number;
}

export type Report =
  | { readonly report: "listening"; readonly port: number }
  | { readonly report: "sent"; readonly groups: readonly Sent[]; readonly ticks: number }
  | { readonly report: "pongs"; readonly ms: readonly number[]; readonly unanswered: number };

/** As many series as the real service sends in one refresh; every fourth tick is one of an exchange. */
const SERIES = 30_000;
/**
 * The steady stream is of so many of them. What a tick costs is the page of the file that it dirties: at 500 series a batch
 * brings four ticks to each page, at 6,000 every tick has a page to itself and costs four times as much.
 */
export const STEADY_SERIES = 500;
export const EXCHANGE_ID = "e1b2c3d4-0000-4000-8000-000000000001";
const EVERY_MS = 5;

/** The moment on a clock that all processes of this machine share, to the microsecond. */
export function sharedNow(): number {
  return performance.timeOrigin + performance.now();
}

/** One round of frames, rendered beforehand but for the moment of sending, which is written into each as it goes. */
class Frames {
  readonly #bytes: Buffer;
  readonly #starts: number[] = [];
  readonly #moments: number[] = [];

  constructor() {
    const blank = "_".repeat(27);
    const parts: Buffer[] = [];
    let at = 0;
    for (let series = 0; series < SERIES; series++) {
      const bytes = frame(tickText(series, blank));
      this.#starts.push(at);
      this.#moments.push(at + bytes.indexOf(blank));
      parts.push(bytes);
      at += bytes.length;
    }
    this.#starts.push(at);
    this.#bytes = Buffer.concat(parts);
  }

  /** The frames of the series [from, to), sent at `at`. */
  take(from: number, to: number, at: number): Buffer {
    const begin = this.#starts[from] ?? 0;
    const copy = Buffer.from(this.#bytes.subarray(begin, this.#starts[to]));
    const moment = Buffer.from(formatInstant(Math.floor(at * 1000)));
    for (let series = from; series < to; series++) moment.copy(copy, (this.#moments[series] ?? 0) - begin);
    return copy;
  }
}

function tickText(series: number, timestamp: string): string {
  const id = `7c4a1f0e-0000-4000-8000-${String(series).padStart(12, "0")}`;
  const price = (100 + series / 7).toFixed(8);
  const tick =
    series % 4 === 0
      ? {
          exchangeId: EXCHANGE_ID,
          marketId: id,
          last: price,
          volume: "81234.5678",
          bid: price,
          ask: price,
        }
      : { indexId: id, indexType: "MWA", price, volume: "9123456.789" };
  const event = series % 4 === 0 ? "EXCHANGE_TICKER" : "INDEX_TICKER";
  return JSON.stringify({
    event,
    id: `9d0b6f52-1111-4000-8000-${String(series).padStart(12, "0")}`,
    ...tick,
    timestamp,
  });
}

class Sender {
  readonly #frames = new Frames();
  readonly #pings = new Map<number, number>();
  readonly #pongMs: number[] = [];
  #socket: Socket | undefined;
  #sent = 0;
  #next = 0;
  #pinged = 0;
  #pinging: NodeJS.Timeout | undefined;
  #groups: Sent[] = [];

  greet(webSocket: WebSocket, socket: Socket): void {
    this.#socket = socket;
    const say = (message: object) => webSocket.send(JSON.stringify(message));
    say({ event: "CONNECTED", timestamp: formatInstant(Math.floor(sharedNow() * 1000)) });
    webSocket.on("message", (data) => {
      const message = JSON.parse(String(data)) as Record<string, unknown>;
      const { event, requestId, ...fields } = message;
      if (event === "PONG") this.#pong(Number(requestId));
      if (event === "PING")
        say({ event: "PONG", requestId, timestamp: formatInstant(Math.floor(sharedNow() * 1000)) });
      if (String(event).startsWith("SUBSCRIBE_"))
        say({ ...fields, event: String(event).replace("SUBSCRIBE", "SUBSCRIBED"), requestId });
    });
  }

  /** What there is to say once the order is carried out. */
  async carryOut(order: Order): Promise<Report | undefined> {
    switch (order.order) {
      case "burst":
        this.#groups = [];
        this.#send(order.ticks, SERIES);
        return this.#report();
      case "steady":
        this.#groups = [];
        await this.#steady(order.ticksASecond, order.seconds);
        return this.#report();
      case "ping":
        this.#pinging = setInterval(() => this.#ping(), order.everyMs);
        return undefined;
      case "pongs":
        clearInterval(this.#pinging);
        await new Promise((later) => setTimeout(later, 1_000));
        return { report: "pongs", ms: this.#pongMs.splice(0), unanswered: this.#pings.size };
    }
  }

  async #steady(ticksASecond: number, seconds: number): Promise<void> {
    const begun = sharedNow();
    const before = this.#sent;
    for (;;) {
      const elapsed = Math.min(sharedNow() - begun, seconds * 1000);
      this.#send(Math.floor((elapsed / 1000) * ticksASecond) - (this.#sent - before), STEADY_SERIES);
      if (elapsed >= seconds * 1000) return;
      await new Promise((later) => setTimeout(later, EVERY_MS));
    }
  }

  /** The series in turn; no series twice at one moment. */
  #send(ticks: number, series: number): void {
    for (let left = ticks; left > 0; ) {
      const from = this.#next < series ? this.#next : 0;
      const to = Math.min(series, from + left);
      this.#next = to;
      const at = Math.max(sharedNow(), (this.#groups.at(-1)?.at ?? 0) + 0.001);
      this.#socket?.write(this.#frames.take(from, to, at));
      this.#groups.push({ first: this.#sent, at });
      this.#sent += to - from;
      left -= to - from;
    }
  }

  #report(): Report {
    return { report: "sent", groups: this.#groups, ticks: this.#sent };
  }

  #ping(): void {
    this.#pings.set(++this.#pinged, sharedNow());
    this.#socket?.write(frame(JSON.stringify({ event: "PING", requestId: this.#pinged })));
  }

  #pong(requestId: number): void {
    const at = this.#pings.get(requestId);
    this.#pings.delete(requestId);
    if (at !== undefined) this.#pongMs.push(sharedNow() - at);
  }
}

// Run as its own process by the benchmark: a token endpoint and a websocket, nothing else of the service.
if (import.meta.main) {
  const sender = new Sender();
  const say = (report: Report | undefined) => void (report && process.send?.(report));
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end('{"access_token":"bench","expires_in":86400,"token_type":"Bearer"}');
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head) => {
    sockets.handleUpgrade(request, socket, head, (webSocket) => sender.greet(webSocket, socket));
  });
  process.on("message", (order: Order) => void sender.carryOut(order).then(say));
  process.on("disconnect", () => process.exit());
  server.listen(0, "127.0.0.1", () =>
    say({ report: "listening", port: (server.address() as AddressInfo).port }),
  );
}
