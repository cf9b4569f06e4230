import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import { isControlRequest } from "../control-api.ts";
import { errorBody, HttpError } from "./errors.ts";
import {
  createJsonResponse,
  type SendResponse,
  type SimulatorRequest,
  type SimulatorResponse,
  sendWithoutFaults,
} from "./http-types.ts";
import type { RequestLog } from "./request-log.ts";

type RequestHandler = (request: SimulatorRequest, remoteAddress: string) => SimulatorResponse;
type UpgradeHandler = (request: IncomingMessage, socket: Socket, head: Buffer) => void;

/** Reads each request completely, passes it to the handler, and sends the response with `sendResponse`. */
export class SimulatorHttpServer {
  sendResponse: SendResponse = sendWithoutFaults;
  isCompressing = true;
  onUpgrade: UpgradeHandler = (_request, socket) => socket.destroy();
  readonly #clock: Clock;
  readonly #log: RequestLog;
  readonly #handler: RequestHandler;
  readonly #server: Server;

  constructor(clock: Clock, log: RequestLog, handler: RequestHandler) {
    this.#clock = clock;
    this.#log = log;
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
      const remoteAddress = rawRequest.socket.remoteAddress ?? "";
      const response = this.#handleRequest(request, remoteAddress);
      const fetchOriginal = (query: URLSearchParams, nowMs: number) =>
        this.#handleRequest({ ...request, query, nowMs }, remoteAddress);
      const exchange = { request, response, fetchOriginal, rawRequest, rawResponse };
      rawResponse.sendDate = false;
      // Control requests are not part of the service: never log them, never apply faults to them.
      if (isControlRequest(request)) return sendWithoutFaults(exchange);
      const { method, target, nowMs } = request;
      const logged = this.#log.add({ method, target, status: 0, at: nowMs });
      const logStatus = () => {
        if (rawResponse.headersSent) logged.status = rawResponse.statusCode;
      };
      rawResponse.once("finish", logStatus).once("close", logStatus);
      this.sendResponse(exchange);
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

  #handleRequest(request: SimulatorRequest, remoteAddress: string): SimulatorResponse {
    const timestamp = new Date(request.nowMs).toISOString();
    try {
      return this.#handler(request, remoteAddress);
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
