import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { exitCode, Failure } from "../../model/failure.ts";
import { type Body, LARGEST_BODY, malformedBody } from "../../model/response-body.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { parseHttpDate, retryAfterMs } from "./http-headers.ts";
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

/** Over so much time the bytes are counted. */
const WINDOW_MS = 10_000;
/** A link that brings less than 16 KiB a second is as good as none; one that brings more would never finish a large page in time. */
const LEAST_BYTES = (16 * 1024 * WINDOW_MS) / 1000;

interface DeadlineOptions {
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** How far the deadline may be put off while bytes keep coming. */
  readonly longestMs: number;
  readonly onMissed: (failure: Failure) => void;
}

/** Ends an exchange at its deadline, unless its body is coming in well: then it looks again and again until it no longer does. */
export class ExchangeDeadline {
  readonly #options: DeadlineOptions;
  readonly #endsAt: number;
  #received = 0;
  #counted = 0;
  #cancel: Cancel;

  constructor(options: DeadlineOptions) {
    this.#options = options;
    const { clock, deadlineMs, longestMs } = options;
    this.#endsAt = clock.monotonic() + Math.max(deadlineMs, longestMs);
    const first = Math.min(WINDOW_MS, deadlineMs);
    this.#cancel = clock.after(deadlineMs - first, () => this.#count(first));
  }

  received(bytes: number): void {
    this.#received += bytes;
  }

  cancel(): void {
    this.#cancel();
  }

  #count(windowMs: number): void {
    this.#counted = this.#received;
    this.#cancel = this.#options.clock.after(windowMs, () => this.#look());
  }

  #look(): void {
    const { clock, deadlineMs, longestMs, onMissed } = this.#options;
    const leftMs = this.#endsAt - clock.monotonic();
    const isComing = longestMs > deadlineMs && this.#received - this.#counted >= LEAST_BYTES;
    if (isComing && leftMs > 0) this.#count(Math.min(WINDOW_MS, leftMs));
    else onMissed(new Failure("the service did not answer in time", { family: "retry", code: "timeout" }));
  }
}

interface Kind {
  code: string;
  words: string;
  remedy?: string;
}

const noFiles: Kind = {
  code: "too_many_files",
  words: "no file descriptor left",
  remedy: "raise the limit of open files",
};
const lost: Kind = { code: "connection_lost", words: "the connection broke" };
const kinds: Record<string, Kind> = {
  ECONNREFUSED: { code: "connection_refused", words: "the service refused the connection" },
  ENOTFOUND: {
    code: "dns_failed",
    words: "the service's name is unknown",
    remedy: "check the address and the name server",
  },
  EAI_AGAIN: { code: "dns_failed", words: "the name server did not answer" },
  UND_ERR_CONNECT_TIMEOUT: { code: "connect_timeout", words: "no connection in time" },
  ETIMEDOUT: { code: "connect_timeout", words: "no connection in time" },
  EHOSTUNREACH: { code: "network_unreachable", words: "no route to the service" },
  ENETUNREACH: { code: "network_unreachable", words: "no network" },
  EMFILE: noFiles,
  ENFILE: noFiles,
  ECONNRESET: lost,
  EPIPE: lost,
  UND_ERR_SOCKET: lost,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: lost,
};

const tls: Kind = {
  code: "tls_failed",
  words: "the service's certificate or its TLS was not accepted",
  remedy: "check the certificate, the clock, and NODE_EXTRA_CA_CERTS if a proxy re-signs",
};
const tlsCode =
  /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH|INVALID_CA|EPROTO)/;

/** The error's code or that of what lies beneath it: undici and happy eyeballs wrap. */
function codesOf(error: unknown, depth = 0): string[] {
  if (typeof error !== "object" || error === null || depth > 4) return [];
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  return [...(typeof code === "string" ? [code] : []), ...inner.flatMap((each) => codesOf(each, depth + 1))];
}

/** What went wrong below HTTP. All of it heals by waiting; nothing of it is ever retried less securely. */
export function networkFailure(error: unknown): Failure {
  const codes = codesOf(error);
  const known = codes
    .map((code) => (tlsCode.test(code) ? tls : kinds[code]))
    .find((kind) => kind !== undefined);
  const kind = known ?? { code: "network_failed", words: "the exchange with the service failed" };
  // Errors of undici carry no headers; even so only the codes are passed on, not the object.
  const because = codes.length > 0 ? ` (${[...new Set(codes)].join(", ")})` : "";
  return new Failure(`${kind.words}${because}`, { family: "retry", code: kind.code, remedy: kind.remedy });
}
