import { readFileSync } from "node:fs";
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { Failure } from "../model/failure.ts";
import type { ServeStatus } from "../model/status/serve-status.ts";
import { formatTimestamp } from "../model/time.ts";
import type { Clock } from "../runtime/clock.ts";
import {
  type HttpRequest,
  type HttpResponse,
  type HttpServer,
  isAllowedHost,
  isSameOrigin,
  startHttpServer,
} from "../runtime/http-server.ts";
import type { Log } from "../runtime/log.ts";
import { ServeWebSocket } from "./live/websocket-server.ts";
import { findWindowStart } from "./rest/page-coverage.ts";
import { serveRequest } from "./rest/router.ts";
import { ServeError } from "./rest/serve-error.ts";
import type { ServeResponse } from "./rest/serve-response.ts";
import { assertServable, type ServeSettings } from "./serve-settings.ts";
import { type Audience, ServeTokens } from "./serve-tokens.ts";
import { ServedWarehouse } from "./served-warehouse.ts";

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

/** Serves the warehouse with the service's own interface. It only reads. */
export async function startServeServer(options: ServeServerOptions): Promise<ServeServer> {
  await assertServable(options);
  const server = new WarehouseServer(options);
  await server.listen();
  return server;
}

class WarehouseServer implements ServeServer {
  readonly #options: ServeServerOptions;
  #server: HttpServer | undefined;
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

  async listen(): Promise<void> {
    const { host, port, tls, log, version } = this.#options;
    const { certFile, keyFile } = tls;
    this.#server = await startHttpServer({
      name: "serve",
      portSetting: "serve.port (MDS_SERVE_PORT)",
      host,
      port,
      tls:
        certFile !== undefined && keyFile !== undefined
          ? { cert: readPem(certFile), key: readPem(keyFile) }
          : undefined,
      headers: { server: `mds-sync/${version}` },
      maxConnections: MAX_CONNECTIONS,
      maxHeaderBytes: MAX_HEADER_BYTES,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
      respond: (request) => this.#respond(request),
      upgrade: (request, socket, head) => this.#upgrade(request, socket, head),
      onError: (error) => log.error({ error: String(error) }, "request could not be answered"),
    });
    this.#authority = new URL(this.#server.origin).host;
  }

  async close(): Promise<void> {
    this.#webSocket.stop();
    await this.#server?.close();
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
      this.#assertOrigin(request.headers);
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

  /** Behind a proxy, the client that the proxy names. */
  #addressOf({ headers, address }: HttpRequest): string {
    const forwarded = this.#options.behindProxy ? headers["x-forwarded-for"] : undefined;
    return forwarded === undefined ? address : (String(forwarded).split(",").at(-1)?.trim() ?? address);
  }

  /** Without tokens, a page of another site must not read the feed: browsers let any page open a websocket. */
  #assertOrigin({ origin, host }: IncomingHttpHeaders): void {
    if (this.#tokens.isOpen && origin !== undefined && !isSameOrigin(origin, host))
      throw new ServeError(403, "Without serve.clients, pages of other sites are refused");
  }

  async #respond(request: HttpRequest): Promise<HttpResponse> {
    this.#requests++;
    const now = this.#options.clock.now();
    const date = new Date(now).toUTCString();
    try {
      const { body, headers } = await this.#answer(request);
      return { type: "application/json", body, headers: { ...headers, date } };
    } catch (error) {
      const known = error instanceof ServeError ? error : this.#toServeError(error);
      const { status, headers } = known;
      if (status >= 500) this.#failures++;
      return { status, type: "application/json", body: known.toBody(now), headers: { ...headers, date } };
    }
  }

  /** A warehouse that cannot be read is no defect of the request. */
  #toServeError(error: unknown): ServeError {
    const message = error instanceof Error ? error.message : String(error);
    this.#options.log.error({ error: message }, "request could not be answered");
    return error instanceof Failure
      ? new ServeError(503, error.message, { headers: { "retry-after": "5" } })
      : new ServeError(500, "The request failed; see the log for the reason");
  }

  async #answer(request: HttpRequest): Promise<ServeResponse> {
    const { method, path, search, headers } = request;
    this.#assertHost(headers.host);
    if (!path.startsWith("/v3/")) throw new ServeError(404, `No path ${path}`);
    if (path === TOKEN_PATH) {
      if (method !== "POST") throw new ServeError(405, "Use POST", { headers: { allow: "POST" } });
      const body = await request.readBody(MAX_TOKEN_BODY_BYTES);
      if (body === undefined)
        throw new ServeError(413, "The body is too large", { headers: { connection: "close" } });
      const contentType = headers["content-type"] ?? "";
      const address = this.#addressOf(request);
      return {
        body: await this.#tokens.issue({ contentType, body, host: headers.host, address }),
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
    if (!isAllowedHost(host, []))
      throw new ServeError(421, "Without serve.clients, only localhost and IP addresses are served");
  }
}

interface CachedRequest {
  readonly path: string;
  readonly search: string;
  readonly scopes: ReadonlySet<string>;
}

/** Where the oldest intraday history begins. */
const WINDOW_HEADER = "x-mds-window";
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

function readPem(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new Failure(`${file} cannot be read`, {
      code: "settings",
      remedy: "name readable files in serve.tls.certFile and serve.tls.keyFile",
    });
  }
}
