import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import type { PlainAnswer } from "../rest/http-types.ts";
import type { Strike } from "./script.ts";

/** How the answer's bytes reach the client, or do not. */
export interface Delivery {
  socket: Socket;
  response: ServerResponse;
  answer: PlainAnswer;
  clock: Clock;
}

const words = ["latency", "slow-headers", "drip", "stall", "reset", "hang-up", "cut"];

/** Whether the fault has to do with delivery, given whether the connection has carried a request before. */
export function concernsDelivery({ line }: Strike, isReused: boolean): boolean {
  return words.includes(line.word.word) && (isReused || line.textOf("socket") !== "reused");
}

export function sendAnswer(response: ServerResponse, { status, headers, body }: PlainAnswer): void {
  // A 204 has no body, and a length would promise one.
  const { "content-length": length, ...others } = headers;
  response.writeHead(status, status === 204 || length === undefined ? others : headers);
  response.end(body);
}

/** Waits that come before the answer; true when the client is still there afterwards. */
export async function delay({ line }: Strike, { socket, clock }: Delivery): Promise<boolean> {
  if (line.word.word === "latency") await keepWaiting(clock, socket, line.numberOf("by"));
  return !socket.destroyed;
}

/** Delivers the answer as this fault would; false when the fault only delays it. */
export async function deliver(strike: Strike, delivery: Delivery): Promise<boolean> {
  const { line } = strike;
  const { socket, answer, clock, response } = delivery;
  switch (line.word.word) {
    case "reset":
      socket.resetAndDestroy();
      return true;
    case "hang-up":
      socket.destroy();
      return true;
    case "stall":
      if (line.textOf("at") === "body")
        socket.write(Buffer.concat([Buffer.from(rawHead(answer)), half(answer)]));
      await keepWaiting(clock, socket, Number.POSITIVE_INFINITY);
      return true;
    case "slow-headers": {
      const [statusLine = "", ...others] = rawHead(answer).split("\r\n");
      socket.write(`${statusLine}\r\n`);
      await keepWaiting(clock, socket, line.numberOf("by"));
      if (socket.destroyed) return true;
      socket.write(others.join("\r\n"));
      socket.end(answer.body);
      return true;
    }
    case "drip": {
      response.writeHead(answer.status, answer.headers);
      const step = Math.max(1, line.numberOf("bytes"));
      for (let at = 0; at < answer.body.length && !socket.destroyed; at += step) {
        if (at > 0) await keepWaiting(clock, socket, line.numberOf("every"));
        response.write(answer.body.subarray(at, at + step));
      }
      response.end();
      return true;
    }
    case "cut":
      cut(line.textOf("how"), line.numberOf("at"), delivery);
      return true;
    default:
      return false;
  }
}

function cut(how: string, wanted: number, { socket, answer }: Delivery): void {
  const { body } = answer;
  const at = Math.min(wanted < 0 ? Math.floor(body.length / 2) : wanted, Math.max(0, body.length - 1));
  const part = body.subarray(0, at);
  switch (how) {
    case "length":
      socket.end(Buffer.concat([Buffer.from(rawHead(answer)), part]));
      break;
    case "close":
      socket.end(Buffer.concat([Buffer.from(rawHead(answer, {})), part]));
      break;
    case "chunked": {
      const chunk = Buffer.concat([
        Buffer.from(`${part.length.toString(16)}\r\n`),
        part,
        Buffer.from("\r\n"),
      ]);
      socket.end(Buffer.concat([Buffer.from(rawHead(answer, { "transfer-encoding": "chunked" })), chunk]));
      break;
    }
    case "utf8": {
      // The length is honest, so only the decoder can notice: the last character lacks its second byte.
      const halfCharacter = Buffer.concat([part, Buffer.of(0xc3)]);
      socket.end(Buffer.concat([Buffer.from(rawHead({ ...answer, body: halfCharacter })), halfCharacter]));
      break;
    }
    default:
      socket.write(Buffer.concat([Buffer.from(rawHead(answer)), part]), () => socket.resetAndDestroy());
  }
}

/** The head as bytes, for answers that break what ServerResponse would insist on. */
function rawHead(
  { status, headers, body }: PlainAnswer,
  framing: Record<string, string> = lengthOf(body),
): string {
  const lines = Object.entries({ ...headers, ...framing, connection: "close" })
    .filter(([name]) => name !== "content-length" || "content-length" in framing)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Simulated\r\n${lines.join("")}\r\n`;
}

const lengthOf = (body: Uint8Array) => ({ "content-length": String(body.length) });
const half = ({ body }: PlainAnswer) => body.subarray(0, body.length >> 1);

/**
 * Keeps the client waiting on purpose, for `ms` or until it goes away. The client's request holds a turned clock still;
 * this wait is one for time, so the hold is waived meanwhile.
 */
export function keepWaiting(clock: Clock, socket: Socket, ms: number): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  const resume = clock.waive();
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
