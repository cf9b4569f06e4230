import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { Failure } from "../model/failure.ts";
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
import { ApiError, errorBody } from "./api-error.ts";
import { respondToPath } from "./endpoints.ts";
import type { ApiRequest, ApiResponse, Interceptor } from "./interceptor.ts";
import { okResponse } from "./responses.ts";
import type { Source } from "./source.ts";
import { type Access, type Caller, type TokenAudience, Tokens } from "./tokens.ts";
import { LiveServer } from "./websocket.ts";

interface ApiServerOptions {
  readonly source: Source;
  readonly access: Access;
  readonly clock: Clock;
  readonly log: Log;
  /** For messages: `serve`. */
  readonly name: string;
  /** For messages: the setting of its port. */
  readonly portSetting: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** A proxy in front of the server has names of its own. */
  readonly behindProxy?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly pingSeconds?: number;
  /** A websocket client that leaves more unread is dropped. */
  readonly maxUnreadBytes?: number;
  readonly interceptor?: Interceptor;
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
const MAX_UNREAD_BYTES = 8 * 2 ** 20;
const PING_SECONDS = 30;
const MAX_KEPT_ANSWERS = 64;
const MAX_KEPT_MS = 1_000;

/** The service's API over a source: tokens, REST and websocket. */
export class ApiServer {
  readonly tokens: Tokens;
  readonly live: LiveServer;
  readonly #options: ApiServerOptions;
  readonly #answers = new Map<string, ApiResponse>();
  #answersVersion = "";
  #server: HttpServer | undefined;
  #authority = "";
  requests = 0;
  /** Requests that were answered with 5xx. */
  failures = 0;
  /** Websocket clients that were dropped because they read too slowly. */
  dropped = 0;

  constructor(options: ApiServerOptions) {
    const { clock, source, interceptor = {}, pingSeconds = PING_SECONDS } = options;
    this.#options = options;
    this.tokens = new Tokens(options.access);
    this.live = new LiveServer({
      ...{ clock, source, interceptor, pingSeconds },
      maxUnreadBytes: options.maxUnreadBytes ?? MAX_UNREAD_BYTES,
      identify: (request, query) => this.#identifyUpgrade(request, query),
      toApiError: (error) => this.#toApiError(error),
      onSlow: ({ caller: { clientId }, socket: { remoteAddress: address } }) => {
        this.dropped++;
        options.log.warn({ clientId, address }, "slow websocket client dropped");
      },
    });
  }

  /** The REST address, which is also the audience of REST tokens. */
  get baseUrl(): string {
    return `${this.#options.tls ? "https" : "http"}://${this.#authority}`;
  }

  /** The websocket address, which is also the audience of its tokens. */
  get wsUrl(): string {
    return `${this.#options.tls ? "wss" : "ws"}://${this.#authority}${WEBSOCKET_PATH}`;
  }

  /** After `close`, opens the same port again. */
  async listen(): Promise<void> {
    const { name, portSetting, host, port, tls, headers = {}, log } = this.#options;
    this.#server = await startHttpServer({
      ...{ name, portSetting, host, tls, headers },
      port: this.#authority === "" ? port : Number(new URL(this.baseUrl).port),
      maxConnections: MAX_CONNECTIONS,
      maxHeaderBytes: MAX_HEADER_BYTES,
      idleTimeoutMs: IDLE_TIMEOUT_MS,
      keepAliveTimeoutMs: KEEP_ALIVE_TIMEOUT_MS,
      respond: (request, raw) => this.#respond(request, raw),
      // Node's types say Duplex; it is the socket of the request.
      upgrade: (request, socket, head) => this.live.upgrade(request, socket as Socket, head),
      onError: (error) => log.error({ error: String(error) }, "request could not be answered"),
    });
    this.#authority = new URL(this.#server.origin).host;
  }

  /** Closes the port and all connections. */
  async close(): Promise<void> {
    this.live.dropAll();
    await this.#server?.close();
  }

  async stop(): Promise<void> {
    this.live.stop();
    await this.close();
  }

  #identifyUpgrade({ url = "", headers }: IncomingMessage, query: URLSearchParams): Caller {
    this.#assertHost(headers.host);
    this.#assertOrigin(headers);
    const [path = ""] = url.split("?", 1);
    if (!WEBSOCKET_PATHS.includes(path)) throw new ApiError(404, `No websocket at ${path}`);
    const token = query.get("access_token") ?? undefined;
    return this.tokens.identify(token, "websocket", this.#options.clock.now());
  }

  /** Without tokens, a page of another site must not read the feed: browsers let any page open a websocket. */
  #assertOrigin({ origin, host }: IncomingHttpHeaders): void {
    if (this.tokens.isOpen && origin !== undefined && !isSameOrigin(origin, host))
      throw new ApiError(403, "Without serve.clients, pages of other sites are refused");
  }

  /** Without tokens, a page of another site must not reach this server by DNS rebinding. */
  #assertHost(host: string | undefined): void {
    if (this.tokens.isOpen && !isAllowedHost(host, []))
      throw new ApiError(421, "Without serve.clients, only localhost and IP addresses are served");
  }

  /** The scheme decides which audience; the host must be the one under which the client reached this server. */
  #findAudience(address: string, host: string | undefined): TokenAudience | undefined {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    if (!url) return undefined;
    const isRest = /^https?:$/.test(url.protocol);
    const isOurs = url.host === host || url.host === this.#authority;
    const isPathOurs = isRest ? url.pathname === "/" : WEBSOCKET_PATHS.includes(url.pathname);
    if (!this.#options.behindProxy && !(isOurs && isPathOurs)) return undefined;
    if (isRest) return "rest";
    return /^wss?:$/.test(url.protocol) ? "websocket" : undefined;
  }

  /** Behind a proxy, the client that the proxy names. */
  #addressOf({ headers, address }: HttpRequest): string {
    const forwarded = this.#options.behindProxy ? headers["x-forwarded-for"] : undefined;
    return forwarded === undefined ? address : (String(forwarded).split(",").at(-1)?.trim() ?? address);
  }

  async #respond(httpRequest: HttpRequest, rawResponse: ServerResponse): Promise<HttpResponse> {
    const { method, path, search, headers } = httpRequest;
    const { clock, source, interceptor } = this.#options;
    this.requests++;
    if (source.choices.compression === "none") delete headers["accept-encoding"];
    const isTokenRequest = path === TOKEN_PATH && method === "POST";
    const body = isTokenRequest ? await httpRequest.readBody(MAX_TOKEN_BODY_BYTES) : "";
    const request: ApiRequest = {
      ...{ method, path, headers, body: body ?? "", nowMs: clock.now() },
      target: search === "" ? path : `${path}?${search}`,
      query: new URLSearchParams(search),
    };
    const answer = isTokenRequest
      ? await this.#verifyTokenRequest(httpRequest, body)
      : (one: ApiRequest) => this.#answer(one);
    const respondTo = (query: URLSearchParams, nowMs: number) =>
      this.#guard({ ...request, query, nowMs }, answer);
    const response = this.#guard(request, answer);
    if (response.status >= 500) this.failures++;
    const send = (): HttpResponse => ({
      status: response.status,
      type: "application/json",
      body: response.body,
      headers: { ...response.headers, date: new Date(request.nowMs).toUTCString() },
    });
    if (!interceptor?.respond) return send();
    const { promise, resolve } = Promise.withResolvers<HttpResponse>();
    rawResponse.sendDate = false;
    interceptor.respond({ request, response, respondTo, rawResponse }, () => resolve(send()));
    return promise;
  }

  /** Returns the handler of a request once its secret is checked, which takes a moment. */
  async #verifyTokenRequest(
    request: HttpRequest,
    body: string | undefined,
  ): Promise<(request: ApiRequest) => ApiResponse> {
    const { headers } = request;
    try {
      this.#assertHost(headers.host);
      if (body === undefined)
        throw new ApiError(413, "The body is too large", { headers: { connection: "close" } });
      const verified = await this.tokens.verify({
        contentType: headers["content-type"] ?? "",
        body,
        address: this.#addressOf(request),
        findAudience: (address) => this.#findAudience(address, headers.host),
      });
      return ({ nowMs }) => okResponse(this.tokens.issue(verified, nowMs));
    } catch (error) {
      return () => {
        throw error;
      };
    }
  }

  #guard(request: ApiRequest, answer: (request: ApiRequest) => ApiResponse): ApiResponse {
    try {
      return answer(request);
    } catch (error) {
      const { status, message, errors, headers } = this.#toApiError(error);
      return { status, body: errorBody(status, message, request.nowMs, errors), headers };
    }
  }

  /** A warehouse that cannot be read is not an error of the request. */
  #toApiError(error: unknown): ApiError {
    if (error instanceof ApiError) return error;
    const message = error instanceof Error ? error.message : String(error);
    this.#options.log.error({ error: message }, "request could not be answered");
    return error instanceof Failure
      ? new ApiError(503, error.message, { headers: { "retry-after": "5" } })
      : new ApiError(500, "The request failed; see the log for the reason");
  }

  #answer({ method, path, target, query, headers, nowMs }: ApiRequest): ApiResponse {
    this.#assertHost(headers.host);
    if (!path.startsWith("/v3/")) throw new ApiError(404, `No path ${path}`);
    if (path === TOKEN_PATH) throw new ApiError(405, "Use POST", { headers: { allow: "POST" } });
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
    const { scopes } = this.tokens.identify(token, "rest", nowMs);
    if (method !== "GET" && method !== "HEAD")
      throw new ApiError(405, "Use GET", { headers: { allow: "GET, HEAD" } });
    const isPage = query.has("timestamp") || query.has("startAfter");
    const key = isPage ? undefined : `${target} ${[...scopes].join(" ")}`;
    return this.#keep(key, nowMs, () => this.#read(path, query, scopes, nowMs));
  }

  #read(path: string, query: URLSearchParams, scopes: ReadonlySet<string>, nowMs: number): ApiResponse {
    const { source } = this.#options;
    return source.read(nowMs, (state) => {
      const response = respondToPath(path.slice("/v3".length), {
        ...{ state, query, scopes, choices: source.choices },
      });
      return { ...response, headers: { ...response.headers, ...state.headers } };
    });
  }

  /** Clients poll the lists of the latest state: one answer serves until the next commit. */
  #keep(key: string | undefined, nowMs: number, read: () => ApiResponse): ApiResponse {
    const { source } = this.#options;
    if (key === undefined || !source.version) return read();
    const version = `${source.version()} ${Math.floor(nowMs / MAX_KEPT_MS)}`;
    if (version !== this.#answersVersion) this.#answers.clear();
    this.#answersVersion = version;
    const response = this.#answers.get(key) ?? read();
    if (this.#answers.size < MAX_KEPT_ANSWERS) this.#answers.set(key, response);
    return response;
  }
}
