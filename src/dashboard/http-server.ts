import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { isIP, type Socket } from "node:net";
import { exitCode, Failure } from "../model/failure.ts";

/** An answer, whole before its first byte is written. */
export interface Page {
  readonly status?: number;
  readonly type:
    | "text/html"
    | "text/plain"
    /** The text form that Prometheus reads. */
    | "text/plain; version=0.0.4"
    | "text/css"
    | "application/json"
    | "text/javascript"
    | "image/svg+xml";
  readonly body: string | Uint8Array;
  /** The same, for those who can unpack it. */
  readonly gzipped?: Buffer;
  /** Of what never changes while we run: a browser that has it already is told so in a few bytes. */
  readonly etag?: string;
}

export type PageMaker = (query: URLSearchParams) => Page | Promise<Page>;

export interface HttpServerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Names accepted in the Host header beside localhost and IP literals. */
  readonly allowedHosts: readonly string[];
  /** By path, without query. */
  readonly pages: ReadonlyMap<string, PageMaker>;
  readonly failed: (error: unknown) => void;
  /** How long somebody may take to ask, and how long nothing may move while an answer is taken. */
  readonly patienceMs?: number;
}

export interface HttpServer {
  /** For people: `http://127.0.0.1:9464/`. */
  readonly address: string;
  close(): Promise<void>;
}

/** A page is worth so much patience with a slow client, and no more: it must never hold the daemon up. */
const CLIENT_PATIENCE_MS = 10_000;
const LARGEST_HEADER_BYTES = 8 * 1024;

const safety = {
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** Serves what looks on: GET only, and only under a name that is ours. */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { patienceMs = CLIENT_PATIENCE_MS } = options;
  const limits = { maxHeaderSize: LARGEST_HEADER_BYTES, connectionsCheckingInterval: patienceMs / 2 };
  const visitors = new Visitors();
  const server = createServer(limits, (request, response) => {
    const answered = visitors.asks(request, response);
    if (!answered) return;
    answer(request, options)
      .catch((error: unknown) => {
        options.failed(error);
        return plain(500, "this page failed; the log says why");
      })
      .then((page) => send(request, response, page))
      .catch(options.failed)
      .finally(answered);
  });
  server.on("connection", (socket) => visitors.enter(socket));
  server.headersTimeout = patienceMs;
  server.requestTimeout = patienceMs;
  server.keepAliveTimeout = patienceMs;
  server.timeout = patienceMs;
  server.on("timeout", (socket) => visitors.isSilent(socket));
  const port = await listen(server, options);
  const shown = options.host.includes(":") ? `[${options.host}]` : options.host;
  return {
    address: `http://${shown}:${port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The name is checked before anything else: a page of another site must not reach us through its own name. */
async function answer(request: IncomingMessage, { allowedHosts, pages }: HttpServerOptions): Promise<Page> {
  if (!isOurName(request.headers.host, allowedHosts)) {
    return plain(421, "this name is not served here: add it to http.allowedHosts");
  }
  if (request.method !== "GET" && request.method !== "HEAD") return plain(405, "only GET is served");
  // Taken as it came: what is decoded or resolved first can be made to look like another path.
  const [path = "", query = ""] = (request.url ?? "").split(/\?(.*)/s, 2);
  const page = pages.get(path);
  return page
    ? page(new URLSearchParams(query))
    : plain(404, `there is no such page; there are ${[...pages.keys()].join(" ")}`);
}

export function isOurName(host: string | undefined, allowedHosts: readonly string[]): boolean {
  const name = host?.replace(/:\d*$/, "").toLowerCase();
  if (!name) return false;
  const literal = name.startsWith("[") && name.endsWith("]") ? name.slice(1, -1) : name;
  return (
    name === "localhost" ||
    isIP(literal) !== 0 ||
    allowedHosts.some((allowed) => allowed.toLowerCase() === name)
  );
}

export function plain(status: number, text: string): Page {
  return { status, type: "text/plain", body: `${text}\n` };
}

export function json(value: unknown, status = 200): Page {
  return { status, type: "application/json", body: Buffer.from(`${JSON.stringify(value)}\n`) };
}

function send(request: IncomingMessage, response: ServerResponse, page: Page): void {
  const { status = 200, type, etag, gzipped } = page;
  const headers = {
    ...safety,
    "cache-control": etag ? "no-cache" : "no-store",
    ...(etag ? { etag, vary: "accept-encoding" } : {}),
  };
  if (etag && request.headers["if-none-match"] === etag) {
    response.writeHead(304, headers).end();
    return;
  }
  const isPacked = gzipped !== undefined && /\bgzip\b/.test(String(request.headers["accept-encoding"]));
  const bytes = isPacked ? gzipped : typeof page.body === "string" ? Buffer.from(page.body) : page.body;
  response.writeHead(status, {
    ...headers,
    ...(isPacked ? { "content-encoding": "gzip" } : {}),
    ...(status === 405 ? { allow: "GET, HEAD" } : {}),
    "content-type": `${type}; charset=utf-8`,
    "content-length": bytes.length,
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
}

function listen(server: Server, { host, port }: HttpServerOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      // Whoever has the port may give it back; an address that is not ours, or a port that we may not take, stays so.
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

/** Connections at once. */
const MOST_VISITORS = 256;
/** Questions on one connection that are asked before the answers to earlier ones were taken. */
const MOST_UNTAKEN = 16;

interface Visit {
  /** Questions that we are about to answer. */
  inWork: number;
  /** Questions whose answer has not been taken whole. */
  untaken: number;
}

/**
 * Who is connected, and whom we wait for: those who have not asked yet, or do not take their answer. Where there are too
 * many, the one that has kept us waiting longest makes room. So no crowd of idle connections keeps a health check out.
 */
export class Visitors {
  readonly #visits = new Map<Socket, Visit>();
  /** The one that has kept us waiting longest comes first. */
  readonly #awaited = new Set<Socket>();

  enter(socket: Socket): void {
    this.#visits.set(socket, { inWork: 0, untaken: 0 });
    this.#awaited.add(socket);
    socket.once("close", () => {
      this.#visits.delete(socket);
      this.#awaited.delete(socket);
    });
    const [longest] = this.#awaited;
    if (this.#visits.size > MOST_VISITORS && longest) this.#dismiss(longest);
  }

  /** False: it is not to be answered. Otherwise the result is called as soon as the answer is on its way. */
  asks({ socket }: IncomingMessage, response: ServerResponse): (() => void) | false {
    const visit = this.#visits.get(socket);
    if (!visit) return false;
    // Answers that nobody takes lie in memory: who goes on asking does not mean to read them.
    if (visit.untaken >= MOST_UNTAKEN) {
      this.#dismiss(socket);
      return false;
    }
    visit.untaken++;
    visit.inWork++;
    this.#awaited.delete(socket);
    response.once("close", () => {
      visit.untaken--;
    });
    return () => {
      visit.inWork--;
      if (visit.inWork === 0 && this.#visits.has(socket)) this.#awaited.add(socket);
    };
  }

  /** Nothing has moved on the connection for long: where it is not us who keep it waiting, it ends. */
  isSilent(socket: Socket): void {
    if (this.#awaited.has(socket)) this.#dismiss(socket);
  }

  #dismiss(socket: Socket): void {
    this.#visits.delete(socket);
    this.#awaited.delete(socket);
    socket.destroy();
  }
}
