import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { encodeFrame } from "../../src/api-server/frames.ts";
import type { HttpExchange, Interceptor, LiveMessage } from "../../src/api-server/interceptor.ts";
import type { Session } from "../../src/api-server/session.ts";
import type { Clock } from "../../src/runtime/clock.ts";
import type {
  Fault,
  FaultEvent,
  HttpStrike,
  LiveStrike,
  RowChoice,
  SimulatedService,
  Strike,
} from "./fault.ts";
import { hashText } from "./fault.ts";
import {
  capSize,
  changePage,
  formatFields,
  PageMemory,
  parseFields,
  type Query,
  readAudience,
  TOKEN_PATH,
} from "./faults/page.ts";
import { waitWhileConnected, writeResponse } from "./faults/responses.ts";
import { encodeResponse, type PlainResponse, toPlainResponse } from "./plain-response.ts";

/** A fault has changed a response. */
export interface ChangedResponse {
  readonly fault: Fault;
  readonly before: PlainResponse;
  readonly after: PlainResponse;
}

interface FaultState {
  readonly fault: Fault;
  /** By request: how often it came, and how often the fault struck on it. */
  readonly requests: Map<string, { seen: number; struck: number }>;
  struck: number;
}

interface Struck {
  readonly fault: Fault;
  readonly chance: Strike["chance"];
  /** Takes the strike back, when the fault found nothing to change. */
  uncount(): void;
}

/** The event on which faults may strike. Two events with the same key are the same request. */
interface Event {
  readonly kind: FaultEvent;
  readonly key: string;
  readonly method?: string;
  readonly path?: string;
  readonly query?: Query;
}

interface FaultInterceptorOptions {
  readonly seed: number;
  readonly clock: Clock;
  readonly service: () => SimulatedService;
  readonly onChanged: ((change: ChangedResponse) => void) | undefined;
}

/**
 * Applies faults to everything that the simulator sends. Whether a fault strikes is a hash of the seed, its position, the
 * request, and how often the same request came before: the order of other requests changes nothing (except for `total`).
 */
export class FaultInterceptor implements Required<Interceptor> {
  readonly #options: FaultInterceptorOptions;
  #states: readonly FaultState[] = [];
  #startedAt = 0;
  #memory = new PageMemory();
  #usedSockets = new WeakSet<Socket>();
  /** The faults that strike on the message that is being handled. */
  #subscribing: readonly Struck[] = [];
  readonly #silenced = new WeakMap<Session, "ticks" | "everything">();
  #end = new AbortController();
  /** Serialises closing and opening the port, even when the faults change. */
  #portChange = Promise.resolve();
  #isPortClosed = false;

  constructor(options: FaultInterceptorOptions) {
    this.#options = options;
  }

  /** Faults that already changed a connection stay in effect. */
  setFaults(faults: readonly Fault[]): void {
    this.endFaults();
    this.#states = faults.map((fault) => ({ fault, requests: new Map(), struck: 0 }));
    this.#startedAt = this.#options.clock.monotonic();
    this.#memory = new PageMemory();
    this.#usedSockets = new WeakSet();
    for (const state of this.#states) if (state.fault.events.includes("port")) this.#scheduleClosure(state);
  }

  /** Cancels the timers of the faults and opens the port. */
  endFaults(): void {
    this.#end.abort();
    this.#end = new AbortController();
    if (this.#isPortClosed) this.#setPortClosed(false);
  }

  /** Resolves when all requested port changes are done. */
  async waitForPort(): Promise<void> {
    await this.#portChange;
  }

  /** How often each fault struck. Tests check this: a fault that never strikes tests nothing. */
  get counts(): { readonly fault: Fault; readonly struck: number }[] {
    return this.#states.map(({ fault, struck }) => ({ fault, struck }));
  }

  respond(exchange: HttpExchange, proceed: () => void): void {
    if (this.#states.length === 0) {
      proceed();
      return;
    }
    const { request, rawResponse } = exchange;
    const path = request.path.replace(/^\/v3(?=\/)/, "");
    const query = new Map(request.query);
    // Token requests for both audiences have the same path; only the body tells them apart.
    if (path === TOKEN_PATH) query.set("audience", readAudience(request.body));
    const struck = this.#strike({
      ...{ kind: "request", method: request.method, path, query },
      key: `${request.method} ${path}?${formatQuery(query)}`,
    });
    const effective = new Set<Struck>();
    const original = toPlainResponse(exchange.response);
    const changed = this.#change(exchange, path, original, struck, effective);
    this.#deliver(exchange, encodeResponse(request, changed), struck, effective).catch((error: Error) =>
      rawResponse.destroy(error),
    );
  }

  /** Adds the faults that changed anything to `effective`. */
  #change(
    { request, rawResponse, respondTo }: HttpExchange,
    path: string,
    original: PlainResponse,
    struck: readonly Struck[],
    effective: Set<Struck>,
  ): PlainResponse {
    const { body, headers, nowMs } = request;
    const memory = this.#memory;
    const fetch = (query: Query, atMs = nowMs) =>
      toPlainResponse(respondTo(new URLSearchParams([...query]), atMs));
    let query: Query = new Map(request.query);
    let changed = original;
    const apply = (change: (fault: Fault, strike: HttpStrike) => PlainResponse | undefined) => {
      for (const one of struck) {
        const authorization = headers.authorization ?? "";
        const http = { query, body, authorization, nowMs, rawResponse, memory, fetch };
        const after = change(one.fault, { ...this.#context(one), ...http });
        if (after === undefined || isSameResponse(after, changed)) continue;
        this.#options.onChanged?.({ fault: one.fault, before: changed, after });
        changed = after;
        effective.add(one);
      }
    };
    apply(({ maxRows }) => {
      if (maxRows === undefined) return undefined;
      query = capSize(query, maxRows);
      return fetch(query);
    });
    const usesCursors = request.method === "GET" && this.#states.some(({ fault }) => fault.usesCursors);
    if (usesCursors) changed = memory.completeSwap(query, changed, fetch) ?? changed;
    apply((fault, strike) => fault.request?.(changed, strike));
    if (usesCursors) memory.recordCursor(query, changed);
    apply((fault, strike) => changeContent(fault, strike, changed));
    apply((fault, strike) => fault.response?.(changed, strike));
    if (path === TOKEN_PATH) memory.recordToken(body, nowMs, changed);
    return changed;
  }

  async #deliver(
    { rawResponse }: HttpExchange,
    encoded: PlainResponse,
    struck: readonly Struck[],
    effective: ReadonlySet<Struck>,
  ): Promise<void> {
    const { clock } = this.#options;
    const { socket } = rawResponse.req;
    const isReused = this.#usedSockets.has(socket);
    this.#usedSockets.add(socket);
    let response = encoded;
    for (const { fault } of struck) response = fault.encode?.(response) ?? response;
    for (const { fault } of struck) {
      if (fault.latencyMs !== undefined) await waitWhileConnected(clock, socket, fault.latencyMs);
      if (socket.destroyed) return;
    }
    let isSent = false;
    for (const one of struck) {
      const { fault } = one;
      if (fault.deliver && !isSent) {
        isSent = await fault.deliver({ socket, rawResponse, response, clock, isReused });
        if (!isSent) one.uncount();
      } else if (!fault.encode && fault.latencyMs === undefined && !effective.has(one)) one.uncount();
    }
    if (!isSent) writeResponse(rawResponse, response);
  }

  upgrade(_request: IncomingMessage, socket: Socket, proceed: () => number): number {
    const one = this.#strike({ kind: "upgrade", key: "ws upgrade" }).at(-1);
    return one?.fault.upgrade?.(socket, this.#context(one)) ?? proceed();
  }

  receive(session: Session, message: LiveMessage, proceed: () => void): void {
    const [matched, un] = /^(UN)?SUBSCRIBE_/.exec(String(message.event)) ?? [];
    if (matched === undefined) {
      proceed();
      return;
    }
    // Messages with the same body are the same request. It excludes requestId, which counts up.
    const { requestId: _, ...body } = message;
    const query = new Map(Object.entries(body).map(([name, value]) => [name, String(value)]));
    const kind = un ? "unsubscribe" : "subscribe";
    const struck = this.#strike({ kind, key: `ws ${formatQuery(query)}`, query });
    const error = struck.find(({ fault }) => fault.error)?.fault.error?.();
    this.#subscribing = struck;
    if (error) session.sendEvent("ERROR", error);
    else proceed();
    this.#subscribing = [];
  }

  send(session: Session, messages: readonly string[], proceed: () => void): void {
    const silenced = this.#silenced.get(session);
    if (silenced === "everything") return;
    const [first = ""] = messages;
    if (messages.length !== 1 || /"event":"(INDEX|EXCHANGE)_TICKER"/.test(first)) {
      if (silenced) return;
      if (this.#states.some(({ fault }) => fault.events.includes("tick")))
        session.write(Buffer.concat(messages.flatMap((text) => this.#changeTick(session, text))));
      else proceed();
      return;
    }
    const event = String(JSON.parse(first).event);
    if (event === "CONNECTED")
      this.#confirm(session, first, this.#strike({ kind: "accept", key: "ws accept" }));
    else if (event.startsWith("SUBSCRIBED_")) this.#confirm(session, first, this.#subscribing);
    else proceed();
  }

  #confirm(session: Session, text: string, struck: readonly Struck[]): void {
    const send = (content: string) => {
      const timestamp = new Date(this.#options.clock.now()).toISOString();
      session.write(encodeFrame(JSON.stringify({ ...JSON.parse(content), timestamp })));
    };
    const confirmed = struck.find(({ fault }) => fault.confirm);
    if (confirmed) confirmed.fault.confirm?.(session, text, send);
    else session.write(encodeFrame(text));
    for (const one of struck) one.fault.disturb?.(session, this.#context(one));
  }

  /** The frames to send now for this tick. */
  #changeTick(session: Session, text: string): Buffer[] {
    let fields = parseFields(text);
    const query = new Map(fields.map(([name, value]) => [name, value.replace(/^"(.*)"$/, "$1")]));
    const about = ["indexId", "exchangeId", "marketId", "timestamp"].map((name) => query.get(name));
    const struck = this.#strike({ kind: "tick", key: `ws tick ${about.join(" ")}`, query });
    if (struck.length === 0) return [encodeFrame(text)];
    for (const one of struck) {
      const context = this.#context(one);
      one.fault.disturb?.(session, context);
      if (!one.fault.record) continue;
      const before = formatFields(fields);
      if (isChosen(one.fault.rows, context, 0, 1)) fields = one.fault.record(fields, context);
      if (formatFields(fields) === before) one.uncount();
    }
    let frames = [encodeFrame(formatFields(fields))];
    for (const { fault } of struck) frames = fault.frames?.(frames, session) ?? frames;
    return frames;
  }

  #context({ chance }: Struck): LiveStrike {
    const { clock, service } = this.#options;
    const silence: LiveStrike["silence"] = (session, what) => this.#silence(session, what);
    return { clock, service: service(), chance, silence };
  }

  #silence(session: Session, what: "ticks" | "everything"): void {
    this.#silenced.set(session, what);
    if (what === "ticks") return;
    session.cancelTimers();
    session.socket.removeAllListeners("data");
    session.socket.on("data", () => {});
  }

  /** The faults that strike on this event, in their order. Counts the event as seen. */
  #strike(event: Event): Struck[] {
    const elapsed = this.#options.clock.monotonic() - this.#startedAt;
    return this.#states.flatMap((state, position) => {
      const { fault, requests } = state;
      if (!matches(fault, event, elapsed)) return [];
      const counts = requests.get(event.key) ?? { seen: 0, struck: 0 };
      requests.set(event.key, counts);
      const nth = counts.seen++;
      const about = [this.#options.seed, position + 1, event.key, nth];
      const chance = (...more: (string | number)[]) => hashText([...about, ...more].join("\u0000")) / 2 ** 32;
      const { p = 1, times = Infinity, after = 0, total = Infinity } = fault.conditions;
      if (nth < after || counts.struck >= times || state.struck >= total || chance("strikes") >= p) return [];
      counts.struck++;
      state.struck++;
      const uncount = () => {
        counts.struck--;
        state.struck--;
      };
      return [{ fault, chance, uncount }];
    });
  }

  #scheduleClosure(state: FaultState): void {
    const { clock } = this.#options;
    const { from = 0, to } = state.fault.conditions;
    const close = () => {
      state.struck++;
      this.#setPortClosed(true);
    };
    // 0 means now. A timer would only fire when a manual clock next advances.
    if (from === 0) close();
    const cancelClose = from === 0 ? () => {} : clock.after(from, close);
    const cancelOpen = to === undefined ? () => {} : clock.after(to, () => this.#setPortClosed(false));
    this.#end.signal.addEventListener("abort", () => {
      cancelClose();
      cancelOpen();
    });
  }

  #setPortClosed(shouldClose: boolean): void {
    if (shouldClose === this.#isPortClosed) return;
    this.#isPortClosed = shouldClose;
    // Holds a manual clock until the port has changed.
    const release = this.#options.clock.beginWork();
    const { server } = this.#options.service();
    this.#portChange = this.#portChange
      .then(() => (shouldClose ? server.close() : server.listen()))
      .finally(release);
  }
}

function matches({ events, conditions }: Fault, event: Event, elapsed: number): boolean {
  const { on, from = 0, to = Number.POSITIVE_INFINITY, page, query = {} } = conditions;
  const { kind, method, path = "" } = event;
  if (!events.includes(kind) || elapsed < from || elapsed >= to) return false;
  if (kind === "request" && (on === undefined ? method !== "GET" : !matchesPath(on, path))) return false;
  if (!Object.entries(query).every(([name, value]) => event.query?.get(name) === value)) return false;
  return page === undefined || event.query?.has("startAfter") === (page === "later");
}

function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

/** Undefined: the fault changes no content, or the response is no page. */
function changeContent(fault: Fault, strike: HttpStrike, response: PlainResponse) {
  const { page: changeWhole, record, rows } = fault;
  if (!changeWhole && !record) return undefined;
  return changePage(response, (page) => {
    if (!record) return changeWhole?.(page, strike);
    const changed = page.rows.map((row, at) =>
      isChosen(rows, strike, at, page.rows.length) ? record(row, strike) : row,
    );
    return { ...page, rows: changed };
  });
}

function isChosen(rows: RowChoice = "all", { chance }: Strike, at: number, count: number): boolean {
  if (rows === "first") return at === 0;
  if (rows === "last") return at === count - 1;
  return rows === "all" || chance("row", at) < rows;
}

const formatQuery = (query: Query) =>
  [...query]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");

function isSameResponse(left: PlainResponse, right: PlainResponse): boolean {
  return (
    left.status === right.status &&
    left.headers === right.headers &&
    Buffer.compare(left.body, right.body) === 0
  );
}
