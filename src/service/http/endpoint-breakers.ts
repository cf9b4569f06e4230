import { HOST_SCOPE } from "../../model/status/service-condition.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import {
  asksWitnessAgain,
  type FailureSign,
  failuresToDoubt,
  failureWeights,
  INITIAL_FAILED_SHARE,
  nextFailedShare,
  opensBreaker,
  probeDelayMs,
} from "./outage-rules.ts";

/** Allows one request. The holder reports its outcome exactly once; later reports are ignored. */
export interface Permit {
  recordSuccess(): void;
  /** `pauseMs`: no request to the endpoint may start for this long. */
  recordFailure(sign: FailureSign, pauseMs?: number): void;
  /** The outcome says nothing about the endpoint. */
  release(): void;
}

export type BreakerState = "closed" | "open";

interface EndpointBreakersOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** `scope`: the endpoint (of derivatives: of one type), or `host` if everything fails. */
  readonly onStateChange: (scope: string, state: BreakerState) => void;
  /** The first success after everything failed. */
  readonly onRecovered: () => void;
}

interface ProbeSchedule {
  /** Monotonic. */
  probeAt: number;
  failedProbes: number;
  /** Of an outage: `host` counts as open. */
  isTold?: boolean;
  /** Of an outage: the witness is being asked. Its answer says nothing about endpoints that were dead before. */
  isDoubt?: boolean;
}

interface EndpointState extends ProbeSchedule {
  failures: number;
  failingSince: number;
  openedAt: number | undefined;
  pausedUntil: number;
  pausedAt: number;
  /** Its last answer took longer than a probe may. */
  isSlow: boolean;
}

/** Not one of the service's data: its answer says nothing about them. */
export const TOKEN_ENDPOINT = "/oauth/token";
/** An endpoint that has only failed for this long, while others answered, counts as dead until a probe succeeds. */
export const DEAD_ENDPOINT_MS = 60_000;
/** Shorter than the interval of urgent probes: one that hangs must not hold up the next. */
export const MAX_PROBE_MS = 2_900;
const MAX_PAUSE_MS = 60_000;
/** Re-check hourly; never set an unbounded timer. */
const MAX_WAIT_MS = 3_600_000;
/** A burst of failures at several endpoints is no outage yet. */
const MIN_FAILED_PROBES = 5;
/** Longer than the cadence of a stream without history: it is still synced. */
const URGENCY_MS = 600_000;

/**
 * A circuit breaker per endpoint. The open ones share one probe slot: a dead endpoint stops only its own requests, and a dead
 * service is probed by one request at a time, whatever the number of endpoints.
 */
export class EndpointBreakers {
  readonly #options: EndpointBreakersOptions;
  readonly #clock: Clock;
  readonly #endpoints = new Map<string, EndpointState>();
  /** The last success of each endpoint (monotonic). */
  readonly #successes = new Map<string, number>();
  #change = new AbortController();
  #isProbing = false;
  /** While the websocket waits for it, every other probe of an outage is its own. */
  #isSocketWaiting = false;
  #isTurnOfSocket = false;
  /** Requests that wait for a permit, or have one. */
  #requests = 0;
  /** Set while everything fails: then every request is a probe. */
  #outage: ProbeSchedule | undefined;
  /** In a row, of all endpoints, before an outage. */
  #failures = 0;
  #hasResent = false;
  #failedShare = INITIAL_FAILED_SHARE;
  #lastSign: FailureSign = "failed";
  #urgentUntil = Number.NEGATIVE_INFINITY;

  constructor(options: EndpointBreakersOptions) {
    this.#options = options;
    this.#clock = options.clock;
  }

  /** The endpoints whose breaker is open; `host` if everything fails. */
  get open(): readonly string[] {
    if (this.#outage?.isTold) return [HOST_SCOPE];
    return [...this.#endpoints].filter(([, { openedAt }]) => openedAt !== undefined).map(([name]) => name);
  }

  /** Whether a request whose connection broke may be sent again at once: one, until the next success. */
  claimResend(): boolean {
    const isAllowed = this.#failures === 0 && !this.#hasResent;
    this.#hasResent = true;
    return isAllowed;
  }

  get isDown(): boolean {
    return this.#outage !== undefined;
  }

  /** Everything is down, and the service asked for a pause. */
  get isPaused(): boolean {
    const now = this.#clock.monotonic();
    const isAsked = [...this.#endpoints.values()].some(({ pausedUntil }) => now < pausedUntil);
    return isAsked && this.#outage?.isDoubt === false;
  }

  /** Another endpoint asked for silence, and that is not over. */
  isAnyPaused(beside: string): boolean {
    const now = this.#clock.monotonic();
    return [...this.#endpoints].some(([name, state]) => name !== beside && now < state.pausedUntil);
  }

  isOpen(endpoint: string): boolean {
    return this.isDown || this.#stateOf(endpoint).openedAt !== undefined;
  }

  /** Whether requests to the endpoint failed since its last success. */
  isFailing(endpoint: string): boolean {
    return this.#stateOf(endpoint).failures > 0;
  }

  /**
   * Whether to give up a request after `MAX_PROBE_MS`: a stream without history is synced, and nothing answers. A slow endpoint
   * has its time, and so has a page of history: it is large.
   */
  isHanging(endpoint: string, startedAt: number, isPoll: boolean): boolean {
    if (!this.#isUrgent || this.isOpen(endpoint)) return this.#isUrgent;
    const isSilent = [...this.#successes.values()].every((at) => at < startedAt);
    return isPoll && isSilent && !this.#stateOf(endpoint).isSlow;
  }

  /** A stream without history is synced: an outage is probed every three seconds. */
  recordUrgency(): void {
    this.#urgentUntil = this.#clock.monotonic() + URGENCY_MS;
  }

  /** Something of the service works again: the next probe may start at once. */
  probeNow(): void {
    const now = this.#clock.monotonic();
    for (const each of [...this.#endpoints.values(), this.#outage]) if (each) each.probeAt = now;
    this.#wakeWaiters();
  }

  /** In an outage the websocket tries to connect in place of every other probe, or of each that no request waits for. */
  async waitForTurn(signal: AbortSignal): Promise<void> {
    this.#isSocketWaiting = true;
    try {
      for (;;) {
        const outage = this.#outage;
        const now = this.#clock.monotonic();
        const isItsTurn = this.#isTurnOfSocket || this.#requests === 0;
        const isFree = outage !== undefined && isItsTurn && !this.#isProbing;
        if (isFree && now >= outage.probeAt) {
          this.#isTurnOfSocket = false;
          this.#scheduleProbe(outage, false, false);
          return;
        }
        await this.#waitForChange(isFree ? outage.probeAt - now : MAX_WAIT_MS, signal);
      }
    } finally {
      this.#isSocketWaiting = false;
      this.#wakeWaiters();
    }
  }

  tryAcquire(endpoint: string): Permit | undefined {
    const state = this.#stateOf(endpoint);
    if (!this.#canStart(state)) return undefined;
    const startedAt = this.#clock.monotonic();
    const isProbe = this.isOpen(endpoint);
    if (isProbe) {
      this.#isProbing = true;
      this.#isTurnOfSocket = true;
    }
    let isReported = false;
    const once = (report: () => void) => {
      if (isReported) return;
      isReported = true;
      if (isProbe) this.#isProbing = false;
      report();
      if (isProbe) this.#wakeWaiters();
    };
    return {
      recordSuccess: () =>
        once(() => this.recordAnswer(endpoint, this.#clock.monotonic() - startedAt > MAX_PROBE_MS)),
      recordFailure: (sign, pauseMs = 0) =>
        once(() => this.#onFailure(endpoint, sign, pauseMs, isProbe ? startedAt : undefined)),
      release: () => once(() => {}),
    };
  }

  /**
   * Calls `enter` whenever a permit may be available, until it returns a result: another request may take the permit first.
   * Returns why there is no result, at the latest at `until` (monotonic).
   */
  async enterWhenAvailable<T extends object>(
    endpoint: string,
    until: number,
    signal: AbortSignal | undefined,
    enter: () => Promise<T | undefined> | T | undefined,
  ): Promise<T | "timeout" | "dead"> {
    this.#requests++;
    try {
      return await this.#enter(endpoint, until, signal, enter);
    } finally {
      this.#requests--;
      if (this.#requests === 0 && this.#isSocketWaiting) this.#wakeWaiters();
    }
  }

  async #enter<T extends object>(
    endpoint: string,
    until: number,
    signal: AbortSignal | undefined,
    enter: () => Promise<T | undefined> | T | undefined,
  ): Promise<T | "timeout" | "dead"> {
    const state = this.#stateOf(endpoint);
    for (;;) {
      if (this.#canStart(state)) {
        const result = await enter();
        if (result !== undefined) return result;
        continue;
      }
      const now = this.#clock.monotonic();
      const deadAt = this.#deadAt(endpoint, state);
      if (now >= deadAt) return "dead";
      if (now >= until) return "timeout";
      const isTaken = this.#isProbing || (this.#outage && this.#isSocketWaiting && this.#isTurnOfSocket);
      const probeAt = isTaken ? until : Math.max(this.#pausedUntil(state), (this.#outage ?? state).probeAt);
      await this.#waitForChange(Math.min(probeAt, deadAt, until, now + MAX_WAIT_MS) - now, signal);
    }
  }

  /** The backoff of a failed request. It ends when the breaker opens: from then on the probes decide. */
  async waitWhileClosed(endpoint: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const until = this.#clock.monotonic() + ms;
    while (!this.isOpen(endpoint) && this.#clock.monotonic() < until)
      await this.#waitForChange(until - this.#clock.monotonic(), signal);
  }

  /** Whether only a witness can tell: the endpoint fails, and nothing shows whether others do. */
  needsWitness(endpoint: string): boolean {
    // A refused connection concerns everything, and a service that wants fewer requests answers.
    if (this.#lastSign === "refused" || this.#lastSign === "go_away") return false;
    if (this.#outage) return asksWitnessAgain(this.#outage.failedProbes);
    if (this.#isUrgent && this.#isDoubtful) return true;
    const { openedAt } = this.#stateOf(endpoint);
    return openedAt !== undefined && !this.#haveOthersAnswered(endpoint, openedAt);
  }

  /** Everything seems to fail: every request is a probe. `isDoubt`: the witness is being asked. */
  recordSilence(isDoubt = false): void {
    this.#outage ??= {
      failedProbes: 0,
      probeAt: this.#clock.monotonic() + this.#delayMs(0, this.#lastSign, false),
      isDoubt,
    };
    if (!isDoubt) this.#outage.isDoubt = false;
    this.#tellOutage();
    this.#wakeWaiters();
  }

  /** The endpoint answers. If everything failed before, the others get one request to show that they do too. */
  recordAnswer(endpoint: string, isSlow = false): void {
    this.#stateOf(endpoint).isSlow = isSlow;
    const isFirst = [...this.#endpoints.values()].some(
      ({ openedAt }) => openedAt !== undefined && openedAt >= (this.#successes.get(endpoint) ?? 0),
    );
    this.#successes.set(endpoint, this.#clock.monotonic());
    // A run that was taken for an outage does not show how many fail at random.
    if (!this.#isDoubtful) this.#failedShare = nextFailedShare(this.#failedShare, this.#failures);
    this.#failures = 0;
    this.#hasResent = false;
    const outage = this.#outage;
    this.#outage = undefined;
    for (const [name, state] of this.#endpoints) {
      if (name === endpoint) this.#close(name, state, 0);
      else if (outage && !outage.isDoubt) this.#close(name, state, state.failures);
    }
    if (outage?.isTold) this.#options.onStateChange(HOST_SCOPE, "closed");
    if (outage || isFirst) this.#wakeWaiters();
    if (outage) this.#options.onRecovered();
  }

  #close(endpoint: string, state: EndpointState, failures: number): void {
    state.failures = failures;
    state.failedProbes = 0;
    if (state.openedAt === undefined) return;
    state.openedAt = undefined;
    this.#options.onStateChange(endpoint, "closed");
  }

  /** `probedAt`: when it started, if it was a probe. */
  #onFailure(endpoint: string, sign: FailureSign, pauseMs: number, probedAt: number | undefined): void {
    const now = this.#clock.monotonic();
    const state = this.#stateOf(endpoint);
    if (state.failures === 0) state.failingSince = now;
    state.failures += failureWeights[sign];
    if (now + pauseMs > state.pausedUntil)
      Object.assign(state, { pausedAt: now, pausedUntil: now + pauseMs });
    this.#lastSign = sign;
    if (!this.#outage) this.#failures++;
    // A refused connection concerns every endpoint: no witness is needed.
    if (sign === "refused" && this.#isDoubtful) this.recordSilence();
    // Requests that were in flight when the breaker opened must not delay the probe further.
    const hasOpened = state.openedAt !== undefined || this.#outage;
    const opens = !hasOpened && opensBreaker(state.failures, now - state.failingSince);
    if (opens) state.openedAt = now;
    if (opens || probedAt !== undefined) {
      const isAlone = !this.#outage && this.#haveOthersAnswered(endpoint, state.openedAt ?? now);
      const schedule = this.#outage ?? state;
      this.#scheduleProbe(schedule, probedAt !== undefined, isAlone, probedAt);
      // Everything is down: what the service asks for one endpoint, it asks for all.
      schedule.probeAt = Math.max(schedule.probeAt, now + pauseMs);
    }
    this.#tellOutage();
    if (!opens) return;
    this.#options.onStateChange(endpoint, "open");
    this.#wakeWaiters();
  }

  /** `since`: the start of the last probe; one that hung has waited already. */
  #scheduleProbe(
    schedule: ProbeSchedule,
    hasFailed: boolean,
    isAlone: boolean,
    since = this.#clock.monotonic(),
  ): void {
    schedule.probeAt = since + this.#delayMs(schedule.failedProbes, this.#lastSign, isAlone);
    if (hasFailed) schedule.failedProbes++;
  }

  #tellOutage(): void {
    const outage = this.#outage;
    if (!outage || outage.isTold) return;
    const isCertain = this.#lastSign === "refused" || outage.failedProbes >= MIN_FAILED_PROBES;
    if (!isCertain && !this.isPaused) return;
    outage.isTold = true;
    this.#options.onStateChange(HOST_SCOPE, "open");
  }

  get #isDoubtful(): boolean {
    return this.#failures >= failuresToDoubt(this.#failedShare);
  }

  get #isUrgent(): boolean {
    return this.#clock.monotonic() < this.#urgentUntil;
  }

  #delayMs(failedProbes: number, sign: FailureSign, isAlone: boolean): number {
    return probeDelayMs(failedProbes, { isUrgent: this.#isUrgent, isAlone, sign }, this.#options.random);
  }

  #canStart(state: EndpointState): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#pausedUntil(state)) return false;
    if (!this.#outage && state.openedAt === undefined) return true;
    if (this.#outage && this.#isSocketWaiting && this.#isTurnOfSocket) return false;
    return !this.#isProbing && now >= (this.#outage ?? state).probeAt;
  }

  /** While others answer, an endpoint that asked for a long silence is asked again after a minute. */
  #pausedUntil({ pausedAt, pausedUntil }: EndpointState): number {
    const hasAnswered = [...this.#successes.values()].some((at) => at > pausedAt);
    return hasAnswered ? Math.min(pausedUntil, pausedAt + MAX_PAUSE_MS) : pausedUntil;
  }

  /** When the endpoint counts as dead; infinite if all endpoints may be affected. */
  #deadAt(endpoint: string, { openedAt, failedProbes, failingSince }: EndpointState): number {
    const hasFailed = !this.#outage && openedAt !== undefined && failedProbes > 0;
    const isAlone = hasFailed && this.#haveOthersAnswered(endpoint, openedAt);
    return isAlone ? failingSince + DEAD_ENDPOINT_MS : Number.POSITIVE_INFINITY;
  }

  /** Whether another endpoint has answered since: an earlier answer may be older than an outage. */
  #haveOthersAnswered(endpoint: string, since: number): boolean {
    return [...this.#successes].some(
      ([other, at]) => other !== endpoint && other !== TOKEN_ENDPOINT && at >= since,
    );
  }

  #stateOf(endpoint: string): EndpointState {
    const known = this.#endpoints.get(endpoint);
    if (known) return known;
    const probes = { openedAt: undefined, probeAt: 0, failedProbes: 0 };
    const state = { failures: 0, failingSince: 0, pausedAt: 0, pausedUntil: 0, isSlow: false, ...probes };
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
