import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import type { PlainAnswer } from "../rest/http-types.ts";
import {
  encode,
  type HttpAnswer,
  type HttpQuestion,
  Payload,
  type Send,
  type WireAnswer,
} from "../rest/http-types.ts";
import { badlyEncoded, mangleAnswer } from "./body-faults.ts";
import { concernsDelivery, delay, deliver, sendAnswer } from "./delivery-faults.ts";
import { type Ask, isLastPage, mangleJson, PagingFaults } from "./paging-faults.ts";
import type { FaultScript, Strike } from "./script.ts";
import { audienceOf, type TokenDesk, TokenFaults } from "./token-faults.ts";

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
  readonly #options: HttpFaultsOptions;
  readonly #paging: PagingFaults;
  readonly #tokens: TokenFaults;
  readonly #remembersPages: boolean;
  readonly #served = new WeakSet<Socket>();

  constructor(options: HttpFaultsOptions) {
    this.#options = options;
    this.#paging = new PagingFaults(options.refreshSeconds * 1000);
    this.#tokens = new TokenFaults(options.tokens);
    this.#remembersPages = options.script
      .lines("request")
      .some(({ word }) => cursorWords.includes(word.word));
  }

  /** Puts an answer on the wire, bent or not. */
  readonly send: Send = (exchange) => {
    const { response } = exchange;
    const answer = plain(exchange.answer);
    const ask: Ask = (query, at) => plain(exchange.ask(new URLSearchParams([...query]), at));
    const strikes = this.#draw(exchange.question, answer, ask);
    const effective = new Set<Strike>();
    const bent = this.#bend(exchange.question, answer, ask, strikes, effective);
    const said =
      bent === answer ? exchange.answer : { ...bent, payload: new Payload(Buffer.from(bent.body)) };
    const wire = encode(exchange.question, said);
    this.#deliver(strikes, effective, wire, response).catch((problem: Error) => response.destroy(problem));
  };

  #draw({ method, path, query, body, at }: HttpQuestion, answer: PlainAnswer, ask: Ask): Strike[] {
    const asked = new Map(query);
    const place = withoutVersion(path);
    return this.#options.script.strikes({
      moment: "request",
      method,
      path: place,
      // Both tokens are asked for with the same path: what tells the requests apart is in the body.
      query: place === TOKEN_PATH ? new Map([...asked, ["audience", audienceOf(body)]]) : asked,
      isLastPage: () => isLastPage(asked, at, ask, answer),
    });
  }

  /** Notes in `effective` which strikes changed anything. */
  #bend(
    question: HttpQuestion,
    answer: PlainAnswer,
    ask: Ask,
    strikes: readonly Strike[],
    effective: Set<Strike>,
  ): PlainAnswer {
    const { method, body, headers, at: now } = question;
    const path = withoutVersion(question.path);
    const query = new Map(question.query);
    const remembers = this.#remembersPages && method === "GET";
    let bent = (remembers && this.#paging.swappedBack(path, query, now, ask, answer)) || answer;
    const apply = (fault: (strike: Strike) => PlainAnswer | undefined) => {
      for (const strike of strikes) {
        const next = fault(strike);
        if (next === undefined || isSame(next, bent)) continue;
        bent = next;
        effective.add(strike);
      }
    };
    apply(
      (strike) =>
        this.#tokens.bend(strike, body, headers.authorization, now, bent) ??
        this.#paging.question(strike, path, query, now, ask, bent),
    );
    if (remembers) this.#paging.remember(query, bent);
    apply((strike) => mangleJson(strike, bent));
    apply((strike) => mangleAnswer(strike, bent, now));
    if (path === TOKEN_PATH) this.#tokens.remember(body, now, bent);
    return bent;
  }

  async #deliver(
    strikes: readonly Strike[],
    effective: Set<Strike>,
    wire: WireAnswer,
    response: ServerResponse,
  ): Promise<void> {
    const { socket } = response.req;
    const isReused = this.#served.has(socket);
    this.#served.add(socket);
    let answer: PlainAnswer = wire;
    const deliveries = strikes.filter((strike) => {
      const { line } = strike;
      if (line.word.word === "encoding")
        answer = badlyEncoded(line.textOf("how"), line.numberOf("mb"), answer);
      else if (concernsDelivery(strike, isReused)) return true;
      else if (!effective.has(strike)) strike.miss();
      return false;
    });
    const delivery = { socket, response, answer, clock: this.#options.clock };
    for (const strike of deliveries) if (!(await delay(strike, delivery))) return;
    for (const strike of deliveries) if (await deliver(strike, delivery)) return;
    sendAnswer(response, answer);
  }
}

function isSame(left: PlainAnswer, right: PlainAnswer): boolean {
  return (
    left.status === right.status &&
    left.headers === right.headers &&
    Buffer.compare(left.body, right.body) === 0
  );
}

/** Faults that lead back along a walk, for which the walk must be known. */
const cursorWords = ["repeat-page", "swap-pages", "next-id"];
const TOKEN_PATH = "/oauth/token";
const withoutVersion = (path: string) => path.replace(/^\/v3(?=\/)/, "");
const plain = ({ status, headers, payload }: HttpAnswer): PlainAnswer => ({
  status,
  headers,
  body: payload.bytes,
});
