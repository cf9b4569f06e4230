import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../runtime/clock.ts";
import type { PlainAnswer } from "./fault-answer.ts";
import { mangleAnswer } from "./fault-bodies.ts";
import { delay, deliver, sendAnswer } from "./fault-delivery.ts";
import { badlyEncoded } from "./fault-encodings.ts";
import { type Ask, isLastPage, mangleJson, PagingFaults } from "./fault-pages.ts";
import type { FaultScript, Strike } from "./fault-script.ts";
import { type TokenDesk, TokenFaults } from "./fault-tokens.ts";
import { type HttpAnswer, type HttpQuestion, type Mood, Payload, type WireAnswer } from "./http-answer.ts";

export interface HttpFaultsOptions {
  script: FaultScript;
  clock: Clock;
  refreshSeconds: number;
  tokens: TokenDesk;
  /** The simulator without faults. */
  ask(question: HttpQuestion): HttpAnswer;
}

/**
 * Bends HTTP answers as the script says. Strikes apply in four steps, whatever their order in the script: another
 * question is asked (paging, stale pages, tokens), the JSON is changed, the status or body is replaced, and the bytes
 * are delivered badly. Within a step, the later line has the last word.
 */
export class HttpFaults implements Mood {
  readonly #options: HttpFaultsOptions;
  readonly #paging: PagingFaults;
  readonly #tokens: TokenFaults;
  readonly #remembersPages: boolean;
  readonly #strikes = new WeakMap<HttpQuestion, Strike[]>();
  readonly #served = new WeakSet<Socket>();

  constructor(options: HttpFaultsOptions) {
    this.#options = options;
    this.#paging = new PagingFaults(options.refreshSeconds * 1000);
    this.#tokens = new TokenFaults(options.tokens);
    this.#remembersPages = options.script.lines("request").some(({ word }) => word.group === "paging");
  }

  alter(question: HttpQuestion, said: HttpAnswer): HttpAnswer {
    const { method, body, headers, at: now } = question;
    const path = question.path.replace(/^\/v3(?=\/)/, "");
    const query = new Map(question.query);
    const answer = plain(said);
    const ask: Ask = (other, at) =>
      plain(this.#options.ask({ ...question, query: new URLSearchParams([...other]), at }));
    const strikes = this.#options.script.strikes({
      moment: "request",
      method,
      path,
      query:
        path === "/oauth/token" ? new Map([...query, ["audience", this.#tokens.audienceOf(body)]]) : query,
      isLastPage: () => isLastPage(query, now, ask, answer),
    });
    this.#strikes.set(question, strikes);

    const remembers = this.#remembersPages && method === "GET";
    let bent = (remembers && this.#paging.swappedBack(path, query, now, ask, answer)) || answer;
    for (const strike of strikes) {
      bent =
        this.#tokens.bend(strike, body, headers.authorization, now, bent) ??
        this.#paging.question(strike, path, query, now, ask, bent) ??
        bent;
    }
    if (remembers) this.#paging.remember(query, bent);
    for (const strike of strikes) bent = mangleJson(strike, bent) ?? bent;
    for (const strike of strikes) bent = mangleAnswer(strike, bent, now) ?? bent;
    if (path === "/oauth/token") this.#tokens.remember(body, now, bent);
    return bent === answer ? said : { ...bent, payload: new Payload(Buffer.from(bent.body)) };
  }

  deliver(question: HttpQuestion, wire: WireAnswer, response: ServerResponse): void {
    const strikes = this.#strikes.get(question) ?? [];
    this.#deliver(strikes, wire, response).catch((problem: Error) => response.destroy(problem));
  }

  async #deliver(strikes: Strike[], wire: WireAnswer, response: ServerResponse): Promise<void> {
    const { socket } = response.req;
    const isReused = this.#served.has(socket);
    this.#served.add(socket);
    let answer: PlainAnswer = wire;
    for (const { line } of strikes)
      if (line.word.word === "encoding")
        answer = badlyEncoded(line.textOf("how"), line.numberOf("mb"), answer);
    const delivery = { socket, response, answer, clock: this.#options.clock, isReused };
    for (const strike of strikes) if (!(await delay(strike, delivery))) return;
    for (const strike of strikes) if (await deliver(strike, delivery)) return;
    sendAnswer(response, answer);
  }
}

const plain = ({ status, headers, payload }: HttpAnswer): PlainAnswer => ({
  status,
  headers,
  body: payload.bytes,
});

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
