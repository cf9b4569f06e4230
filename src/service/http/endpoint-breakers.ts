import { HOST_SCOPE } from "../../model/status/service-condition.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type BreakerState, CircuitBreaker, type Permit } from "./circuit-breaker.ts";

interface EndpointBreakersOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** `scope`: the endpoint (of derivatives: of one type), or `host` for the breaker over all endpoints. */
  readonly onStateChange: (scope: string, state: BreakerState) => void;
  /** Requests another endpoint, to see whether the service answers. Returns the one that did; undefined: none. */
  readonly askAnother: (endpoint: string) => Promise<string | undefined>;
}

/** More for the host: the failures of one dead endpoint must not stop the others. */
const FAILURES_TO_OPEN = { endpoint: 40, host: 48 };
/** If one request in four succeeds, so many failures without a success for so long are very rare too. */
const LONG_FAILURE = { failures: 16, ms: 15_000 };
/** An endpoint that has only failed for this long, while others answered, counts as dead until a probe succeeds. */
const DEAD_ENDPOINT_MS = 60_000;

/** The outcome of a wait: a permit may be available, there is none in time, or the endpoint is dead. */
type WaitResult = "available" | "timeout" | "dead";

/**
 * A circuit breaker per endpoint and one over all of them: dead endpoints stop only their own requests, and a dead service
 * is probed by one request at a time, and by one to another endpoint, whatever the number of endpoints.
 */
export class EndpointBreakers {
  readonly #options: EndpointBreakersOptions;
  readonly #host: CircuitBreaker;
  readonly #endpoints = new Map<string, CircuitBreaker>();
  /** The last success of each endpoint (monotonic). */
  readonly #successes = new Map<string, number>();

  constructor(options: EndpointBreakersOptions) {
    this.#options = options;
    this.#host = this.#createBreaker(HOST_SCOPE, FAILURES_TO_OPEN.host);
  }

  /** The endpoints whose breaker is open, or `host`. */
  get open(): readonly string[] {
    if (this.#host.isOpen) return [HOST_SCOPE];
    return [...this.#endpoints].filter(([, breaker]) => breaker.isOpen).map(([endpoint]) => endpoint);
  }

  /** No request failed since the last success. */
  get isHealthy(): boolean {
    return this.#host.isHealthy;
  }

  /**
   * Calls `enter` whenever a permit may be available, until it returns a result: another request may take the permit first.
   * Returns why there is no result, at the latest at `until` (monotonic).
   */
  async enterWhenAvailable<T extends object>(
    endpoint: string,
    until: number,
    signal: AbortSignal | undefined,
    enter: () => Promise<T | undefined>,
  ): Promise<T | Exclude<WaitResult, "available">> {
    for (;;) {
      const waited = await this.#waitUntilAvailable(endpoint, until, signal);
      if (waited !== "available") return waited;
      const result = await enter();
      if (result !== undefined) return result;
    }
  }

  /**
   * The backoff of a failed request to the endpoint. It ends when the breaker opens: otherwise a request that sleeps would
   * learn late that the endpoint is dead.
   */
  waitWhileClosed(endpoint: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return this.#breakerOf(endpoint).waitWhileClosed(ms, signal);
  }

  isOpen(endpoint: string): boolean {
    return this.#host.isOpen || this.#breakerOf(endpoint).isOpen;
  }

  tryAcquire(endpoint: string): Permit | undefined {
    const breaker = this.#breakerOf(endpoint);
    if (!breaker.canAcquire) return undefined;
    const hostPermit = this.#host.tryAcquire();
    if (!hostPermit) return undefined;
    const isHostProbe = this.#host.isOpen;
    const isEndpointOpen = breaker.isOpen;
    const permit = breaker.tryAcquire();
    let isHostPermitKept = false;
    return {
      recordSuccess: () => {
        this.#successes.set(endpoint, this.#options.clock.monotonic());
        permit?.recordSuccess();
        hostPermit.recordSuccess();
      },
      recordFailure: (pauseMs, weight) => {
        permit?.recordFailure(pauseMs, weight);
        // The host's probe ends with the answer of another endpoint.
        if (isHostProbe) {
          isHostPermitKept = true;
          void this.#askAnother(endpoint, hostPermit);
          return;
        }
        // Probes of a dead endpoint say nothing about the others.
        if (isEndpointOpen) hostPermit.release();
        else hostPermit.recordFailure(0);
        if (breaker.isOpen && !this.#host.isOpen && !this.#haveOthersAnswered(endpoint, breaker))
          void this.#askAnother(endpoint, this.#host.tryAcquire());
      },
      release: () => {
        permit?.release();
        if (!isHostPermitKept) hostPermit.release();
      },
    };
  }

  /** Whether requests to the endpoint failed since its last success. */
  isFailing(endpoint: string): boolean {
    return !this.#breakerOf(endpoint).isHealthy;
  }

  /** Several endpoints may be dead at once, and nothing else be requested: asks one that is not known to fail. */
  async #askAnother(endpoint: string, hostPermit: Permit | undefined): Promise<void> {
    const answering = await this.#options.askAnother(endpoint).catch(() => undefined);
    if (answering === undefined) return hostPermit?.recordFailure(0);
    this.#successes.set(answering, this.#options.clock.monotonic());
    hostPermit?.recordSuccess();
  }

  async #waitUntilAvailable(
    endpoint: string,
    until: number,
    signal: AbortSignal | undefined,
  ): Promise<WaitResult> {
    const breaker = this.#breakerOf(endpoint);
    for (;;) {
      if (breaker.canAcquire && this.#host.canAcquire) return "available";
      const deadAt = this.#deadAt(endpoint, breaker);
      const now = this.#options.clock.monotonic();
      if (now >= deadAt) return "dead";
      if (now >= until) return "timeout";
      const blocked = breaker.canAcquire ? this.#host : breaker;
      // Each outcome may show that the endpoint is dead.
      await blocked.waitForChange(Math.min(until, deadAt), signal);
    }
  }

  /** When the endpoint counts as dead; infinite if all endpoints may be affected. */
  #deadAt(endpoint: string, breaker: CircuitBreaker): number {
    const { failingSince } = breaker;
    if (!breaker.isOpen || failingSince === undefined || this.#host.isOpen) return Number.POSITIVE_INFINITY;
    const isAlone = breaker.hasFailedProbe && this.#haveOthersAnswered(endpoint, breaker);
    return isAlone ? failingSince + DEAD_ENDPOINT_MS : Number.POSITIVE_INFINITY;
  }

  /** Whether another endpoint has answered since this one stopped: an earlier answer may be older than an outage. */
  #haveOthersAnswered(endpoint: string, { openedAt = Number.POSITIVE_INFINITY }: CircuitBreaker): boolean {
    return [...this.#successes].some(([other, at]) => other !== endpoint && at >= openedAt);
  }

  #breakerOf(endpoint: string): CircuitBreaker {
    const known = this.#endpoints.get(endpoint);
    if (known) return known;
    const breaker = this.#createBreaker(endpoint, FAILURES_TO_OPEN.endpoint);
    this.#endpoints.set(endpoint, breaker);
    return breaker;
  }

  #createBreaker(scope: string, failuresToOpen: number): CircuitBreaker {
    const { clock, random } = this.#options;
    return new CircuitBreaker({
      clock,
      random,
      failuresToOpen,
      ...(scope === HOST_SCOPE ? {} : { longFailure: LONG_FAILURE }),
      onStateChange: (state) => {
        this.#options.onStateChange(scope, state);
        if (scope !== HOST_SCOPE || state === "open") return;
        // After an outage of the whole service, the endpoints need not wait for their own probes.
        for (const breaker of this.#endpoints.values()) breaker.probeNow();
      },
    });
  }
}
