import { HOST_SCOPE } from "../../model/status/service-condition.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type BreakerState, CircuitBreaker, type Permit } from "./circuit-breaker.ts";

interface EndpointBreakersOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** `scope`: the endpoint, or `host` for the breaker over all endpoints. */
  readonly onStateChange: (scope: string, state: BreakerState) => void;
  /** The endpoint keeps failing and no other one has been requested since: asks one of them whether the service answers. */
  readonly askAnother: (endpoint: string) => void;
}

/** More for the host: the failures of one dead endpoint must not stop the others. */
const FAILURES_TO_OPEN = { endpoint: 40, host: 48 };
/** If one request in four succeeds, so many failures without a success for so long are very rare too. */
const LONG_FAILURE = { failures: 16, ms: 15_000 };
/** An endpoint that has only failed for this long, while others answered, counts as dead until a probe succeeds. */
const DEAD_ENDPOINT_MS = 60_000;

/** A permit of an endpoint and of the host. */
export interface EndpointPermit extends Permit {
  /** A request that only asked whether the service answers failed: nobody else may request this endpoint to close it. */
  recordHostFailure(): void;
}

/** The outcome of a wait: a permit may be available, there is none in time, or the endpoint is dead. */
type WaitResult = "available" | "timeout" | "dead";

/**
 * A circuit breaker per endpoint and one over all of them: a dead endpoint stops only its own requests, and a dead service
 * is probed by one request at a time, whatever the number of endpoints.
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

  isOpen(endpoint: string): boolean {
    return this.#host.isOpen || this.#breakerOf(endpoint).isOpen;
  }

  tryAcquire(endpoint: string): EndpointPermit | undefined {
    const breaker = this.#breakerOf(endpoint);
    if (!breaker.canAcquire) return undefined;
    const hostPermit = this.#host.tryAcquire();
    if (!hostPermit) return undefined;
    const isHostProbe = this.#host.isOpen;
    const isEndpointOpen = breaker.isOpen;
    const permit = breaker.tryAcquire();
    return {
      recordSuccess: () => {
        this.#successes.set(endpoint, this.#options.clock.monotonic());
        permit?.recordSuccess();
        hostPermit.recordSuccess();
      },
      recordFailure: (pauseMs, weight) => {
        permit?.recordFailure(pauseMs, weight);
        // Probes of a dead endpoint say nothing about the others.
        if (isHostProbe || !isEndpointOpen) hostPermit.recordFailure(0);
        else hostPermit.release();
        if (breaker.isOpen && !this.#host.isOpen && !this.#haveOthersAnswered(endpoint, breaker))
          this.#options.askAnother(endpoint);
      },
      recordHostFailure: () => {
        permit?.release();
        hostPermit.recordFailure(0);
      },
      release: () => {
        permit?.release();
        hostPermit.release();
      },
    };
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
      await blocked.waitUntilAvailable(Math.min(until, deadAt), signal);
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
