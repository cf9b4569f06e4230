import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { isIP, type Socket } from "node:net";
import { type Duplex, pipeline, Readable } from "node:stream";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { errorCode, Failure } from "../model/failure.ts";

export interface HttpRequest {
  readonly method: string;
  /** As it was sent, neither decoded nor resolved, so that it cannot be disguised as another path. */
  readonly path: string;
  /** What follows the question mark. */
  readonly search: string;
  readonly headers: IncomingHttpHeaders;
  /** Of the other end of the connection. */
  readonly address: string;
  /** Aborts when the client is gone before it has the complete response. */
  readonly signal: AbortSignal;
  /** Undefined if the body is longer. */
  readBody(maxBytes: number): Promise<string | undefined>;
}

/** Complete before its first byte is sent, unless its body is a stream. */
export interface HttpResponse {
  readonly status?: number;
  /** The content type. */
  readonly type: string;
  readonly body: string | Uint8Array | Readable;
  readonly headers?: Readonly<Record<string, string>>;
  /** For a body that never changes while the server runs: a client that has it gets a 304. */
  readonly etag?: string;
}

interface HttpServerOptions {
  /** For messages: `the dashboard`. */
  readonly name: string;
  /** For messages: the setting of its port. */
  readonly portSetting: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** `raw`: for a handler that sends the response itself; its promise then never settles. */
  readonly respond: (request: HttpRequest, raw: ServerResponse) => Promise<HttpResponse>;
  /** Takes over a connection that becomes a websocket. It no longer counts as one of this server. */
  readonly upgrade?: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Headers of every response. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly maxConnections?: number;
  /** The response to the last one says `Connection: close`, so a well-behaved client reconnects. */
  readonly maxRequestsPerConnection?: number;
  readonly maxHeaderBytes?: number;
  /** How long a client may take to send a request, and how long a transfer may stall. */
  readonly idleTimeoutMs?: number;
  readonly keepAliveTimeoutMs?: number;
  /** How long a stream may be silent; 0: for ever. */
  readonly streamTimeoutMs?: number;
  readonly onError: (error: unknown) => void;
}

export type HttpServer = Awaited<ReturnType<typeof startHttpServer>>;

const DEFAULT_IDLE_TIMEOUT_MS = 10_000;
const DEFAULT_STREAM_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_CONNECTIONS = 256;
const DEFAULT_MAX_HEADER_BYTES = 8 * 1024;
/** A shorter body is not worth the time. */
const MIN_COMPRESSED_BYTES = 1_024;
const compress = promisify<string | Uint8Array, { level: number }, Buffer>(gzip);

/** The server of the pages, of `serve` and of the control port: limits, compression, etags and the end are the same. */
export async function startHttpServer(options: HttpServerOptions) {
  const { idleTimeoutMs = DEFAULT_IDLE_TIMEOUT_MS, tls, upgrade } = options;
  const limits = {
    maxHeaderSize: options.maxHeaderBytes ?? DEFAULT_MAX_HEADER_BYTES,
    connectionsCheckingInterval: idleTimeoutMs / 2,
  };
  const sender = new ResponseSender(options, (socket) => markUsed(socket));
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    options
      .respond(readRequest(request, response), response)
      .catch((error: unknown): HttpResponse => {
        options.onError(error);
        const body = "this request failed; see the log for the reason\n";
        return { status: 500, type: "text/plain; charset=utf-8", body };
      })
      .then((reply) => sender.send(request, response, reply))
      .catch((error: unknown) => {
        response.destroy();
        options.onError(error);
      });
  };
  const server = tls ? createTlsServer({ ...limits, ...tls }, handle) : createServer(limits, handle);
  server.headersTimeout = idleTimeoutMs;
  server.requestTimeout = idleTimeoutMs;
  server.keepAliveTimeout = options.keepAliveTimeoutMs ?? idleTimeoutMs;
  // Unread responses stay in memory. A client that pipelines more requests than allowed does not intend to read them.
  server.maxRequestsPerSocket = options.maxRequestsPerConnection ?? 0;
  server.on("dropRequest", (_request, socket) => socket.destroy());
  const { markUsed, release } = limitConnections(server, options.maxConnections ?? DEFAULT_MAX_CONNECTIONS);
  if (upgrade)
    server.on("upgrade", (request, socket, head) => {
      release(request.socket);
      upgrade(request, socket, head);
    });
  const port = await listen(server, options);
  const urlHost = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    /** `http://127.0.0.1:9464` */
    origin: `${tls ? "https" : "http"}://${urlHost}:${port}`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** A name that no other site can have: localhost, an IP address, or one of the settings. Guards against DNS rebinding. */
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

export function isSameOrigin(origin: string | undefined, host: string | undefined): boolean {
  const here = `http://${host}`;
  if (origin === undefined || !URL.canParse(origin) || !URL.canParse(here)) return false;
  return new URL(origin).host === new URL(here).host;
}

function readRequest(request: IncomingMessage, response: ServerResponse): HttpRequest {
  const gone = new AbortController();
  response.once("close", () => response.writableFinished || gone.abort());
  const [path = "", search = ""] = (request.url ?? "").split(/\?(.*)/s, 2);
  return {
    method: request.method ?? "",
    path,
    search,
    headers: request.headers,
    address: request.socket.remoteAddress ?? "",
    signal: gone.signal,
    readBody: (maxBytes) => readBody(request, maxBytes),
  };
}

/** Reads to the end, whatever the length: a connection closed before would lose the response. */
async function readBody(request: AsyncIterable<Buffer>, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length <= maxBytes) chunks.push(chunk);
  }
  return length <= maxBytes ? Buffer.concat(chunks).toString() : undefined;
}

class ResponseSender {
  readonly #options: HttpServerOptions;
  readonly #markUsed: (socket: Socket) => void;
  /** By etag. */
  readonly #compressed = new Map<string, Buffer>();

  constructor(options: HttpServerOptions, markUsed: (socket: Socket) => void) {
    this.#options = options;
    this.#markUsed = markUsed;
  }

  async send(request: IncomingMessage, response: ServerResponse, reply: HttpResponse): Promise<void> {
    const { status = 200, type, etag, body } = reply;
    const headers = {
      ...this.#options.headers,
      "x-content-type-options": "nosniff",
      "cache-control": etag ? "no-cache" : "no-store",
      vary: "accept-encoding",
      ...(etag ? { etag } : {}),
      ...reply.headers,
    };
    // Set only now: a response that takes long to make must not time out.
    const { idleTimeoutMs = DEFAULT_IDLE_TIMEOUT_MS, streamTimeoutMs = DEFAULT_STREAM_TIMEOUT_MS } =
      this.#options;
    response.setTimeout(body instanceof Readable ? streamTimeoutMs : idleTimeoutMs);
    if (etag && request.headers["if-none-match"] === etag) {
      response.writeHead(304, headers).end();
      return;
    }
    if (body instanceof Readable) {
      response.writeHead(status, { ...headers, "content-type": type });
      if (request.method === "HEAD") {
        body.destroy();
        response.end();
        return;
      }
      // A page that is left open makes no further requests, but it is in use.
      body.on("data", () => this.#markUsed(request.socket));
      // An error destroys the connection, so that the client does not mistake a part for the complete body.
      pipeline(body, response, () => {});
      return;
    }
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    const isCompressed = bytes.length >= MIN_COMPRESSED_BYTES && acceptsGzip(request);
    const sent = isCompressed ? await this.#compress(bytes, etag) : bytes;
    response.writeHead(status, {
      ...headers,
      ...(isCompressed ? { "content-encoding": "gzip" } : {}),
      "content-type": type,
      "content-length": sent.length,
    });
    response.end(request.method === "HEAD" ? undefined : sent);
  }

  /** What never changes is compressed once, and well. */
  async #compress(bytes: Uint8Array, etag: string | undefined): Promise<Buffer> {
    if (etag === undefined) return compress(bytes, { level: 1 });
    const known = this.#compressed.get(etag) ?? (await compress(bytes, { level: 6 }));
    this.#compressed.set(etag, known);
    return known;
  }
}

function acceptsGzip(request: IncomingMessage): boolean {
  const offers = String(request.headers["accept-encoding"] ?? "").split(",");
  return offers.some((offer) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(offer));
}

function listen(server: Server, { name, portSetting, host, port }: HttpServerOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      // A port in use may become free; a foreign address or a privileged port will not.
      const code = errorCode(error);
      const isTaken = code === "EADDRINUSE";
      reject(
        new Failure(`${name} cannot listen on ${host}:${port} (${code})`, {
          family: isTaken ? "retry" : "operator",
          code: "http_port",
          remedy: `choose another ${portSetting}, or 0 for any free one`,
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
function limitConnections(server: Server, maxConnections: number) {
  const connections = new Set<Socket>();
  const release = (socket: Socket) => connections.delete(socket);
  const markUsed = (socket: Socket) => {
    if (connections.delete(socket)) connections.add(socket);
  };
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.once("close", () => release(socket));
    const [leastRecentlyUsed] = connections;
    if (connections.size <= maxConnections || !leastRecentlyUsed) return;
    connections.delete(leastRecentlyUsed);
    leastRecentlyUsed.destroy();
  });
  server.on("request", ({ socket }) => markUsed(socket));
  return { markUsed, release };
}
