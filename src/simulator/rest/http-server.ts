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

export type RequestHandler = (question: SimulatorRequest, remoteAddress: string) => SimulatorResponse;
export type UpgradeHandler = (request: IncomingMessage, socket: Socket, head: Buffer) => void;

/** Listens, reads each request whole, lets the handler answer in one value, and `send` put it on the wire. */
export class SimulatorHttpServer {
  sendResponse: SendResponse = sendWithoutFaults;
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

  #read(request: IncomingMessage, response: ServerResponse): void {
    const chunks: Buffer[] = [];
    // A client that hangs up mid-request is its own affair.
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const question = this.#parseRequest(request, Buffer.concat(chunks).toString());
      const remote = request.socket.remoteAddress ?? "";
      const answer = this.#handleRequest(question, remote);
      const ask = (query: URLSearchParams, at: number) =>
        this.#handleRequest({ ...question, query, nowMs: at }, remote);
      const exchange = {
        request: question,
        response: answer,
        fetchOriginal: ask,
        rawRequest: request,
        rawResponse: response,
      };
      response.sendDate = false;
      // The controls are no part of the service: never logged, never struck by a fault.
      if (isControlRequest(question)) return sendWithoutFaults(exchange);
      const { method, target, nowMs: at } = question;
      const logged = this.#log.add({ method, target, status: 0, at });
      const note = () => {
        if (response.headersSent) logged.status = response.statusCode;
      };
      response.once("finish", note).once("close", note);
      this.sendResponse(exchange);
    });
  }

  #parseRequest(request: IncomingMessage, body: string): SimulatorRequest {
    const target = request.url ?? "/";
    const cut = target.indexOf("?");
    return {
      method: request.method ?? "GET",
      path: cut < 0 ? target : target.slice(0, cut),
      target,
      query: new URLSearchParams(cut < 0 ? "" : target.slice(cut + 1)),
      headers: request.headers,
      body,
      nowMs: this.#clock.now(),
    };
  }

  #handleRequest(question: SimulatorRequest, remoteAddress: string): SimulatorResponse {
    const timestamp = new Date(question.nowMs).toISOString();
    try {
      return this.#handler(question, remoteAddress);
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
