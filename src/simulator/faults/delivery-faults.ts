import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import type { PlainResponse } from "../rest/http-types.ts";
import type { TriggeredFault } from "./script.ts";

/** A response to send, and the connection to send it on. */
interface Delivery {
  socket: Socket;
  rawResponse: ServerResponse;
  response: PlainResponse;
  clock: Clock;
}

const DELIVERY_FAULTS = ["latency", "slow-headers", "drip", "stall", "reset", "hang-up", "cut"];

/** Whether the fault changes the delivery. Some do so only on a connection that has served a request before. */
export function isDeliveryFault({ line }: TriggeredFault, isReused: boolean): boolean {
  return DELIVERY_FAULTS.includes(line.definition.name) && (isReused || line.textOf("socket") !== "reused");
}

export function writeResponse(rawResponse: ServerResponse, { status, headers, body }: PlainResponse): void {
  // A 204 must not have a content-length, because it has no body.
  const { "content-length": length, ...others } = headers;
  rawResponse.writeHead(status, status === 204 || length === undefined ? others : headers);
  rawResponse.end(body);
}

/** Waits before the response. Returns true when the client is still connected afterwards. */
export async function applyLatency({ line }: TriggeredFault, { socket, clock }: Delivery): Promise<boolean> {
  if (line.definition.name === "latency") await waitWhileConnected(clock, socket, line.numberOf("by"));
  return !socket.destroyed;
}

/** Delivers the response in a faulty way. Returns false when the fault only delays the response. */
export async function applyDeliveryFault(fault: TriggeredFault, delivery: Delivery): Promise<boolean> {
  const { line } = fault;
  const { socket, response, clock, rawResponse } = delivery;
  switch (line.definition.name) {
    case "reset":
      socket.resetAndDestroy();
      return true;
    case "hang-up":
      socket.destroy();
      return true;
    case "stall":
      if (line.textOf("at") === "body")
        socket.write(Buffer.concat([Buffer.from(formatHead(response)), firstHalf(response)]));
      await waitWhileConnected(clock, socket, Number.POSITIVE_INFINITY);
      return true;
    case "slow-headers": {
      const [statusLine = "", ...others] = formatHead(response).split("\r\n");
      socket.write(`${statusLine}\r\n`);
      await waitWhileConnected(clock, socket, line.numberOf("by"));
      if (socket.destroyed) return true;
      socket.write(others.join("\r\n"));
      socket.end(response.body);
      return true;
    }
    case "drip": {
      rawResponse.writeHead(response.status, response.headers);
      const step = Math.max(1, line.numberOf("bytes"));
      for (let at = 0; at < response.body.length && !socket.destroyed; at += step) {
        if (at > 0) await waitWhileConnected(clock, socket, line.numberOf("every"));
        rawResponse.write(response.body.subarray(at, at + step));
      }
      rawResponse.end();
      return true;
    }
    case "cut":
      if (delivery.response.body.length <= line.numberOf("above")) return false;
      truncateBody(line.textOf("how"), line.numberOf("at"), delivery);
      return true;
    default:
      return false;
  }
}

function truncateBody(how: string, length: number, { socket, response }: Delivery): void {
  const { body } = response;
  const end = Math.min(length < 0 ? Math.floor(body.length / 2) : length, Math.max(0, body.length - 1));
  const part = body.subarray(0, end);
  const join = (...parts: (string | Uint8Array)[]) => Buffer.concat(parts.map((each) => Buffer.from(each)));
  switch (how) {
    case "length":
      socket.end(join(formatHead(response), part));
      break;
    case "close":
      socket.end(join(formatHead(response, {}), part));
      break;
    case "chunked": {
      const head = formatHead(response, { "transfer-encoding": "chunked" });
      socket.end(join(head, `${part.length.toString(16)}\r\n`, part, "\r\n"));
      break;
    }
    case "utf8": {
      // Content-Length is correct, so only the decoder notices: the last character lacks its second byte.
      const halfCharacter = join(part, Buffer.of(0xc3));
      socket.end(join(formatHead({ ...response, body: halfCharacter }), halfCharacter));
      break;
    }
    default:
      socket.write(join(formatHead(response), part), () => socket.resetAndDestroy());
  }
}

/** Formats status line and headers, for responses that ServerResponse refuses to send. */
function formatHead(
  { status, headers, body }: PlainResponse,
  framing: Record<string, string> = contentLength(body),
): string {
  const lines = Object.entries({ ...headers, ...framing, connection: "close" })
    .filter(([name]) => name !== "content-length" || "content-length" in framing)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Simulated\r\n${lines.join("")}\r\n`;
}

const contentLength = (body: Uint8Array) => ({ "content-length": String(body.length) });
const firstHalf = ({ body }: PlainResponse) => body.subarray(0, body.length >> 1);

/**
 * Waits for `ms`, or until the client disconnects. The manual clock of tests does not advance while a request is pending;
 * `beginWait` lets it advance during this wait.
 */
export function waitWhileConnected(clock: Clock, socket: Socket, ms: number): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  const resume = clock.beginWait();
  return new Promise((resolve) => {
    const end = () => {
      socket.off("close", end);
      cancel();
      resume();
      resolve();
    };
    const cancel = Number.isFinite(ms) ? clock.after(ms, end) : () => {};
    socket.on("close", end);
  });
}
