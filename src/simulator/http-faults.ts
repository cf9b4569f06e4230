import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../runtime/clock.ts";
import { mangleAnswer } from "./fault-bodies.ts";
import { delay, deliver, sendAnswer } from "./fault-delivery.ts";
import { type Ask, isLastPage, mangleJson, PagingFaults, plainAnswer } from "./fault-pages.ts";
import type { FaultScript, Strike } from "./fault-script.ts";
import { type TokenDesk, TokenFaults } from "./fault-tokens.ts";
import type { HttpAnswer } from "./http-answer.ts";

export interface FaultyExchange {
  request: IncomingMessage;
  response: ServerResponse;
  /** Without the version prefix: `/index-ticker`. */
  path: string;
  query: ReadonlyMap<string, string>;
  /** The request's body as text; empty for GET. */
  body: string;
  /** What a server without faults would say. */
  answer: HttpAnswer;
  ask: Ask;
}

export interface HttpFaultsOptions {
  script: FaultScript;
  clock: Clock;
  refreshSeconds: number;
  tokens: TokenDesk;
}

/**
 * Bends HTTP answers as the script says. Strikes apply in four steps, whatever their order in the script: another
 * question is asked (paging, stale pages, tokens), the JSON is changed, the status or body is replaced, and the bytes
 * are delivered badly. Within a step, the later line has the last word.
 */
export class HttpFaults {
  readonly #script: FaultScript;
  readonly #clock: Clock;
  readonly #paging: PagingFaults;
  readonly #tokens: TokenFaults;
  readonly #remembersPages: boolean;
  readonly #served = new WeakSet<Socket>();

  constructor({ script, clock, refreshSeconds, tokens }: HttpFaultsOptions) {
    this.#script = script;
    this.#clock = clock;
    this.#paging = new PagingFaults(refreshSeconds * 1000);
    this.#tokens = new TokenFaults(tokens);
    this.#remembersPages = script.lines("request").some(({ word }) => word.group === "paging");
  }

  /** Writes the answer, bent or not. */
  async send(exchange: FaultyExchange): Promise<void> {
    const { request, response } = exchange;
    const { socket } = request;
    const isReused = this.#served.has(socket);
    this.#served.add(socket);
    const strikes = this.#strikes(exchange);
    const answer = this.#bend(exchange, strikes);
    const delivery = { socket, response, answer, clock: this.#clock, isReused };
    for (const strike of strikes) if (!(await delay(strike, delivery))) return;
    for (const strike of strikes) if (await deliver(strike, delivery)) return;
    if (!socket.destroyed) sendAnswer(response, answer);
  }

  #strikes({ request, path, query, body, answer, ask }: FaultyExchange): Strike[] {
    const method = request.method ?? "GET";
    const audience = path === "/oauth/token" ? this.#tokens.audienceOf(body) : undefined;
    return this.#script.strikes({
      moment: "request",
      method,
      path,
      query: audience === undefined ? query : new Map([...query, ["audience", audience]]),
      isLastPage: () => isLastPage(query, this.#clock.now(), ask, answer),
    });
  }

  #bend({ request, path, query, body, answer, ask }: FaultyExchange, strikes: Strike[]): HttpAnswer {
    const now = this.#clock.now();
    const remembers = this.#remembersPages && request.method === "GET";
    let bent = (remembers && this.#paging.swappedBack(path, query, now, ask, answer)) || answer;
    for (const strike of strikes) {
      bent =
        this.#tokens.bend(strike, body, request.headers.authorization, now, bent) ??
        this.#paging.question(strike, path, query, now, ask, bent) ??
        bent;
    }
    if (remembers) this.#paging.remember(query, bent);
    for (const strike of strikes) bent = mangleJson(strike, bent) ?? bent;
    for (const strike of strikes) bent = mangleAnswer(strike, plainAnswer(bent), now) ?? bent;
    this.#tokens.remember(path, body, now, bent);
    return bent;
  }
}

/** Closes the port in the windows that the script's `refuse` lines name, for as long as the signal lasts. */
export async function refuseConnections(
  script: FaultScript,
  clock: Clock,
  port: { close(): Promise<void>; open(): Promise<void> },
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(
    script.lines("port").map(async (line) => {
      await clock.sleep(line.when.from, signal);
      script.count(line);
      await port.close();
      if (!Number.isFinite(line.when.to)) return;
      await clock.sleep(line.when.to - line.when.from, signal);
      await port.open();
    }),
  );
}
