import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../../runtime/clock.ts";
import {
  encodeResponse,
  Payload,
  type PlainResponse,
  type SendResponse,
  type SimulatorResponse,
} from "../rest/http-types.ts";
import { applyBodyFault, applyEncodingFault } from "./body-faults.ts";
import { applyDeliveryFault, applyLatency, isDeliveryFault, writeResponse } from "./delivery-faults.ts";
import { LoadFaults } from "./load-faults.ts";
import { applyPageFault, capSize, type PageRequest, PagingFaults } from "./paging-faults.ts";
import type { FaultScript, TriggeredFault } from "./script.ts";
import { readAudience, TokenFaults, type TokenIssuer } from "./token-faults.ts";

/** A fault has changed a response. */
export interface ChangedResponse {
  /** The line of the script. */
  readonly fault: string;
  readonly path: string;
  readonly before: PlainResponse;
  readonly after: PlainResponse;
}

interface HttpFaultsOptions {
  script: FaultScript;
  clock: Clock;
  tokens: TokenIssuer;
  onChanged?: ((change: ChangedResponse) => void) | undefined;
}

/**
 * Applies the faults of the script to HTTP responses, in five steps: cap the page size, fetch another response (paging,
 * stale pages, tokens), change its JSON, replace its status or body, disturb its delivery. Within a step, later lines win.
 */
export class HttpFaults {
  readonly #options: HttpFaultsOptions;
  readonly #paging = new PagingFaults();
  readonly #tokens: TokenFaults;
  readonly #load: LoadFaults;
  readonly #tracksCursors: boolean;
  readonly #usedSockets = new WeakSet<Socket>();

  constructor(options: HttpFaultsOptions) {
    this.#options = options;
    this.#tokens = new TokenFaults(options.tokens);
    this.#load = new LoadFaults(options.clock);
    this.#tracksCursors = options.script
      .linesFor("request")
      .some(({ definition }) => CURSOR_FAULTS.includes(definition.name));
  }

  /** Applies the triggered faults, then sends the response. */
  readonly sendResponse: SendResponse = (exchange) => {
    const { request, rawResponse } = exchange;
    const original = toPlainResponse(exchange.response);
    const page: PageRequest = {
      path: stripVersion(request.path),
      query: new Map(request.query),
      nowMs: request.nowMs,
      fetch: (query, nowMs = request.nowMs) =>
        toPlainResponse(exchange.fetchOriginal(new URLSearchParams([...query]), nowMs)),
    };
    const { path, query } = page;
    const faults = this.#options.script.triggeredFaults({
      kind: "request",
      method: request.method,
      path,
      // Token requests for both audiences have the same path; only the body tells them apart.
      query: path === TOKEN_PATH ? new Map([...query, ["audience", readAudience(request.body)]]) : query,
    });
    const effective = new Set<TriggeredFault>();
    const changed = this.#applyFaults(exchange, page, original, faults, effective);
    const response =
      changed === original
        ? exchange.response
        : { ...changed, payload: new Payload(Buffer.from(changed.body)) };
    const encoded = encodeResponse(request, response);
    this.#deliver(faults, effective, encoded, rawResponse).catch((error: Error) =>
      rawResponse.destroy(error),
    );
  };

  /** Adds the faults that changed anything to `effective`. */
  #applyFaults(
    { request, rawResponse }: Parameters<SendResponse>[0],
    requestedPage: PageRequest,
    original: PlainResponse,
    faults: readonly TriggeredFault[],
    effective: Set<TriggeredFault>,
  ): PlainResponse {
    const { method, body, headers, nowMs } = request;
    const { path } = requestedPage;
    const tracksCursors = this.#tracksCursors && method === "GET";
    let page = requestedPage;
    let changed = original;
    const apply = (applyFault: (fault: TriggeredFault) => PlainResponse | undefined) => {
      for (const fault of faults) {
        const next = applyFault(fault);
        if (next === undefined || isSameResponse(next, changed)) continue;
        this.#options.onChanged?.({ fault: fault.line.text, path, before: changed, after: next });
        changed = next;
        effective.add(fault);
      }
    };
    // First: all other faults change, or replace, pages of this size.
    apply(({ line }) => {
      if (line.definition.name !== "size-cap") return undefined;
      page = { ...page, query: capSize(page.query, line.numberOf("rows")) };
      return page.fetch(page.query);
    });
    if (tracksCursors) changed = this.#paging.completeSwap(page, changed) ?? changed;
    apply(
      (fault) =>
        this.#tokens.apply(fault, body, headers.authorization, nowMs, changed) ??
        this.#paging.applyRequestFault(fault, page, changed),
    );
    if (tracksCursors) this.#paging.recordCursor(page.query, changed);
    apply((fault) => applyPageFault(fault, changed));
    apply((fault) => applyBodyFault(fault, changed, nowMs));
    apply((fault) => this.#load.apply(fault, rawResponse, nowMs));
    if (path === TOKEN_PATH) this.#tokens.recordResponse(body, nowMs, changed);
    return changed;
  }

  async #deliver(
    faults: readonly TriggeredFault[],
    effective: Set<TriggeredFault>,
    encoded: PlainResponse,
    rawResponse: ServerResponse,
  ): Promise<void> {
    const { socket } = rawResponse.req;
    const isReused = this.#usedSockets.has(socket);
    this.#usedSockets.add(socket);
    let response = encoded;
    const deliveries = faults.filter((fault) => {
      const { line } = fault;
      if (line.definition.name === "encoding")
        response = applyEncodingFault(line.textOf("how"), line.numberOf("mb"), response);
      else if (isDeliveryFault(fault, isReused)) return true;
      else if (!effective.has(fault)) fault.uncount();
      return false;
    });
    const delivery = { socket, rawResponse, response, clock: this.#options.clock };
    for (const fault of deliveries) if (!(await applyLatency(fault, delivery))) return;
    for (const fault of deliveries) if (await applyDeliveryFault(fault, delivery)) return;
    writeResponse(rawResponse, response);
  }
}

function isSameResponse(left: PlainResponse, right: PlainResponse): boolean {
  return (
    left.status === right.status &&
    left.headers === right.headers &&
    Buffer.compare(left.body, right.body) === 0
  );
}

/** Faults that need the cursors of earlier pages. */
const CURSOR_FAULTS = ["repeat-page", "swap-pages", "next-id"];
const TOKEN_PATH = "/oauth/token";
const stripVersion = (path: string) => path.replace(/^\/v3(?=\/)/, "");
const toPlainResponse = ({ status, headers, payload }: SimulatorResponse): PlainResponse => ({
  status,
  headers,
  get body() {
    return payload.bytes;
  },
});
