import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import { isControl } from "../control-api.ts";
import { errorBody, Refusal } from "./errors.ts";
import { type HttpAnswer, type HttpQuestion, json, type Send, sendWell } from "./http-types.ts";
import type { RequestLog } from "./request-log.ts";

export type Handler = (question: HttpQuestion, remoteAddress: string) => HttpAnswer;
export type UpgradeHandler = (request: IncomingMessage, socket: Socket, head: Buffer) => void;

/** Listens, reads each request whole, lets the handler answer in one value, and `send` put it on the wire. */
export class HttpServer {
  send: Send = sendWell;
  onUpgrade: UpgradeHandler = (_request, socket) => socket.destroy();
  readonly #clock: Clock;
  readonly #log: RequestLog;
  readonly #handler: Handler;
  readonly #server: Server;

  constructor(clock: Clock, log: RequestLog, handler: Handler) {
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
      const question = this.#question(request, Buffer.concat(chunks).toString());
      const remote = request.socket.remoteAddress ?? "";
      const answer = this.#answer(question, remote);
      const ask = (query: URLSearchParams, at: number) => this.#answer({ ...question, query, at }, remote);
      const exchange = { question, answer, ask, request, response };
      response.sendDate = false;
      // The controls are no part of the service: never logged, never struck by a fault.
      if (isControl(question)) return sendWell(exchange);
      const { method, target, at } = question;
      const logged = this.#log.add({ method, target, status: 0, at });
      const note = () => {
        if (response.headersSent) logged.status = response.statusCode;
      };
      response.once("finish", note).once("close", note);
      this.send(exchange);
    });
  }

  #question(request: IncomingMessage, body: string): HttpQuestion {
    const target = request.url ?? "/";
    const cut = target.indexOf("?");
    return {
      method: request.method ?? "GET",
      path: cut < 0 ? target : target.slice(0, cut),
      target,
      query: new URLSearchParams(cut < 0 ? "" : target.slice(cut + 1)),
      headers: request.headers,
      body,
      at: this.#clock.now(),
    };
  }

  #answer(question: HttpQuestion, remoteAddress: string): HttpAnswer {
    const timestamp = new Date(question.at).toISOString();
    try {
      return this.#handler(question, remoteAddress);
    } catch (thrown) {
      if (thrown instanceof Refusal)
        return json(thrown.status, errorBody(thrown.status, thrown.message, timestamp, thrown.errors));
      const message = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
      return json(500, errorBody(500, message, timestamp));
    }
  }
}
