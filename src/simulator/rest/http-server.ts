import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import type { Interceptor } from "../interceptor.ts";
import { errorBody, HttpError } from "./errors.ts";
import {
  createJsonResponse,
  encodeResponse,
  type HttpExchange,
  type SimulatorRequest,
  type SimulatorResponse,
} from "./http-types.ts";

type RequestHandler = (request: SimulatorRequest) => SimulatorResponse;
type UpgradeHandler = (request: IncomingMessage, socket: Socket, head: Buffer) => void;

/** Reads each request completely, passes it to the handler, and sends the response. */
export class SimulatorHttpServer {
  isCompressing = true;
  onUpgrade: UpgradeHandler = (_request, socket) => socket.destroy();
  readonly #clock: Clock;
  readonly #intercept: Interceptor["respond"];
  readonly #handler: RequestHandler;
  readonly #server: Server;

  constructor(clock: Clock, intercept: Interceptor["respond"], handler: RequestHandler) {
    this.#clock = clock;
    this.#intercept = intercept;
    this.#handler = handler;
    this.#server = createServer({ keepAliveTimeout: 60_000 }, (request, response) =>
      this.#read(request, response),
    );
    this.#server.on("upgrade", (request, socket, head) => this.onUpgrade(request, socket as Socket, head));
  }

  async listen(host: string, port: number): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject);
    this.#server.listen(port, host, resolve);
    await promise;
    this.#server.off("error", reject);
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  #read(rawRequest: IncomingMessage, rawResponse: ServerResponse): void {
    const chunks: Buffer[] = [];
    // A client may hang up in the middle of a request.
    rawRequest.on("error", () => {});
    rawResponse.on("error", () => {});
    rawRequest.on("data", (chunk: Buffer) => chunks.push(chunk));
    rawRequest.on("end", () => {
      const request = this.#parseRequest(rawRequest, Buffer.concat(chunks).toString());
      const respondTo = (query: URLSearchParams, nowMs: number) =>
        this.#handleRequest({ ...request, query, nowMs });
      const exchange = { request, response: this.#handleRequest(request), respondTo, rawResponse };
      rawResponse.sendDate = false;
      if (this.#intercept) this.#intercept(exchange, () => sendResponse(exchange));
      else sendResponse(exchange);
    });
  }

  #parseRequest(rawRequest: IncomingMessage, body: string): SimulatorRequest {
    const target = rawRequest.url ?? "/";
    const queryStart = target.indexOf("?");
    return {
      method: rawRequest.method ?? "GET",
      path: queryStart < 0 ? target : target.slice(0, queryStart),
      target,
      query: new URLSearchParams(queryStart < 0 ? "" : target.slice(queryStart + 1)),
      headers: this.isCompressing
        ? rawRequest.headers
        : { ...rawRequest.headers, "accept-encoding": "identity" },
      body,
      nowMs: this.#clock.now(),
    };
  }

  #handleRequest(request: SimulatorRequest): SimulatorResponse {
    const timestamp = new Date(request.nowMs).toISOString();
    try {
      return this.#handler(request);
    } catch (thrown) {
      if (thrown instanceof HttpError)
        return createJsonResponse(
          thrown.status,
          errorBody(thrown.status, thrown.message, timestamp, thrown.errors),
        );
      const message = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
      return createJsonResponse(500, errorBody(500, message, timestamp));
    }
  }
}

function sendResponse({ request, response, rawResponse }: HttpExchange): void {
  const { status, headers, body } = encodeResponse(request, response);
  rawResponse.writeHead(status, headers);
  rawResponse.end(body);
}
