import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { listen } from "../listen.ts";
import type { ManualClock } from "../manual-clock.ts";

export interface ReceivedRequest {
  readonly method: string;
  /** Raw request target. */
  readonly target: string;
  readonly path: string;
  readonly query: Record<string, string>;
  readonly token: string | undefined;
  /** Monotonic time of the manual clock. */
  readonly at: number;
  /** From 1. */
  readonly count: number;
  readonly socket: Socket;
}

export interface TokenRequest {
  readonly body: Record<string, unknown>;
  readonly at: number;
  readonly count: number;
}

export interface StubServiceOptions {
  readonly clock: ManualClock;
  /** Handles everything but the token endpoint; `count` starts at 1. A returned number is the status of the reply. */
  readonly respond?: (request: ReceivedRequest, response: ServerResponse, count: number) => unknown;
  /** A returned number other than 200 is the status of the reply; else the token is granted. */
  readonly respondToTokenRequest?: (
    request: TokenRequest,
    response: ServerResponse,
    count: number,
  ) => unknown;
  /** Fields of each token response in place of the usual ones. */
  readonly token?: Readonly<Record<string, unknown>>;
}

export interface StubService {
  readonly baseUrl: string;
  readonly requests: ReceivedRequest[];
  readonly tokenRequests: TokenRequest[];
  readonly server: Server;
  stop(): Promise<void>;
}

/** A real server on a real socket. The test decides every response and owns the clock. */
export async function startStubService({
  clock,
  respond = () => 200,
  respondToTokenRequest = () => 200,
  token,
}: StubServiceOptions): Promise<StubService> {
  const requests: ReceivedRequest[] = [];
  const tokenRequests: TokenRequest[] = [];
  const server = createServer((message, response) => {
    response.sendDate = false;
    response.setHeader("date", new Date(clock.now()).toUTCString());
    if (message.url?.endsWith("/v3/oauth/token")) {
      void readBody(message).then((body) => {
        const count = tokenRequests.length + 1;
        const request = { body: JSON.parse(body), at: clock.monotonic(), count };
        tokenRequests.push(request);
        const status = respondToTokenRequest(request, response, count);
        if (status === 200) grantToken(request, response, count, token);
        else if (typeof status === "number") reply(response, status);
      });
      return;
    }
    const url = new URL(message.url ?? "/", "http://stub");
    const request = {
      method: message.method ?? "",
      target: message.url ?? "",
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      token: message.headers.authorization?.replace(/^Bearer /, ""),
      at: clock.monotonic(),
      count: requests.length + 1,
      socket: message.socket,
    };
    requests.push(request);
    const status = respond(request, response, request.count);
    if (typeof status === "number") reply(response, status);
  });
  const port = await listen(server);
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    requests,
    tokenRequests,
    server,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

export function sendGzip(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
  response.end(gzipSync(JSON.stringify(value)));
}

/** An empty page, or another status with a body that has no list. */
export function reply(response: ServerResponse, status = 200): void {
  if (status === 200) sendGzip(response, { content: [] });
  else sendJson(response, {}, status);
}

/** No response until the client gives up; the manual clock does not wait for it. */
export function hang(clock: ManualClock, response: ServerResponse): void {
  response.on("close", clock.beginWait());
}

/** Time that a response takes; the manual clock goes on meanwhile. */
export async function pause(clock: ManualClock, ms: number): Promise<void> {
  const release = clock.beginWait();
  await clock.sleep(ms);
  release();
}

export function grantToken(
  { body }: TokenRequest,
  response: ServerResponse,
  count: number,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  const granted = { access_token: `token-${count}`, scope: allScopes, expires_in: 86_400 };
  sendJson(response, { ...granted, audience: body.audience, ...fields });
}

export const allScopes =
  "read:exchange-ticker read:index-ticker read:ohlcv read:market-cap read:LX read:derivatives";

async function readBody(message: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of message.setEncoding("utf8")) text += chunk;
  return text;
}
