import type { Socket } from "node:net";
import { type Conditions, type Delivery, type Fault, httpFault, type Options } from "../fault.ts";
import type { PlainResponse } from "../plain-response.ts";
import { waitWhileConnected } from "./responses.ts";

/** Delays the response. */
export function latency(ms: number, conditions: Conditions = {}): Fault {
  return httpFault("latency", conditions, { latencyMs: ms });
}

/** Sends the status line at once and the rest after this delay. */
export function slowHeaders(conditions: Conditions = {}, ms = 60_000): Fault {
  return httpFault("slowHeaders", conditions, {
    async deliver({ socket, response, clock }) {
      const [statusLine = "", ...others] = formatHead(response).split("\r\n");
      socket.write(`${statusLine}\r\n`);
      await waitWhileConnected(clock, socket, ms);
      if (socket.destroyed) return true;
      socket.write(others.join("\r\n"));
      socket.end(response.body);
      return true;
    },
  });
}

/** Sends the body a few bytes at a time. */
export function drip(options: Options<{ every?: number; bytes?: number }> = {}): Fault {
  const { every = 5_000, bytes = 1 } = options;
  return httpFault("drip", options, {
    async deliver({ socket, rawResponse, response, clock }) {
      rawResponse.writeHead(response.status, response.headers);
      for (let at = 0; at < response.body.length && !socket.destroyed; at += bytes) {
        if (at > 0) await waitWhileConnected(clock, socket, every);
        rawResponse.write(response.body.subarray(at, at + bytes));
      }
      rawResponse.end();
      return true;
    },
  });
}

/** Never responds, or stops in the middle of the body. */
export function stall(options: Options<{ at?: "start" | "body" }> = {}): Fault {
  return httpFault("stall", options, {
    async deliver({ socket, response, clock }) {
      const { body } = response;
      if (options.at === "body") socket.write(join(formatHead(response), body.subarray(0, body.length >> 1)));
      await waitWhileConnected(clock, socket, Number.POSITIVE_INFINITY);
      return true;
    },
  });
}

/** `socket`: only on a connection that has served a request before. */
type SocketOption = Options<{ socket?: "reused" }>;

function endConnection(name: string, options: SocketOption, end: (socket: Socket) => void): Fault {
  return httpFault(name, options, {
    deliver({ socket, isReused }) {
      if (options.socket === "reused" && !isReused) return false;
      end(socket);
      return true;
    },
  });
}

/** Resets the connection instead of responding. */
export const reset = (options: SocketOption = {}): Fault =>
  endConnection("reset", options, (socket) => socket.resetAndDestroy());

/** Closes the connection instead of responding. */
export const hangUp = (options: SocketOption = {}): Fault =>
  endConnection("hangUp", options, (socket) => socket.destroy());

type Cut = "length" | "close" | "chunked" | "utf8" | "reset";

/** Truncates a body of more than `above` bytes after `at` bytes (default: half of it). */
export function cut(how: Cut, options: Options<{ at?: number; above?: number }> = {}): Fault {
  const { at, above = 0 } = options;
  return httpFault(`cut ${how}`, options, {
    deliver(delivery) {
      const { length } = delivery.response.body;
      if (length <= above) return false;
      truncateBody(how, Math.min(at ?? length >> 1, Math.max(0, length - 1)), delivery);
      return true;
    },
  });
}

function truncateBody(how: Cut, end: number, { socket, response }: Delivery): void {
  const part = response.body.subarray(0, end);
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
    case "reset":
      socket.write(join(formatHead(response), part), () => socket.resetAndDestroy());
  }
}

const join = (...parts: (string | Uint8Array)[]) => Buffer.concat(parts.map((each) => Buffer.from(each)));

/** Formats status line and headers, for responses that ServerResponse refuses to send. */
function formatHead(
  { status, headers, body }: PlainResponse,
  framing: Record<string, string> = { "content-length": String(body.length) },
): string {
  const lines = Object.entries({ ...headers, ...framing, connection: "close" })
    .filter(([name]) => name !== "content-length" || "content-length" in framing)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Simulated\r\n${lines.join("")}\r\n`;
}
