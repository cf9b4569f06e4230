import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import type { PlainResponse } from "../rest/http-types.ts";
import type { TriggeredFault } from "./script.ts";

/** How the answer's bytes reach the client, or do not. */
export interface Delivery {
  socket: Socket;
  response: ServerResponse;
  plainResponse: PlainResponse;
  clock: Clock;
}

const DELIVERY_FAULTS = ["latency", "slow-headers", "drip", "stall", "reset", "hang-up", "cut"];

/** Whether the fault has to do with delivery, given whether the connection has carried a request before. */
export function isDeliveryFault({ line }: TriggeredFault, isReused: boolean): boolean {
  return DELIVERY_FAULTS.includes(line.definition.name) && (isReused || line.textOf("socket") !== "reused");
}

export function writeResponse(response: ServerResponse, { status, headers, body }: PlainResponse): void {
  // A 204 has no body, and a length would promise one.
  const { "content-length": length, ...others } = headers;
  response.writeHead(status, status === 204 || length === undefined ? others : headers);
  response.end(body);
}

/** Waits that come before the answer; true when the client is still there afterwards. */
export async function applyLatency({ line }: TriggeredFault, { socket, clock }: Delivery): Promise<boolean> {
  if (line.definition.name === "latency") await waitWhileConnected(clock, socket, line.numberOf("by"));
  return !socket.destroyed;
}

/** Delivers the answer as this fault would; false when the fault only delays it. */
export async function applyDeliveryFault(strike: TriggeredFault, delivery: Delivery): Promise<boolean> {
  const { line } = strike;
  const { socket, plainResponse: answer, clock, response } = delivery;
  switch (line.definition.name) {
    case "reset":
      socket.resetAndDestroy();
      return true;
    case "hang-up":
      socket.destroy();
      return true;
    case "stall":
      if (line.textOf("at") === "body")
        socket.write(Buffer.concat([Buffer.from(formatHead(answer)), firstHalf(answer)]));
      await waitWhileConnected(clock, socket, Number.POSITIVE_INFINITY);
      return true;
    case "slow-headers": {
      const [statusLine = "", ...others] = formatHead(answer).split("\r\n");
      socket.write(`${statusLine}\r\n`);
      await waitWhileConnected(clock, socket, line.numberOf("by"));
      if (socket.destroyed) return true;
      socket.write(others.join("\r\n"));
      socket.end(answer.body);
      return true;
    }
    case "drip": {
      response.writeHead(answer.status, answer.headers);
      const step = Math.max(1, line.numberOf("bytes"));
      for (let at = 0; at < answer.body.length && !socket.destroyed; at += step) {
        if (at > 0) await waitWhileConnected(clock, socket, line.numberOf("every"));
        response.write(answer.body.subarray(at, at + step));
      }
      response.end();
      return true;
    }
    case "cut":
      truncateBody(line.textOf("how"), line.numberOf("at"), delivery);
      return true;
    default:
      return false;
  }
}

function truncateBody(how: string, wanted: number, { socket, plainResponse: answer }: Delivery): void {
  const { body } = answer;
  const at = Math.min(wanted < 0 ? Math.floor(body.length / 2) : wanted, Math.max(0, body.length - 1));
  const part = body.subarray(0, at);
  switch (how) {
    case "length":
      socket.end(Buffer.concat([Buffer.from(formatHead(answer)), part]));
      break;
    case "close":
      socket.end(Buffer.concat([Buffer.from(formatHead(answer, {})), part]));
      break;
    case "chunked": {
      const chunk = Buffer.concat([
        Buffer.from(`${part.length.toString(16)}\r\n`),
        part,
        Buffer.from("\r\n"),
      ]);
      socket.end(Buffer.concat([Buffer.from(formatHead(answer, { "transfer-encoding": "chunked" })), chunk]));
      break;
    }
    case "utf8": {
      // The length is honest, so only the decoder can notice: the last character lacks its second byte.
      const halfCharacter = Buffer.concat([part, Buffer.of(0xc3)]);
      socket.end(Buffer.concat([Buffer.from(formatHead({ ...answer, body: halfCharacter })), halfCharacter]));
      break;
    }
    default:
      socket.write(Buffer.concat([Buffer.from(formatHead(answer)), part]), () => socket.resetAndDestroy());
  }
}

/** The head as bytes, for answers that break what ServerResponse would insist on. */
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
 * Keeps the client waiting on purpose, for `ms` or until it goes away. The client's request holds a turned clock still;
 * this wait is one for time, so the hold is waived meanwhile.
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
