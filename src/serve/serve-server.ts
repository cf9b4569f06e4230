import { readFileSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { createServer as createTlsServer } from "node:https";
import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { SERVE_PRODUCT, WINDOW_HEADER } from "../model/announced-coverage.ts";
import { exitCode, Failure } from "../model/failure.ts";
import type { ServeStatus } from "../model/status/serve-status.ts";
import { formatTimestamp } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { ServeWebSocket } from "./live/websocket-server.ts";
import { findWindowStart } from "./rest/page-coverage.ts";
import { serveRequest } from "./rest/router.ts";
import { ServeError } from "./rest/serve-error.ts";
import type { ServeResponse } from "./rest/serve-response.ts";
import { assertServable, type ServeSettings } from "./serve-settings.ts";
import { type Audience, ServeTokens } from "./serve-tokens.ts";
import { ServedWarehouse } from "./served-warehouse.ts";

const compress = promisify<Buffer, { level: number }, Buffer>(gzip);

interface ServeServerOptions extends ServeSettings {
  readonly clock: Clock;
  readonly log: Log;
}

export interface ServeServer {
  /** The REST address, which is also the audience of REST tokens. */
  readonly baseUrl: string;
  /** The websocket address, which is also the audience of its tokens. */
  readonly wsUrl: string;
  readonly status: ServeStatus;
  close(): Promise<void>;
}

const WEBSOCKET_PATH = "/v3/stream";
/** The specification gives the websocket an address of its own, without a path. */
const WEBSOCKET_PATHS = [WEBSOCKET_PATH, "/v3", "/v3/", "/"];
const TOKEN_PATH = "/v3/oauth/token";
const IDLE_TIMEOUT_MS = 15_000;
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_TOKEN_BODY_BYTES = 16 * 1024;
const MAX_CONNECTIONS = 1_024;
/** A shorter body is not worth the time. */
const MIN_COMPRESSED_BYTES = 1_024;

/** Serves the warehouse with the service's own interface. It only reads. */
export async function startServeServer(options: ServeServerOptions): Promise<ServeServer> {
  await assertServable(options);
  const server = new WarehouseServer(options);
  await server.listen();
  return server;
}

class WarehouseServer implements ServeServer {
  readonly #options: ServeServerOptions;
  readonly #server: Server;
  readonly #warehouse: ServedWarehouse;
  readonly #tokens: ServeTokens;
  readonly #cache: AnswerCache;
  readonly #webSocket: ServeWebSocket;
  #authority = "";
  #requests = 0;
  #failures = 0;

  constructor(options: ServeServerOptions) {
    this.#options = options;
    this.#warehouse = new ServedWarehouse(options.warehouse, options.clock);
    this.#tokens = new ServeTokens({
      clients: options.clients,
      clock: options.clock,
      findAudience: (address, host) => this.#findAudience(address, host),
    });
    this.#cache = new AnswerCache(this.#warehouse);
    this.#webSocket = new ServeWebSocket({
      warehouse: this.#warehouse,
      clock: options.clock,
      log: options.log,
      identify: (token) => this.#tokens.identify(token, "websocket"),
    });
    const limits = { maxHeaderSize: MAX_HEADER_BYTES, connectionsCheckingInterval: IDLE_TIMEOUT_MS / 3 };
    const handle = (request: IncomingMessage, response: ServerResponse) =>
      void this.#handle(request, response);
    const { certFile, keyFile } = options.tls;
    this.#server =
      certFile !== undefined && keyFile !== undefined
        ? createTlsServer({ ...limits, cert: readPem(certFile), key: readPem(keyFile) }, handle)
        : createServer(limits, handle);
    this.#server.on("upgrade", (request, socket, head) => this.#upgrade(request, socket, head));
    this.#server.headersTimeout = IDLE_TIMEOUT_MS;
    this.#server.requestTimeout = IDLE_TIMEOUT_MS;
    this.#server.keepAliveTimeout = KEEP_ALIVE_TIMEOUT_MS;
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  get #isTls(): boolean {
    return this.#options.tls.certFile !== undefined;
  }

  get baseUrl(): string {
    return `${this.#isTls ? "https" : "http"}://${this.#authority}`;
  }

  get wsUrl(): string {
    return `${this.#isTls ? "wss" : "ws"}://${this.#authority}${WEBSOCKET_PATH}`;
  }

  get status(): ServeStatus {
    const { sent, dropped } = this.#webSocket.totals;
    return {
      address: this.baseUrl,
      requests: this.#requests,
      failures: this.#failures,
      messages: sent,
      dropped,
      clients: this.#webSocket.clients,
    };
  }

  listen(): Promise<void> {
    const { host, port } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once("error", (error: NodeJS.ErrnoException) => {
        const isTaken = error.code === "EADDRINUSE";
        reject(
          new Failure(`serve cannot listen on ${host}:${port} (${error.code})`, {
            family: isTaken ? "retry" : "operator",
            code: "http_port",
            remedy: "choose another serve.port (MDS_SERVE_PORT), or 0 for any free one",
            exit: isTaken ? exitCode.tryLater : exitCode.usage,
          }),
        );
      });
      this.#server.listen(port, host, () => {
        const address = this.#server.address();
        const bound = typeof address === "object" && address ? address.port : port;
        this.#authority = `${host.includes(":") ? `[${host}]` : host}:${bound}`;
        resolve();
      });
    });
  }

  async close(): Promise<void> {
    this.#webSocket.stop();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
    this.#warehouse.close();
  }

  /** The scheme tells the audience; the host must be the one under which the client reached this server. */
  #findAudience(address: string, host: string | undefined): Audience | undefined {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (!url) return undefined;
    const isOurs = this.#options.behindProxy || url.host === host || url.host === this.#authority;
    if (!isOurs) return undefined;
    if (/^https?:$/.test(url.protocol)) return "rest";
    return /^wss?:$/.test(url.protocol) ? "websocket" : undefined;
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    try {
      this.#assertHost(request.headers.host);
      this.#assertOrigin(request);
      const path = (request.url ?? "").split("?", 1)[0] ?? "";
      if (!WEBSOCKET_PATHS.includes(path)) throw new ServeError(404, `No path ${path}`);
      this.#webSocket.upgrade(request, socket, head);
    } catch (error) {
      const { status } = error instanceof ServeError ? error : this.#toServeError(error);
      socket.end(
        `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`,
      );
    }
  }

  /** Without tokens, a page of another site must not read the feed: browsers let any page open a websocket. */
  #assertOrigin({ headers }: IncomingMessage): void {
    const { origin, host } = headers;
    if (!this.#tokens.isOpen || origin === undefined) return;
    if (!URL.canParse(origin) || new URL(origin).host !== host)
      throw new ServeError(403, "Without serve.clients, pages of other sites are refused");
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#requests++;
    let status = 200;
    let answer: ServeResponse;
    try {
      answer = await this.#answer(request);
    } catch (error) {
      const known = error instanceof ServeError ? error : this.#toServeError(error);
      status = known.status;
      if (status >= 500) this.#failures++;
      answer = { body: known.toBody(this.#options.clock.now()), headers: known.headers };
    }
    await this.#send(request, response, status, answer).catch(() => response.destroy());
  }

  /** A warehouse that cannot be read is no defect of the request. */
  #toServeError(error: unknown): ServeError {
    const message = error instanceof Error ? error.message : String(error);
    this.#options.log.error({ error: message }, "request could not be answered");
    return error instanceof Failure
      ? new ServeError(503, error.message, { headers: { "retry-after": "5" } })
      : new ServeError(500, "The request failed; see the log for the reason");
  }

  async #answer(request: IncomingMessage): Promise<ServeResponse> {
    const { method, headers } = request;
    const [path = "", search = ""] = (request.url ?? "").split(/\?(.*)/s, 2);
    this.#assertHost(headers.host);
    if (!path.startsWith("/v3/")) throw new ServeError(404, `No path ${path}`);
    if (path === TOKEN_PATH) {
      if (method !== "POST") throw new ServeError(405, "Use POST", { headers: { allow: "POST" } });
      const body = await readBody(request);
      return {
        body: await this.#tokens.issue(headers["content-type"] ?? "", body, headers.host),
        headers: {},
      };
    }
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
    const { scopes } = this.#tokens.identify(token, "rest");
    if (method !== "GET" && method !== "HEAD")
      throw new ServeError(405, "Use GET", { headers: { allow: "GET, HEAD" } });
    return this.#cache.answer({ path: path.slice("/v3".length), search, scopes });
  }

  /** Without tokens, a page of another site must not reach this server by DNS rebinding. */
  #assertHost(host: string | undefined): void {
    if (!this.#tokens.isOpen) return;
    const name = (host ?? "").replace(/:\d*$/, "").toLowerCase();
    const literal = name.startsWith("[") ? name.slice(1, -1) : name;
    if (name !== "localhost" && isIP(literal) === 0)
      throw new ServeError(421, "Without serve.clients, only localhost and IP addresses are served");
  }

  async #send(
    request: IncomingMessage,
    response: ServerResponse,
    status: number,
    { body, headers }: ServeResponse,
  ): Promise<void> {
    const bytes = Buffer.from(body);
    const isCompressed = bytes.length >= MIN_COMPRESSED_BYTES && acceptsGzip(request);
    const sent = isCompressed ? await compress(bytes, { level: 1 }) : bytes;
    // A client that stops reading must not hold its answer in memory.
    response.setTimeout(IDLE_TIMEOUT_MS, () => response.destroy());
    response.sendDate = false;
    response.writeHead(status, {
      ...headers,
      server: `${SERVE_PRODUCT}${this.#options.version}`,
      date: new Date(this.#options.clock.now()).toUTCString(),
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      vary: "accept-encoding",
      ...(isCompressed ? { "content-encoding": "gzip" } : {}),
      "content-length": sent.length,
    });
    response.end(request.method === "HEAD" ? undefined : sent);
  }
}

interface CachedRequest {
  readonly path: string;
  readonly search: string;
  readonly scopes: ReadonlySet<string>;
}

const MAX_CACHED_ANSWERS = 64;
const MAX_CACHED_AGE_MICROS = 1_000_000;

/** Lists of the latest state are asked for again and again: the same answer serves until the next commit. */
class AnswerCache {
  readonly #warehouse: ServedWarehouse;
  readonly #answers = new Map<string, ServeResponse>();
  #version = "";
  #since = 0;
  #window: string | undefined;

  constructor(warehouse: ServedWarehouse) {
    this.#warehouse = warehouse;
  }

  answer({ path, search, scopes }: CachedRequest): ServeResponse {
    const { now, dataVersion } = this.#warehouse;
    if (dataVersion !== this.#version || Math.abs(now - this.#since) > MAX_CACHED_AGE_MICROS) {
      if (dataVersion !== this.#version) this.#readWindow();
      this.#version = dataVersion;
      this.#since = now;
      this.#answers.clear();
    }
    const query = new URLSearchParams(search);
    const isPage = query.has("timestamp") || query.has("startAfter");
    const key = `${path}?${search} ${[...scopes].join(" ")}`;
    const cached = this.#answers.get(key);
    if (cached) return cached;
    const { body, headers } = this.#warehouse.snapshot((connection) =>
      serveRequest(connection, { path, query, scopes, now }),
    );
    const answer = {
      body,
      headers: this.#window === undefined ? headers : { ...headers, [WINDOW_HEADER]: this.#window },
    };
    if (!isPage && this.#answers.size < MAX_CACHED_ANSWERS) this.#answers.set(key, answer);
    return answer;
  }

  #readWindow(): void {
    const start = this.#warehouse.snapshot(findWindowStart);
    this.#window = start === undefined ? undefined : formatTimestamp(start);
  }
}

function acceptsGzip(request: IncomingMessage): boolean {
  const offers = String(request.headers["accept-encoding"] ?? "").split(",");
  return offers.some((offer) => /^\s*(gzip|\*)\s*(;\s*q=(?!0(\.0*)?\s*$).*)?$/i.test(offer));
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on("data", (chunk: Buffer) => {
      length += chunk.length;
      if (length > MAX_TOKEN_BODY_BYTES) {
        reject(new ServeError(413, "The body is too large", { headers: { connection: "close" } }));
        request.removeAllListeners("data").resume();
      } else chunks.push(chunk);
    });
    request.on("end", () => resolve(Buffer.concat(chunks).toString()));
    request.on("error", reject);
    request.on("close", () => reject(new ServeError(400, "The request was cut off")));
  });
}

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new Failure(`${file} cannot be read`, {
      code: "settings",
      remedy: "name readable files in serve.tls.certFile and serve.tls.keyFile",
      exit: exitCode.usage,
    });
  }
}
