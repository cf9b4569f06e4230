import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { Failure } from "../../model/failure.ts";
import { MAX_BODY_BYTES, malformedBodyFailure, type ResponseBody } from "../../model/response-body.ts";
import { isLoopback } from "../../model/service-url.ts";
import type { Cancel, Clock } from "../../runtime/clock.ts";
import { ANSWER_TIMEOUT_MS, MAX_SILENCE_MS, MIN_BYTES_PER_SECOND } from "../limits.ts";
import { findRoute, timeoutFailure, toNetworkFailure } from "./network-failures.ts";
import type { ServerClock } from "./server-clock.ts";

interface TransportRequest {
  readonly method: "GET" | "POST";
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly timeoutMs: number;
  /** The timeout is extended up to this while the body arrives fast enough. Default: it is never extended. */
  readonly maxTimeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

export type Transport = ReturnType<typeof createTransport>;
export type TransportResponse = Awaited<ReturnType<Transport["send"]>>;

/** The transport reads at most this much of an error page. */
const MAX_ERROR_BODY_BYTES = 64 * 1024;

export function createTransport({ clock, server }: { clock: Clock; server: ServerClock }) {
  // `watchRoundTrip` limits the whole round trip, slow bodies included; undici's timers only notice silence.
  const connect = { timeout: ANSWER_TIMEOUT_MS };
  const agentOptions = { allowH2: false, headersTimeout: 0, bodyTimeout: 0, connect };
  const directAgent = new Agent(agentOptions);
  let proxyAgent: EnvHttpProxyAgent | undefined;

  /** Loopback requests bypass the proxy: a remote proxy would connect to its own loopback. */
  function dispatcherFor(origin: string): Dispatcher {
    if (isLoopback(new URL(origin))) return directAgent;
    proxyAgent ??= new EnvHttpProxyAgent(agentOptions);
    return proxyAgent;
  }

  /** Resolves once the whole body has arrived. Rejects with a Failure, or with the reason of the signal. */
  async function send(request: TransportRequest) {
    request.signal?.throwIfAborted();
    const timedOut = new AbortController();
    const signal = AbortSignal.any([timedOut.signal, ...(request.signal ? [request.signal] : [])]);
    const { timeoutMs, maxTimeoutMs = timeoutMs } = request;
    const route = findRoute(new URL(request.origin), process.env);
    const onTimeout = (ms: number) => timedOut.abort(timeoutFailure(ms, route));
    const timeout = watchRoundTrip(clock, timeoutMs, maxTimeoutMs, onTimeout);
    const release = clock.beginWork();
    const startedAt = clock.monotonic();
    const requestedAt = clock.boottime();
    let hasResponse = false;
    try {
      const response = await dispatcherFor(request.origin).request({
        method: request.method,
        origin: request.origin,
        path: request.path,
        headers: { ...request.headers, "accept-encoding": "gzip", "cache-control": "no-cache" },
        body: request.body ?? null,
        signal,
      });
      hasResponse = true;
      const header = (name: string) => {
        const value = response.headers[name];
        return Array.isArray(value) ? value[0] : value;
      };
      const isSuccess = response.statusCode >= 200 && response.statusCode < 300;
      const bytes = await readBody(response.body, isSuccess, timeout.addReceived);
      const receivedAt = clock.boottime();
      const dateHeaderMs = parseHttpDate(header("date") ?? "");
      const ageHeaderMs = /^\d+$/.test(header("age") ?? "") ? Number(header("age")) * 1000 : 0;
      const responseAge = server.recordResponse(dateHeaderMs, ageHeaderMs, requestedAt, receivedAt);
      const contentEncoding = (header("content-encoding") ?? "identity").trim().toLowerCase();
      if (isSuccess && !["gzip", "x-gzip", "identity", ""].includes(contentEncoding)) {
        throw malformedBodyFailure("unsupported content encoding");
      }
      return {
        status: response.statusCode,
        body: { bytes, ...responseAge, requestedAt } satisfies ResponseBody,
        /** From the `Retry-After` header; 0 without one. */
        retryAfterMs: parseRetryAfter(header("retry-after"), dateHeaderMs ?? server.now() ?? clock.now()),
        durationMs: clock.monotonic() - startedAt,
        /** Compressed size. `body.bytes` is empty once its memory was transferred to another thread. */
        bodyBytes: bytes.byteLength,
      };
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      if (error instanceof Failure) throw error;
      const failure = toNetworkFailure(error, route);
      // After the headers arrived, a lost connection means a truncated body, not a stale keep-alive connection.
      throw hasResponse && failure.code === "connection_lost"
        ? new Failure(`the connection to ${route.address} broke in the middle of the response`, {
            code: "answer_cut",
            remedy: failure.remedy,
          })
        : failure;
    } finally {
      release();
      timeout.cancel();
    }
  }

  return {
    send,
    async close() {
      await Promise.all([directAgent.destroy(), proxyAgent?.destroy()]);
    },
  };
}

/** Reads a body into one new buffer. Throws if it is too large; of an error page returns the beginning. */
async function readBody(
  stream: AsyncIterable<Uint8Array>,
  isSuccess: boolean,
  onReceived: (bytes: number) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    onReceived(chunk.byteLength);
    size += chunk.byteLength;
    if (isSuccess && size > MAX_BODY_BYTES) throw malformedBodyFailure("larger than the limit");
    if (!isSuccess && size > MAX_ERROR_BODY_BYTES) break;
    chunks.push(chunk);
  }
  // A copy: small buffers share one slab, and transferring one to a thread would detach the others.
  return new Uint8Array(Buffer.concat(chunks));
}

/** A link that is faster may need more than `timeoutMs` for a large page. */
const MIN_BYTES_PER_WINDOW = (MIN_BYTES_PER_SECOND * ANSWER_TIMEOUT_MS) / 1000;

/** Aborts a request after its timeout, but extends the timeout as long as every window brings enough bytes. */
function watchRoundTrip(
  clock: Clock,
  timeoutMs: number,
  maxTimeoutMs: number,
  /** Called with the time that has passed. */
  onTimeout: (ms: number) => void,
) {
  const startedAt = clock.monotonic();
  const deadline = startedAt + Math.max(timeoutMs, maxTimeoutMs);
  let received = 0;
  let cancel: Cancel;
  const startWindow = (windowMs: number) => {
    const before = received;
    cancel = clock.after(windowMs, () => {
      const remainingMs = deadline - clock.monotonic();
      const isFastEnough = maxTimeoutMs > timeoutMs && received - before >= MIN_BYTES_PER_WINDOW;
      if (isFastEnough && remainingMs > 0) startWindow(Math.min(ANSWER_TIMEOUT_MS, remainingMs));
      else onTimeout(clock.monotonic() - startedAt);
    });
  };
  const first = Math.min(ANSWER_TIMEOUT_MS, timeoutMs);
  cancel = clock.after(timeoutMs - first, () => startWindow(first));
  const addReceived = (bytes: number) => {
    received += bytes;
  };
  return { addReceived, cancel: () => cancel() };
}

/** The three date formats of HTTP, with the day: IMF-fixdate, RFC 850 and asctime. */
const httpDates = [
  /^[a-z]{3}, (\d{2}) [a-z]{3} \d{4} \d{2}:\d{2}:\d{2} gmt$/i,
  /^[a-z]{6,9}, (\d{2})-[a-z]{3}-\d{2} \d{2}:\d{2}:\d{2} gmt$/i,
  /^[a-z]{3} [a-z]{3} ([ \d]\d) \d{2}:\d{2}:\d{2} \d{4}$/i,
];

/**
 * `Date.parse` alone would read asctime, which has no zone, as local time, garbage such as "7 apples" as a year, and 31 February as
 * a day of March.
 */
export function parseHttpDate(text: string): number | undefined {
  const given = text.trim();
  const day = httpDates.map((format) => format.exec(given)?.[1]).find((found) => found !== undefined);
  const ms = Date.parse(/gmt$/i.test(given) ? given : `${given} GMT`);
  return day !== undefined && new Date(ms).getUTCDate() === Number(day) ? ms : undefined;
}

/**
 * Returns the wait in milliseconds; 0 for a missing or unusable header. A date is compared with `respondedAt`, the `Date`
 * of the same response, so that a wrong clock on either side does no harm.
 */
export function parseRetryAfter(header: string | undefined, respondedAt: number): number {
  if (header === undefined) return 0;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, MAX_SILENCE_MS);
  const date = parseHttpDate(text);
  if (date === undefined) return 0;
  return Math.min(Math.max(0, date - respondedAt), MAX_SILENCE_MS);
}
