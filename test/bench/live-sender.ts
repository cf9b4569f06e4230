import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { encodeFrame } from "../../src/api-server/frames.ts";
import { formatTimestamp } from "../../src/model/time.ts";

/** What the benchmark tells its sender to do. */
export interface SenderCommand {
  readonly ticksASecond: number;
  readonly seconds: number;
}

/** Ticks that were sent together: the number of the first, and when, in milliseconds since 1970. */
export interface SentGroup {
  readonly first: number;
  readonly at: number;
}

/** What one command has sent, and how many ticks all of them. */
export interface SentReport {
  readonly groups: readonly SentGroup[];
  readonly ticks: number;
}

/**
 * Every fourth tick is an exchange tick. The cost of a tick is the database page that it dirties: with 500 series a batch has
 * four ticks per page, with 6,000 every tick has its own page and costs four times as much.
 */
const SERIES = 500;
export const EXCHANGE_ID = "e1b2c3d4-0000-4000-8000-000000000001";
const SEND_INTERVAL_MS = 5;

/** A clock that all processes of this machine share, in milliseconds with microsecond precision. */
export function sharedNow(): number {
  return performance.timeOrigin + performance.now();
}

/** Frames of one tick per series, rendered beforehand; only the timestamp is written when they are sent. */
class Frames {
  readonly #bytes: Buffer;
  readonly #frameOffsets: number[] = [];
  readonly #timestampOffsets: number[] = [];

  constructor() {
    const blank = "_".repeat(27);
    const parts: Buffer[] = [];
    let at = 0;
    for (let series = 0; series < SERIES; series++) {
      const bytes = encodeFrame(tickText(series, blank));
      this.#frameOffsets.push(at);
      this.#timestampOffsets.push(at + bytes.indexOf(blank));
      parts.push(bytes);
      at += bytes.length;
    }
    this.#frameOffsets.push(at);
    this.#bytes = Buffer.concat(parts);
  }

  /** The frames of the series [from, to), sent at `at`. */
  take(from: number, to: number, at: number): Buffer {
    const begin = this.#frameOffsets[from] ?? 0;
    const copy = Buffer.from(this.#bytes.subarray(begin, this.#frameOffsets[to]));
    const moment = Buffer.from(formatTimestamp(Math.floor(at * 1000)));
    for (let series = from; series < to; series++)
      moment.copy(copy, (this.#timestampOffsets[series] ?? 0) - begin);
    return copy;
  }
}

function tickText(series: number, timestamp: string): string {
  const id = `7c4a1f0e-0000-4000-8000-${String(series).padStart(12, "0")}`;
  const price = (100 + series / 7).toFixed(8);
  const quote = { exchangeId: EXCHANGE_ID, marketId: id, last: price, volume: "81234.5678" };
  const tick =
    series % 4 === 0
      ? { ...quote, bid: price, ask: price }
      : { indexId: id, indexType: "MWA", price, volume: "9123456.789" };
  const event = series % 4 === 0 ? "EXCHANGE_TICKER" : "INDEX_TICKER";
  const recordId = `9d0b6f52-1111-4000-8000-${String(series).padStart(12, "0")}`;
  return JSON.stringify({ event, id: recordId, ...tick, timestamp });
}

class Sender {
  readonly #frames = new Frames();
  #socket: Socket | undefined;
  #sent = 0;
  #nextSeries = 0;
  #groups: SentGroup[] = [];

  accept(webSocket: WebSocket, socket: Socket): void {
    this.#socket = socket;
    const sendMessage = (message: object) => webSocket.send(JSON.stringify(message));
    sendMessage({ event: "CONNECTED", timestamp: formatTimestamp(Math.floor(sharedNow() * 1000)) });
    webSocket.on("message", (data) => {
      const message = JSON.parse(String(data)) as Record<string, unknown>;
      const { event, requestId, ...fields } = message;
      if (event === "PING")
        sendMessage({ event: "PONG", requestId, timestamp: formatTimestamp(Math.floor(sharedNow() * 1000)) });
      if (String(event).startsWith("SUBSCRIBE_"))
        sendMessage({ ...fields, event: String(event).replace("SUBSCRIBE", "SUBSCRIBED"), requestId });
    });
  }

  /** Executes a command and returns its report. */
  async execute({ ticksASecond, seconds }: SenderCommand): Promise<SentReport> {
    this.#groups = [];
    const begun = sharedNow();
    const before = this.#sent;
    for (let elapsed = 0; elapsed < seconds * 1000; ) {
      await new Promise((later) => setTimeout(later, SEND_INTERVAL_MS));
      elapsed = Math.min(sharedNow() - begun, seconds * 1000);
      this.#send(Math.floor((elapsed / 1000) * ticksASecond) - (this.#sent - before));
    }
    return { groups: this.#groups, ticks: this.#sent };
  }

  /** Sends ticks of all series in turn; no series twice with the same timestamp. */
  #send(ticks: number): void {
    for (let left = ticks; left > 0; ) {
      const from = this.#nextSeries < SERIES ? this.#nextSeries : 0;
      const to = Math.min(SERIES, from + left);
      this.#nextSeries = to;
      const at = Math.max(sharedNow(), (this.#groups.at(-1)?.at ?? 0) + 0.001);
      this.#socket?.write(this.#frames.take(from, to, at));
      this.#groups.push({ first: this.#sent, at });
      this.#sent += to - from;
      left -= to - from;
    }
  }
}

// Runs as its own process: only a token endpoint and a websocket.
if (import.meta.main) {
  const sender = new Sender();
  const sockets = new WebSocketServer({ noServer: true });
  const server = createServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end('{"access_token":"bench","expires_in":86400,"token_type":"Bearer"}');
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head) => {
    sockets.handleUpgrade(request, socket, head, (webSocket) => sender.accept(webSocket, socket));
  });
  process.on(
    "message",
    (order: SenderCommand) => void sender.execute(order).then((report) => process.send?.(report)),
  );
  process.on("disconnect", () => process.exit());
  server.listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
}
