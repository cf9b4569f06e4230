import { WebSocket } from "ws";
import type { SimulatorOptions } from "../../simulator/simulator.ts";
import { findFreePort } from "../free-port.ts";
import { RestClient } from "./rest-client.ts";

export type WebSocketMessage = Record<string, unknown> & { event?: string };

/** A plain websocket client that records all messages. */
export class WebSocketClient {
  readonly messages: WebSocketMessage[] = [];
  /** Messages that are not JSON objects. */
  readonly raw: { data: Buffer; isBinary: boolean }[] = [];
  readonly socket: WebSocket;
  /** Close code, HTTP status of a rejected upgrade, or error code. */
  end: { code?: number; status?: number; error?: string; retryAfter?: string } = {};
  pongs = 0;
  #answersPings = true;
  #changed = Promise.withResolvers<void>();

  constructor(url: string, options: { answersPings?: boolean } = {}) {
    this.#answersPings = options.answersPings ?? true;
    this.socket = new WebSocket(url, { perMessageDeflate: false, maxPayload: 2 ** 20 });
    this.socket.on("message", (data: Buffer, isBinary) => this.#receive(data, isBinary));
    this.socket.on("pong", () => this.pongs++);
    this.socket.on("close", (code) => {
      this.end.code ??= code;
      this.#wake();
    });
    this.socket.on("error", (error: NodeJS.ErrnoException) => {
      this.end.error = error.code ?? error.message;
    });
    this.socket.on("unexpected-response", (_request, response) => {
      this.end.status = response.statusCode ?? 0;
      const retryAfter = response.headers["retry-after"];
      if (retryAfter) this.end.retryAfter = retryAfter;
      response.resume();
      this.socket.terminate();
    });
  }

  send(message: unknown): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  messagesOf(event: string): WebSocketMessage[] {
    return this.messages.filter((message) => message.event === event);
  }

  /** Waits for `count` messages of the event in real time. Does not advance the manual clock. */
  async waitFor(event: string, count = 1): Promise<WebSocketMessage[]> {
    while (this.messagesOf(event).length < count) {
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed before ${event}`);
      await this.#changed.promise;
    }
    return this.messagesOf(event);
  }

  async waitForClose(): Promise<WebSocketClient["end"]> {
    if (this.socket.readyState !== WebSocket.CLOSED)
      await new Promise((resolve) => this.socket.once("close", resolve));
    return this.end;
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  #receive(data: Buffer, isBinary: boolean): void {
    let message: unknown;
    try {
      message = JSON.parse(data.toString());
    } catch {
      message = undefined;
    }
    if (isBinary || typeof message !== "object" || message === null || Array.isArray(message)) {
      this.raw.push({ data, isBinary });
      return;
    }
    const { event, requestId } = message as WebSocketMessage;
    this.messages.push(message as WebSocketMessage);
    this.#wake();
    if (event === "PING" && this.#answersPings)
      this.send({ event: "PONG", ...(requestId === undefined ? {} : { requestId }) });
  }
}

/** A simulator and the websocket clients of one test. */
export class WebSocketFixture {
  readonly rest: RestClient;
  readonly #clients: WebSocketClient[] = [];

  private constructor(rest: RestClient) {
    this.rest = rest;
  }

  static async start(options: SimulatorOptions = {}): Promise<WebSocketFixture> {
    // On a port of its own: it stays free while a fault stops the server.
    const port = await findFreePort();
    return new WebSocketFixture(await RestClient.start({ port, ...options }, { isLive: true }));
  }

  get clock() {
    return this.rest.clock;
  }

  get simulator() {
    return this.rest.simulator;
  }

  url(token: string): string {
    return `${this.simulator.wsUrl}?access_token=${encodeURIComponent(token)}`;
  }

  /** Starts to connect with a valid token. Does not wait for CONNECTED. */
  async startConnecting(options?: { answersPings?: boolean }): Promise<WebSocketClient> {
    return this.connectWithToken(await this.rest.fetchToken(this.simulator.wsUrl), options);
  }

  connectWithToken(token: string, options?: { answersPings?: boolean }): WebSocketClient {
    const client = new WebSocketClient(this.url(token), options);
    this.#clients.push(client);
    return client;
  }

  async connect(options?: { answersPings?: boolean }): Promise<WebSocketClient> {
    const client = await this.startConnecting(options);
    await client.waitFor("CONNECTED");
    return client;
  }

  /** Connects and subscribes to all indexes of a type. */
  async connectAndSubscribe(indexType = "LX"): Promise<WebSocketClient> {
    const client = await this.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType });
    await client.waitFor("SUBSCRIBED_INDEX_TICKER");
    return client;
  }

  /** Disconnects all clients and removes all faults. */
  clear(): void {
    this.simulator.setFaults();
    for (const client of this.#clients.splice(0)) client.socket.terminate();
  }

  async stop(): Promise<void> {
    this.clear();
    await this.simulator.stop();
  }
}
