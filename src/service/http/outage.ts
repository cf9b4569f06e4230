import { HOST_SCOPE } from "../../model/status/service-condition.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import { raceAbort } from "../../runtime/timeouts.ts";
import {
  BUDGET,
  HOUR_MS,
  INITIAL_FAILED_SHARE,
  MAX_ATTEMPTS,
  MAX_CHANCE,
  MAX_PROBE_MS,
  MINUTE_MS,
  PROBE_BACKOFF,
  REPEATED,
  TEN_MINUTES_MS,
  URGENT_PROBES,
} from "../limits.ts";

/**
 * What a failed attempt says. `refused`: no connection to the host, whatever is asked. `failed`: this request failed. `timeout`:
 * it held a slot for a minute. `go_away`: the service answers, and wants fewer requests.
 */
export type FailureSign = "refused" | "failed" | "timeout" | "go_away";

/** For an attempt without a complete response. */
export function networkSign(code: string): FailureSign {
  if (/^(connection_refused|connect_timeout|dns_failed|network_unreachable)$/.test(code)) return "refused";
  return code === "timeout" ? "timeout" : "failed";
}

/** Fewer than 100 requests in an hour to one endpoint that fails. */
const ENDPOINT_PROBES = { ...PROBE_BACKOFF, maxMs: 1.5 * MINUTE_MS };

export type BreakerState = "closed" | "open";

interface OutageOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Asks any endpoint, and records what it answers. Never rejects. */
  readonly probe: (probes: number) => Promise<void>;
  /** `scope`: the endpoint (of derivatives: of one type), or `host` if everything fails. */
  readonly onStateChange: (scope: string, state: BreakerState) => void;
  /** The first answer after everything failed. */
  readonly onRecovered: () => void;
}

/** All times are monotonic. */
class EndpointState {
  probeAt = 0;
  probes = 0;
  /** In a row. */
  failures = 0;
  failingSince = 0;
  isOpen = false;
  pausedAt = 0;
  pausedUntil = 0;
  /** Its last answer took longer than a probe may. */
  isSlow = false;
}

interface HostState extends Pick<EndpointState, "probeAt" | "probes"> {
  /** A probe has failed too, or there is no connection: else it is a doubt, which the probe under way decides. */
  isKnown: boolean;
  isReported: boolean;
}

/** Not one of the service's data: what it answers says nothing about them. */
export const TOKEN_ENDPOINT = "/oauth/token";

/**
 * Counts failures in a row, of each endpoint and of all. An endpoint that fails alone gets one request at a time. When everything
 * fails nothing is sent but one probe for all who wait, at an endpoint that may still work; the websocket takes every other one.
 */
export class Outage {
  readonly #options: OutageOptions;
  readonly #clock: Clock;
  readonly #endpoints = new Map<string, EndpointState>();
  /** Set while everything seems to fail. */
  #host: HostState | undefined;
  /** In a row, of all endpoints. */
  #failures = 0;
  /** Of the requests while the service answers. */
  #failedShare: number = INITIAL_FAILED_SHARE;
  #lastAnswerAt = Number.NEGATIVE_INFINITY;
  #urgentUntil = Number.NEGATIVE_INFINITY;
  #hasResent = false;
  #waiting = 0;
  #isSocketWaiting = false;
  #isTurnOfSocket = false;
  #change = new AbortController();

  constructor(options: OutageOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** The endpoints that fail; `host` if everything does. */
  get open(): readonly string[] {
    if (this.#host?.isReported) return [HOST_SCOPE];
    return [...this.#endpoints].filter(([, { isOpen }]) => isOpen).map(([name]) => name);
  }

  get isDown(): boolean {
    return this.#host !== undefined;
  }

  /** Everything is down, and the service asked for a pause. */
  get isPaused(): boolean {
    return this.#host?.isKnown === true && this.#clock.monotonic() < this.#longestPause;
  }

  get #longestPause(): number {
    return Math.max(0, ...[...this.#endpoints.values()].map(({ pausedUntil }) => pausedUntil));
  }

  /** An endpoint of another kind asked for silence, and that is not over: the types of derivatives are limited together. */
  isAnyPaused(beside: string): boolean {
    const now = this.#clock.monotonic();
    const kindOf = (path: string) => path.split("/", 2).join("/");
    return [...this.#endpoints].some(
      ([name, { pausedUntil }]) => kindOf(name) !== kindOf(beside) && now < pausedUntil,
    );
  }

  isOpen(endpoint: string): boolean {
    return (this.isDown && endpoint !== TOKEN_ENDPOINT) || this.#stateOf(endpoint).isOpen;
  }

  /** Whether requests to the endpoint failed since its last success. */
  isFailing(endpoint: string): boolean {
    return this.#stateOf(endpoint).failures > 0;
  }

  /** Whether a request whose connection broke may be sent again at once: one, until the next answer. */
  claimResend(): boolean {
    const isAllowed = this.#failures === 0 && !this.#hasResent;
    this.#hasResent = true;
    return isAllowed;
  }

  /**
   * Whether to give up a request after `MAX_PROBE_MS`: a stream without history is synced, and nothing answers. A slow endpoint
   * has its time, and so has a page of history: it is large.
   */
  isHanging(endpoint: string, startedAt: number, isPoll: boolean): boolean {
    if (!this.#isUrgent || this.isOpen(endpoint)) return this.#isUrgent;
    return isPoll && this.#lastAnswerAt < startedAt && !this.#stateOf(endpoint).isSlow;
  }

  /** A stream without history is synced: an outage is probed every three seconds. */
  recordUrgency(): void {
    this.#urgentUntil = this.#clock.monotonic() + TEN_MINUTES_MS;
  }

  /** Something of the service works again: the next probe may start at once. */
  probeNow(): void {
    const now = this.#clock.monotonic();
    for (const each of [...this.#endpoints.values(), this.#host]) if (each) each.probeAt = now;
    this.#wakeWaiters();
  }

  /** In an outage the websocket tries to connect in place of every other probe, or of each that no request waits for. */
  async waitForTurn(signal: AbortSignal): Promise<void> {
    this.#isSocketWaiting = true;
    try {
      for (;;) {
        const host = this.#isTurnOfSocket || this.#waiting === 0 ? this.#host : undefined;
        const now = this.#clock.monotonic();
        if (host && now >= host.probeAt) {
          this.#isTurnOfSocket = false;
          host.probeAt = now + this.#delayMs(HOST_SCOPE, host.probes);
          return;
        }
        await this.#waitForChange(host ? host.probeAt - now : HOUR_MS, signal);
      }
    } finally {
      this.#isSocketWaiting = false;
      this.#wakeWaiters();
    }
  }

  /** Whether a request may start now. An endpoint that fails gets one at a time. */
  tryStart(endpoint: string): boolean {
    const state = this.#stateOf(endpoint);
    const now = this.#clock.monotonic();
    if (this.#startAt(endpoint, state) > now) return false;
    if (state.isOpen) state.probeAt = now + this.#delayMs(endpoint, state.probes++);
    return true;
  }

  /**
   * Calls `start` whenever a request may start, until it returns a result: another request may start first. Returns why there is
   * no result, at the latest at `until`.
   */
  async enter<T extends object>(
    endpoint: string,
    until: number,
    signal: AbortSignal | undefined,
    start: () => Promise<T | undefined> | T | undefined,
  ): Promise<T | "timeout" | "dead"> {
    const state = this.#stateOf(endpoint);
    this.#waiting++;
    try {
      for (;;) {
        const now = this.#clock.monotonic();
        const host = endpoint === TOKEN_ENDPOINT ? undefined : this.#host;
        const isSocketNext = this.#isSocketWaiting && this.#isTurnOfSocket;
        if (host && now >= host.probeAt && !isSocketNext) await raceAbort(this.#probe(host), signal);
        if (this.#startAt(endpoint, state) <= this.#clock.monotonic()) {
          const result = await start();
          if (result !== undefined) return result;
          continue;
        }
        const deadAt = this.#deadAt(endpoint, state);
        // An earlier answer of another endpoint says nothing: the whole service may have failed since.
        if (now >= deadAt && now - this.#lastAnswerAt <= MAX_PROBE_MS) return "dead";
        if (now >= deadAt) this.#doubt("failed");
        if (now >= until) return "timeout";
        const probeAt = host ? (isSocketNext ? until : host.probeAt) : this.#startAt(endpoint, state);
        // Another endpoint may have answered since, which ends a long silence after a minute.
        await this.#waitForChange(Math.min(probeAt, deadAt, until, now + MINUTE_MS) - now, signal);
      }
    } finally {
      this.#waiting--;
      if (this.#waiting === 0 && this.#isSocketWaiting) this.#wakeWaiters();
    }
  }

  /** The wait before a request is sent again. It ends when its endpoint opens: from then on the probes decide. */
  async waitWhileClosed(endpoint: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const until = this.#clock.monotonic() + ms;
    while (!this.isOpen(endpoint) && this.#clock.monotonic() < until)
      await this.#waitForChange(until - this.#clock.monotonic(), signal);
  }

  /** The endpoint answers. If everything failed before, the others get one request to show that they do too. */
  recordAnswer(endpoint: string, tookMs = 0): void {
    const state = this.#stateOf(endpoint);
    const host = this.#host;
    Object.assign(state, { isSlow: tookMs > MAX_PROBE_MS, failures: 0, probes: 0 });
    const hasChanged = this.#close(endpoint, state);
    if (endpoint !== TOKEN_ENDPOINT) {
      this.#lastAnswerAt = this.#clock.monotonic();
      // A run that was taken for an outage does not show how many fail at random.
      if (!host) {
        const failed = this.#failedShare * BUDGET.max + this.#failures;
        this.#failedShare = failed / (BUDGET.max + this.#failures + 1);
      }
      this.#failures = 0;
      this.#hasResent = false;
      this.#host = undefined;
    }
    if (hasChanged || host) this.#wakeWaiters();
    if (this.#host || !host?.isKnown) return;
    for (const [name, each] of this.#endpoints) if (name !== TOKEN_ENDPOINT) this.#close(name, each);
    if (host.isReported) this.#options.onStateChange(HOST_SCOPE, "closed");
    this.#options.onRecovered();
  }

  /** `pauseMs`: no request to the endpoint may start for this long. */
  recordFailure(endpoint: string, sign: FailureSign, pauseMs = 0): void {
    const now = this.#clock.monotonic();
    const state = this.#stateOf(endpoint);
    if (state.failures === 0) state.failingSince = now;
    // A timeout blocks a slot for a minute, and all wait for one token.
    state.failures += sign === "timeout" || endpoint === TOKEN_ENDPOINT ? MAX_ATTEMPTS / 2 : 1;
    if (now + pauseMs > state.pausedUntil)
      Object.assign(state, { pausedAt: now, pausedUntil: now + pauseMs });
    if (this.#host) return;
    const rareRun = Math.ceil(Math.log(MAX_CHANCE) / Math.log(this.#failedShare));
    // A service that wants fewer requests answers.
    if (sign !== "go_away" && endpoint !== TOKEN_ENDPOINT) {
      this.#failures++;
      // Requests fail at random, connections do not; and one endpoint that goes on failing says nothing about the others.
      const isEnough = this.#failures >= Math.max(REPEATED, sign === "refused" ? 0 : rareRun);
      if (isEnough && (sign === "refused" || !state.isOpen)) this.#doubt(sign);
    }
    // An endpoint that fails alone loses its requests but for one at a time: not for a short burst.
    if (state.isOpen || state.failures < Math.max(MAX_ATTEMPTS, rareRun)) return;
    state.isOpen = true;
    state.probeAt = now + this.#delayMs(endpoint, 0);
    this.#options.onStateChange(endpoint, "open");
    this.#wakeWaiters();
  }

  /** Everything seems to fail: nothing is sent until a probe has decided it. Without a connection there is no doubt. */
  #doubt(sign: FailureSign): void {
    const isKnown = sign === "refused";
    const probeAt = this.#clock.monotonic() + (isKnown ? this.#delayMs(HOST_SCOPE, 0) : 0);
    const host = { isKnown, isReported: false, probes: 0, probeAt };
    this.#host = host;
    this.#report(isKnown);
    this.#wakeWaiters();
    if (!isKnown) void this.#probe(host);
  }

  async #probe(host: HostState): Promise<void> {
    host.probeAt = this.#clock.monotonic() + this.#delayMs(HOST_SCOPE, host.probes++);
    this.#isTurnOfSocket = true;
    // Who waits for the end of the outage asks for nothing else meanwhile.
    if (this.#isUrgent) this.recordUrgency();
    await this.#options.probe(host.probes);
    if (this.#host === host) {
      host.isKnown = true;
      // What the service asks of one endpoint, it asks of all.
      host.probeAt = Math.max(host.probeAt, this.#longestPause);
      this.#report(this.isPaused || host.probes > REPEATED);
    }
    this.#wakeWaiters();
  }

  #report(isCertain: boolean): void {
    if (!this.#host || this.#host.isReported || !isCertain) return;
    this.#host.isReported = true;
    this.#options.onStateChange(HOST_SCOPE, "open");
  }

  #close(endpoint: string, state: EndpointState): boolean {
    if (!state.isOpen) return false;
    state.isOpen = false;
    this.#options.onStateChange(endpoint, "closed");
    return true;
  }

  get #isUrgent(): boolean {
    return this.#clock.monotonic() < this.#urgentUntil;
  }

  /** From one probe to the next. */
  #delayMs(endpoint: string, probes: number): number {
    const isShared = endpoint === HOST_SCOPE || endpoint === TOKEN_ENDPOINT;
    const shared = this.#isUrgent ? URGENT_PROBES : PROBE_BACKOFF;
    return backoffDelay(probes, isShared ? shared : ENDPOINT_PROBES, this.#options.random);
  }

  /** When the next request to the endpoint may start; infinite: after a probe. */
  #startAt(endpoint: string, { isOpen, probeAt, pausedAt, pausedUntil }: EndpointState): number {
    if (this.#host && endpoint !== TOKEN_ENDPOINT) return Number.POSITIVE_INFINITY;
    // While others answer, an endpoint that asked for a long silence is asked again after a minute.
    const hasAnswered = this.#lastAnswerAt > pausedAt;
    const silentUntil = hasAnswered ? Math.min(pausedUntil, pausedAt + MINUTE_MS) : pausedUntil;
    return isOpen ? Math.max(silentUntil, probeAt) : silentUntil;
  }

  /** When the endpoint has only failed for so long that it counts as dead, if others answer then. */
  #deadAt(endpoint: string, { isOpen, probes, failingSince }: EndpointState): number {
    const mayBeDead = isOpen && probes > 0 && !this.#host && endpoint !== TOKEN_ENDPOINT;
    return mayBeDead ? failingSince + MINUTE_MS : Number.POSITIVE_INFINITY;
  }

  #stateOf(endpoint: string): EndpointState {
    const state = this.#endpoints.get(endpoint) ?? new EndpointState();
    this.#endpoints.set(endpoint, state);
    return state;
  }

  /** Waits for `ms`, or until something changes for those who wait. */
  async #waitForChange(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const signals = signal ? [signal, this.#change.signal] : [this.#change.signal];
    await this.#clock.sleep(ms, AbortSignal.any(signals)).catch(() => signal?.throwIfAborted());
  }

  #wakeWaiters(): void {
    // Without a reason of its own, each change would create an error with its stack trace.
    this.#change.abort("changed");
    this.#change = new AbortController();
  }
}
