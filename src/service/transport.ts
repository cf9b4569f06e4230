import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { type Body, LARGEST_BODY, malformedBody } from "../model/body.ts";
import { exitCode, Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import { ExchangeDeadline } from "./exchange-deadline.ts";
import { parseHttpDate } from "./http-date.ts";
import { networkFailure } from "./network-failure.ts";
import { retryAfterMs } from "./retry-after.ts";
import type { ServerClock } from "./server-clock.ts";

export interface Sending {
  readonly method: "GET" | "POST";
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly deadlineMs: number;
  /** While the body keeps coming in well, the deadline may be put off until this; without it, never. */
  readonly longestMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface Answer {
  readonly status: number;
  readonly body: Body;
  /** What `Retry-After` asks for; 0 without one. */
  readonly retryAfterMs: number;
  readonly ms: number;
}

export interface Transport {
  /** One whole exchange, body included. Rejects with a Failure, or with the reason of the signal. */
  send(sending: Sending): Promise<Answer>;
  close(): Promise<void>;
}

/** An error page needs no more than this; the rest of it stays on the wire. */
const LARGEST_ERROR_BODY = 64 * 1024;

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Checks an address of the settings: https, or plain http to this very machine. */
export function checkedAddress(name: string, text: string): URL {
  const refuse = (why: string) =>
    new Failure(`${name} ${why}`, {
      family: "operator",
      code: "bad_address",
      remedy: "give an https address (plain http is for localhost alone)",
      exit: exitCode.usage,
    });
  if (!URL.canParse(text)) throw refuse("is not an address");
  const url = new URL(text);
  const secure = url.protocol === "https:" || url.protocol === "wss:";
  const plain = url.protocol === "http:" || url.protocol === "ws:";
  if (!secure && !plain) throw refuse(`has the scheme ${url.protocol}`);
  if (plain && !loopback.test(url.hostname)) throw refuse("would send credentials in plain text");
  if (url.username || url.password) throw refuse("carries a user name or password");
  return url;
}

export function createTransport({ clock, server }: { clock: Clock; server: ServerClock }): Transport {
  // Our deadline covers the whole exchange, a dripping body included; undici's own timers are blind to that.
  const options = { allowH2: false, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 10_000 } };
  const direct = new Agent(options);
  let proxied: EnvHttpProxyAgent | undefined;

  /** The proxy is never asked for this machine itself: a proxy elsewhere would look at its own loopback. */
  function dispatcherFor(origin: string): Dispatcher {
    if (loopback.test(new URL(origin).hostname)) return direct;
    proxied ??= new EnvHttpProxyAgent(options);
    return proxied;
  }

  async function send(sending: Sending): Promise<Answer> {
    const { signal } = sending;
    signal?.throwIfAborted();
    const ending = new AbortController();
    const abort = () => ending.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    const { deadlineMs, longestMs = deadlineMs } = sending;
    const onMissed = (failure: Failure) => ending.abort(failure);
    const deadline = new ExchangeDeadline({ clock, deadlineMs, longestMs, onMissed });
    const release = clock.hold();
    const begun = clock.monotonic();
    const askedAt = clock.boottime();
    let answering = false;
    try {
      const response = await dispatcherFor(sending.origin).request({
        method: sending.method,
        origin: sending.origin,
        path: sending.path,
        headers: { ...sending.headers, "accept-encoding": "gzip", "cache-control": "no-cache" },
        body: sending.body ?? null,
        signal: ending.signal,
      });
      answering = true;
      const header = (name: string) => {
        const value = response.headers[name];
        return Array.isArray(value) ? value[0] : value;
      };
      const ok = response.statusCode >= 200 && response.statusCode < 300;
      const chunks = counted(response.body, (size) => deadline.received(size));
      const bytes = await collect(chunks, ok ? LARGEST_BODY : LARGEST_ERROR_BODY, ok);
      const answeredAt = clock.boottime();
      const serverTime = parseHttpDate(header("date") ?? "", clock.now());
      const admittedAge = /^\d+$/.test(header("age") ?? "") ? Number(header("age")) * 1000 : 0;
      const freshness = server.learn(serverTime, admittedAge, askedAt, answeredAt);
      const coding = (header("content-encoding") ?? "identity").trim().toLowerCase();
      if (ok && !["gzip", "x-gzip", "identity", ""].includes(coding)) {
        throw malformedBody("an encoding that was not asked for");
      }
      return {
        status: response.statusCode,
        body: { bytes, ...freshness, askedAt },
        retryAfterMs: retryAfterMs(header("retry-after"), serverTime ?? server.now() ?? clock.now()),
        ms: clock.monotonic() - begun,
      };
    } catch (error) {
      if (ending.signal.aborted) throw ending.signal.reason;
      if (error instanceof Failure) throw error;
      const failure = networkFailure(error);
      // Once the answer has begun, a break means a cut page, not a connection that had gone stale.
      throw answering && failure.code === "connection_lost"
        ? new Failure("the answer was cut short", { family: "retry", code: "answer_cut" })
        : failure;
    } finally {
      release();
      deadline.cancel();
      signal?.removeEventListener("abort", abort);
    }
  }

  return {
    send,
    async close() {
      await Promise.all([direct.destroy(), proxied?.destroy()]);
    },
  };
}

async function* counted(
  stream: AsyncIterable<Uint8Array>,
  count: (size: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    count(chunk.byteLength);
    yield chunk;
  }
}

/** All bytes of a stream in one buffer of their own. Beyond `cap` it throws, or keeps the beginning if `strict` is off. */
async function collect(
  stream: AsyncIterable<Uint8Array>,
  cap: number,
  strict: boolean,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > cap) {
      if (strict) throw malformedBody("larger than the cap");
      break;
    }
    chunks.push(chunk);
  }
  // Not Buffer.concat: its small buffers share one slab, and transferring one would take the others along.
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
