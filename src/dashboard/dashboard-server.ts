import type { Readable } from "node:stream";
import { toErrorAnswer } from "../model/answers/query.ts";
import { Failure } from "../model/failure.ts";
import { type HttpResponse, isAllowedHost, isSameOrigin, startHttpServer } from "../runtime/http-server.ts";

export type RequestHandler = (query: URLSearchParams) => HttpResponse | Promise<HttpResponse>;

const contentTypes = {
  rows: "application/json",
  /** Of a slow statement, the rows read so far and at last `rows` or an error, a line each. */
  lines: "application/x-ndjson",
  json: "application/json",
  csv: "text/csv",
  parquet: "application/vnd.apache.parquet",
};

/** Runs SQL that people write. `signal` aborts when the client is gone before it has the whole response. */
interface QueryService {
  answer(body: string, signal: AbortSignal): Promise<{ format: keyof typeof contentTypes; result: Readable }>;
}

type HttpServerOptions = Parameters<typeof startHttpServer>[0];
type HttpRequest = Parameters<HttpServerOptions["respond"]>[0];

interface DashboardServerOptions
  extends Pick<HttpServerOptions, "host" | "port" | "onError" | "idleTimeoutMs"> {
  /** Names accepted in the Host header besides localhost and IP addresses. */
  readonly allowedHosts: readonly string[];
  /** By path, without the query; `/bars/*` is any name after `/bars/`. */
  readonly routes: ReadonlyMap<string, RequestHandler>;
  /** The only path that accepts POST is `/api/query`, from pages of this server. */
  readonly queries: QueryService;
}

const MAX_REQUESTS_PER_CONNECTION = 16;
const MAX_BODY_BYTES = 256 * 1024;

const SECURITY_HEADERS = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  // Nothing is sent to other sites; /explore runs only statements that a page of this server links to.
  "referrer-policy": "same-origin",
};

/** Serves the dashboard, only for allowed Host headers. Pages are for GET and HEAD; POST is for its own pages. */
export function startDashboardServer(options: DashboardServerOptions) {
  const { routes, queries, allowedHosts, ...rest } = options;
  return startHttpServer({
    ...rest,
    name: "the dashboard",
    portSetting: "http.port (MDS_HTTP_PORT)",
    headers: SECURITY_HEADERS,
    maxRequestsPerConnection: MAX_REQUESTS_PER_CONNECTION,
    respond: async (request) => {
      // First of all: a page of another site must not reach this server by DNS rebinding.
      if (!isAllowedHost(request.headers.host, allowedHosts))
        return textResponse(421, "this host name is not allowed: add it to http.allowedHosts");
      if (request.path === "/api/query") return respondToQuery(request, queries);
      if (request.method !== "GET" && request.method !== "HEAD")
        return { ...textResponse(405, "only GET is served"), headers: { allow: "GET, HEAD" } };
      const page = routes.get(request.path) ?? routes.get(request.path.replace(/[^/]+$/, "*"));
      return page
        ? page(new URLSearchParams(request.search))
        : textResponse(404, `no such page; the pages are ${[...routes.keys()].join(" ")}`);
    },
  });
}

/** A page of another site can send a POST, but not with the origin of this server. */
async function respondToQuery(request: HttpRequest, queries: QueryService): Promise<HttpResponse> {
  const { method, headers, signal } = request;
  if (method !== "POST") return { ...textResponse(405, "only POST is served"), headers: { allow: "POST" } };
  if (!isSameOrigin(headers.origin, headers.host))
    return textResponse(403, "only pages of this server may ask");
  if (!/^application\/json\b/.test(headers["content-type"] ?? ""))
    return textResponse(415, "send application/json");
  const body = await request.readBody(MAX_BODY_BYTES);
  if (body === undefined) return textResponse(413, "the request is too long");
  try {
    const { format, result } = await queries.answer(body, signal);
    return { type: contentTypes[format], body: result };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return jsonResponse(toErrorAnswer(error), error.code === "bad_query" ? 400 : 503);
  }
}

export const textResponse = (status: number, text: string): HttpResponse => ({
  status,
  type: "text/plain; charset=utf-8",
  body: `${text}\n`,
});

export const jsonBytes = (body: string | Uint8Array, status = 200): HttpResponse => ({
  status,
  type: "application/json; charset=utf-8",
  body,
});

export const jsonResponse = (value: unknown, status = 200): HttpResponse =>
  jsonBytes(`${JSON.stringify(value)}\n`, status);
