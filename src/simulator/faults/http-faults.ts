import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import type { PlainResponse } from "../rest/http-types.ts";
import {
  type EncodedResponse,
  encodeResponse,
  Payload,
  type SendResponse,
  type SimulatorRequest,
  type SimulatorResponse,
} from "../rest/http-types.ts";
import { applyBodyFault, applyEncodingFault } from "./body-faults.ts";
import { applyDeliveryFault, applyLatency, isDeliveryFault, writeResponse } from "./delivery-faults.ts";
import { applyPageFault, type FetchOriginal, isLastPage, PagingFaults } from "./paging-faults.ts";
import type { FaultScript, TriggeredFault } from "./script.ts";
import { readAudience, TokenFaults, type TokenIssuer } from "./token-faults.ts";

export interface HttpFaultsOptions {
  script: FaultScript;
  clock: Clock;
  refreshSeconds: number;
  tokens: TokenIssuer;
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
  readonly #tracksCursors: boolean;
  readonly #usedSockets = new WeakSet<Socket>();

  constructor(options: HttpFaultsOptions) {
    this.#options = options;
    this.#paging = new PagingFaults(options.refreshSeconds * 1000);
    this.#tokens = new TokenFaults(options.tokens);
    this.#tracksCursors = options.script
      .linesFor("request")
      .some(({ definition: word }) => CURSOR_FAULTS.includes(word.name));
  }

  /** Puts an answer on the wire, bent or not. */
  readonly sendResponse: SendResponse = (exchange) => {
    const { rawResponse: response } = exchange;
    const answer = toPlainResponse(exchange.response);
    const ask: FetchOriginal = (query, at) =>
      toPlainResponse(exchange.fetchOriginal(new URLSearchParams([...query]), at));
    const strikes = this.#triggeredFaults(exchange.request, answer, ask);
    const effective = new Set<TriggeredFault>();
    const bent = this.#applyFaults(exchange.request, answer, ask, strikes, effective);
    const said =
      bent === answer ? exchange.response : { ...bent, payload: new Payload(Buffer.from(bent.body)) };
    const wire = encodeResponse(exchange.request, said);
    this.#deliver(strikes, effective, wire, response).catch((problem: Error) => response.destroy(problem));
  };

  #triggeredFaults(
    { method, path, query, body, nowMs: at }: SimulatorRequest,
    answer: PlainResponse,
    ask: FetchOriginal,
  ): TriggeredFault[] {
    const asked = new Map(query);
    const place = stripVersion(path);
    return this.#options.script.triggeredFaults({
      kind: "request",
      method,
      path: place,
      // Both tokens are asked for with the same path: what tells the requests apart is in the body.
      query: place === TOKEN_PATH ? new Map([...asked, ["audience", readAudience(body)]]) : asked,
      isLastPage: () => isLastPage(asked, at, ask, answer),
    });
  }

  /** Notes in `effective` which strikes changed anything. */
  #applyFaults(
    question: SimulatorRequest,
    answer: PlainResponse,
    ask: FetchOriginal,
    strikes: readonly TriggeredFault[],
    effective: Set<TriggeredFault>,
  ): PlainResponse {
    const { method, body, headers, nowMs: now } = question;
    const path = stripVersion(question.path);
    const query = new Map(question.query);
    const remembers = this.#tracksCursors && method === "GET";
    let bent = (remembers && this.#paging.completeSwap(path, query, now, ask, answer)) || answer;
    const apply = (fault: (strike: TriggeredFault) => PlainResponse | undefined) => {
      for (const strike of strikes) {
        const next = fault(strike);
        if (next === undefined || isSameResponse(next, bent)) continue;
        bent = next;
        effective.add(strike);
      }
    };
    apply(
      (strike) =>
        this.#tokens.apply(strike, body, headers.authorization, now, bent) ??
        this.#paging.applyRequestFault(strike, path, query, now, ask, bent),
    );
    if (remembers) this.#paging.recordCursor(query, bent);
    apply((strike) => applyPageFault(strike, bent));
    apply((strike) => applyBodyFault(strike, bent, now));
    if (path === TOKEN_PATH) this.#tokens.recordResponse(body, now, bent);
    return bent;
  }

  async #deliver(
    strikes: readonly TriggeredFault[],
    effective: Set<TriggeredFault>,
    wire: EncodedResponse,
    response: ServerResponse,
  ): Promise<void> {
    const { socket } = response.req;
    const isReused = this.#usedSockets.has(socket);
    this.#usedSockets.add(socket);
    let answer: PlainResponse = wire;
    const deliveries = strikes.filter((strike) => {
      const { line } = strike;
      if (line.definition.name === "encoding")
        answer = applyEncodingFault(line.textOf("how"), line.numberOf("mb"), answer);
      else if (isDeliveryFault(strike, isReused)) return true;
      else if (!effective.has(strike)) strike.uncount();
      return false;
    });
    const delivery = { socket, response, plainResponse: answer, clock: this.#options.clock };
    for (const strike of deliveries) if (!(await applyLatency(strike, delivery))) return;
    for (const strike of deliveries) if (await applyDeliveryFault(strike, delivery)) return;
    writeResponse(response, answer);
  }
}

function isSameResponse(left: PlainResponse, right: PlainResponse): boolean {
  return (
    left.status === right.status &&
    left.headers === right.headers &&
    Buffer.compare(left.body, right.body) === 0
  );
}

/** Faults that lead back along a walk, for which the walk must be known. */
const CURSOR_FAULTS = ["repeat-page", "swap-pages", "next-id"];
const TOKEN_PATH = "/oauth/token";
const stripVersion = (path: string) => path.replace(/^\/v3(?=\/)/, "");
const toPlainResponse = ({ status, headers, payload }: SimulatorResponse): PlainResponse => ({
  status,
  headers,
  body: payload.bytes,
});
