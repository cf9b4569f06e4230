import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import { exitCode, Failure } from "../model/failure.ts";

/** A response, complete before its first byte is sent. */
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
    | "image/svg+xml";
  readonly body: string | Uint8Array;
  /** The body compressed with gzip. */
  readonly gzipped?: Buffer;
  /** For files that never change while the daemon runs: the browser then gets a 304. */
  readonly etag?: string;
}

export type RequestHandler = (query: URLSearchParams) => PageResponse | Promise<PageResponse>;

interface DashboardServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Names accepted in the Host header besides localhost and IP addresses. */
  readonly allowedHosts: readonly string[];
  /** By path, without the query. */
  readonly routes: ReadonlyMap<string, RequestHandler>;
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

const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** Serves the dashboard: GET and HEAD only, and only for allowed Host headers. */
export async function startHttpServer(options: DashboardServerOptions): Promise<DashboardServer> {
  const { idleTimeoutMs = DEFAULT_IDLE_TIMEOUT_MS } = options;
  const limits = { maxHeaderSize: MAX_HEADER_BYTES, connectionsCheckingInterval: idleTimeoutMs / 2 };
  const server = createServer(limits, (request, response) => {
    handle(request, options)
      .catch((error: unknown) => {
        options.onError(error);
        return textResponse(500, "this page failed; see the log for the reason");
      })
      .then((page) => {
        // Set only now: a page that takes long to read must not time out.
        response.setTimeout(idleTimeoutMs);
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
  { allowedHosts, routes: pages }: DashboardServerOptions,
): Promise<PageResponse> {
  if (!isAllowedHost(request.headers.host, allowedHosts)) {
    return textResponse(421, "this host name is not allowed: add it to http.allowedHosts");
  }
  if (request.method !== "GET" && request.method !== "HEAD") return textResponse(405, "only GET is served");
  // The raw path, neither decoded nor resolved, so that it cannot be disguised as another path.
  const [path = "", query = ""] = (request.url ?? "").split(/\?(.*)/s, 2);
  const page = pages.get(path);
  return page
    ? page(new URLSearchParams(query))
    : textResponse(404, `no such page; the pages are ${[...pages.keys()].join(" ")}`);
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
  const isGzipped = gzipped !== undefined && /\bgzip\b/.test(String(request.headers["accept-encoding"]));
  const bytes = isGzipped ? gzipped : typeof reply.body === "string" ? Buffer.from(reply.body) : reply.body;
  response.writeHead(status, {
    ...headers,
    ...(isGzipped ? { "content-encoding": "gzip" } : {}),
    ...(status === 405 ? { allow: "GET, HEAD" } : {}),
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
