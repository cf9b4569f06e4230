import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import { pipeline, Readable } from "node:stream";
import { exitCode, Failure } from "../model/failure.ts";

/** A response: complete before its first byte is sent, unless its body is a stream. */
export interface PageResponse {
  readonly status?: number;
  readonly type:
    | "text/html"
    | "text/plain"
    /** The text format of Prometheus. */
    | "text/plain; version=0.0.4"
    | "text/css"
    | "application/json"
    | "text/javascript"
    | "image/svg+xml"
    | "text/csv"
    | "application/vnd.apache.parquet"
    | "text/event-stream";
  readonly body: string | Uint8Array | Readable;
  /** The body compressed with gzip. */
  readonly gzipped?: Buffer;
  /** For files that never change while the daemon runs: the browser then gets a 304. */
  readonly etag?: string;
  /** The methods of a path, with 405. */
  readonly allow?: string;
}

export type RequestHandler = (query: URLSearchParams) => PageResponse | Promise<PageResponse>;

/** `signal` aborts when the client is gone before it has the whole response. */
export type PostHandler = (body: string, signal: AbortSignal) => Promise<PageResponse>;

interface DashboardServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Names accepted in the Host header besides localhost and IP addresses. */
  readonly allowedHosts: readonly string[];
  /** By path, without the query. */
  readonly routes: ReadonlyMap<string, RequestHandler>;
  /** Paths that accept POST, from pages of this server only. */
  readonly posts?: ReadonlyMap<string, PostHandler>;
  readonly onError: (error: unknown) => void;
  /** How long a client may take to send a request, and how long a transfer may stall. */
  readonly idleTimeoutMs?: number;
}

export interface DashboardServer {
  /** For people: `http://127.0.0.1:9464/`. */
  readonly address: string;
  close(): Promise<void>;
}

const DEFAULT_IDLE_TIMEOUT_MS = 10_000;
const MAX_HEADER_BYTES = 8 * 1024;
const MAX_CONNECTIONS = 256;
/** The response to the last one says `Connection: close`, so a well-behaved client reconnects. */
const MAX_REQUESTS_PER_CONNECTION = 16;
const MAX_BODY_BYTES = 256 * 1024;
/** How long a stream may be silent: a query may need its time between two rows. */
const STREAM_TIMEOUT_MS = 60_000;

const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** Serves the dashboard, only for allowed Host headers. Pages are for GET and HEAD; POST is for its own pages. */
export async function startHttpServer(options: DashboardServerOptions): Promise<DashboardServer> {
  const { idleTimeoutMs = DEFAULT_IDLE_TIMEOUT_MS } = options;
  const limits = { maxHeaderSize: MAX_HEADER_BYTES, connectionsCheckingInterval: idleTimeoutMs / 2 };
  const server = createServer(limits, (request, response) => {
    const gone = new AbortController();
    response.once("close", () => response.writableFinished || gone.abort());
    handle(request, options, gone.signal)
      .catch((error: unknown) => {
        options.onError(error);
        return textResponse(500, "this page failed; see the log for the reason");
      })
      .then((page) => {
        // Set only now: a page that takes long to read must not time out.
        response.setTimeout(page.body instanceof Readable ? STREAM_TIMEOUT_MS : idleTimeoutMs);
        send(request, response, page);
      })
      .catch(options.onError);
  });
  server.headersTimeout = idleTimeoutMs;
  server.requestTimeout = idleTimeoutMs;
  server.keepAliveTimeout = idleTimeoutMs;
  // Unread responses stay in memory. A client that pipelines more requests than allowed does not intend to read them.
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  server.on("dropRequest", (_request, socket) => socket.destroy());
  limitConnections(server);
  const port = await listen(server, options);
  const urlHost = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    address: `http://${urlHost}:${port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Checks the Host header first: a page of another site must not reach this server by DNS rebinding. */
async function handle(
  request: IncomingMessage,
  { allowedHosts, routes: pages, posts }: DashboardServerOptions,
  signal: AbortSignal,
): Promise<PageResponse> {
  if (!isAllowedHost(request.headers.host, allowedHosts)) {
    return textResponse(421, "this host name is not allowed: add it to http.allowedHosts");
  }
  // The raw path, neither decoded nor resolved, so that it cannot be disguised as another path.
  const [path = "", query = ""] = (request.url ?? "").split(/\?(.*)/s, 2);
  const post = posts?.get(path);
  if (post) return handlePost(request, post, signal);
  if (request.method !== "GET" && request.method !== "HEAD")
    return { ...textResponse(405, "only GET is served"), allow: "GET, HEAD" };
  const page = pages.get(path);
  return page
    ? page(new URLSearchParams(query))
    : textResponse(404, `no such page; the pages are ${[...pages.keys()].join(" ")}`);
}

/** A page of another site can send a POST, but not with the origin of this server. */
async function handlePost(
  request: IncomingMessage,
  post: PostHandler,
  signal: AbortSignal,
): Promise<PageResponse> {
  const { method, headers } = request;
  if (method !== "POST") return { ...textResponse(405, "only POST is served"), allow: "POST" };
  if (!isSameOrigin(headers.origin, headers.host))
    return textResponse(403, "only pages of this server may ask");
  if (!/^application\/json\b/.test(headers["content-type"] ?? ""))
    return textResponse(415, "send application/json");
  const body = await readBody(request);
  return body === undefined ? textResponse(413, "the request is too long") : post(body, signal);
}

export function isSameOrigin(origin: string | undefined, host: string | undefined): boolean {
  const here = `http://${host}`;
  if (origin === undefined || !URL.canParse(origin) || !URL.canParse(here)) return false;
  return new URL(origin).host === new URL(here).host;
}

/** Undefined if it is too long. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

export function isAllowedHost(host: string | undefined, allowedHosts: readonly string[]): boolean {
  const name = host?.replace(/:\d*$/, "").toLowerCase();
  if (!name) return false;
  const literal = name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name;
  return (
    name === "localhost" ||
    isIP(literal) !== 0 ||
    allowedHosts.some((allowed) => allowed.toLowerCase() === name)
  );
}

export function textResponse(status: number, text: string): PageResponse {
  return { status, type: "text/plain", body: `${text}\n` };
}

export function jsonResponse(value: unknown, status = 200): PageResponse {
  return { status, type: "application/json", body: Buffer.from(`${JSON.stringify(value)}\n`) };
}

function send(request: IncomingMessage, response: ServerResponse, reply: PageResponse): void {
  const { status = 200, type, etag, gzipped } = reply;
  const headers = {
    ...SECURITY_HEADERS,
    "cache-control": etag ? "no-cache" : "no-store",
    ...(etag ? { etag, vary: "accept-encoding" } : {}),
  };
  if (etag && request.headers["if-none-match"] === etag) {
    response.writeHead(304, headers).end();
    return;
  }
  if (reply.body instanceof Readable) {
    response.writeHead(status, { ...headers, "content-type": type });
    if (request.method === "HEAD") {
      reply.body.destroy();
      response.end();
      return;
    }
    // An error destroys the connection, so that the client does not take a part for the whole.
    pipeline(reply.body, response, () => {});
    return;
  }
  const isGzipped = gzipped !== undefined && /\bgzip\b/.test(String(request.headers["accept-encoding"]));
  const bytes = isGzipped ? gzipped : typeof reply.body === "string" ? Buffer.from(reply.body) : reply.body;
  response.writeHead(status, {
    ...headers,
    ...(isGzipped ? { "content-encoding": "gzip" } : {}),
    ...(reply.allow === undefined ? {} : { allow: reply.allow }),
    "content-type": `${type}; charset=utf-8`,
    "content-length": bytes.length,
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
}

function listen(server: Server, { host, port }: DashboardServerOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      // A port in use may become free; a foreign address or a privileged port will not.
      const isTaken = error.code === "EADDRINUSE";
      reject(
        new Failure(`the dashboard cannot listen on ${host}:${port} (${error.code})`, {
          family: isTaken ? "retry" : "operator",
          code: "http_port",
          remedy: "choose another http.port (MDS_HTTP_PORT), or 0 for any free one",
          exit: isTaken ? exitCode.tryLater : exitCode.usage,
        }),
      );
    });
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : port);
    });
  });
}

/**
 * Closes the least recently used connection beyond the limit. Node's `maxConnections` refuses the newest instead: many
 * idle connections would then block a health check.
 */
function limitConnections(server: Server): void {
  const connections = new Set<Socket>();
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    const [leastRecentlyUsed] = connections;
    if (connections.size <= MAX_CONNECTIONS || !leastRecentlyUsed) return;
    connections.delete(leastRecentlyUsed);
    leastRecentlyUsed.destroy();
  });
  server.on("request", ({ socket }) => {
    if (connections.delete(socket)) connections.add(socket);
  });
}
