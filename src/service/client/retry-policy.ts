import { Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { AccessToken, AccessTokens } from "../auth/access-tokens.ts";
import type { RefusedEndpoints, ScopeGate } from "../auth/endpoint-access.ts";
import { authFailed } from "../auth/token-endpoint.ts";
import type { HostGate, Pass } from "../http/circuit-breaker.ts";
import type { RequestSlots } from "../http/concurrency.ts";
import type { Observe } from "../http/events.ts";
import { type Ask, scopeToBlame } from "../http/request.ts";
import type { Concealment } from "../http/secret-redactor.ts";
import { type MissingPaths, statusFailure } from "../http/status-errors.ts";
import type { Answer, Transport } from "../http/transport.ts";

export interface AttemptParts {
  readonly clock: Clock;
  readonly observe: Observe;
  readonly baseUrl: URL;
  /** The address as configured, character by character: it is the token's audience. */
  readonly audience: string;
  readonly tokens: AccessTokens;
  readonly transport: Transport;
  readonly gate: HostGate;
  readonly slots: RequestSlots;
  readonly scopes: ScopeGate;
  readonly refusedEndpoints: RefusedEndpoints;
  readonly missingPaths: MissingPaths;
  readonly concealment: Concealment;
}

/** What one request remembers from one attempt to the next. */
export interface Tries {
  /** Monotonic: from then on it no longer waits for a service that is down. */
  readonly until: number;
  unauthorised: boolean;
  staleConnection: boolean;
  conflicts: number;
  /** About the attempt that failed last. */
  verdict: Verdict;
}

export interface Verdict {
  readonly again: boolean;
  /** At once, and without counting. */
  readonly free: boolean;
  /** The service does not want to be asked before. */
  readonly floorMs: number;
}

/** An attempt that is under way. */
export interface Attempt {
  readonly ask: Ask;
  readonly tries: Tries;
  readonly token: AccessToken;
  readonly pass: Pass;
  /** Monotonic. */
  readonly startedAt: number;
}

export const final: Verdict = { again: false, free: false, floorMs: 0 };
export const later = (floorMs = 0): Verdict => ({ again: true, free: false, floorMs });
const atOnce: Verdict = { again: true, free: true, floorMs: 0 };

const CONFLICTS_BORNE = 3;

/** No answer came, or not a whole one. Gives back what to throw. */
export function judgeBroken({ gate, slots }: AttemptParts, attempt: Attempt, failure: unknown): unknown {
  const { ask, tries, pass, startedAt } = attempt;
  if (!(failure instanceof Failure) || ask.signal?.aborted) {
    tries.verdict = final;
    return failure;
  }
  // A kept-alive connection that the server closed as we wrote says nothing about the server.
  if (failure.code === "connection_lost" && !tries.staleConnection && gate.healthy) {
    tries.staleConnection = true;
    tries.verdict = atOnce;
    return failure;
  }
  pass.failed(0);
  if (failure.code === "timeout") slots.congested(startedAt);
  tries.verdict = later();
  return failure;
}

/**
 * The service refused the token. `isGoodElsewhere` is asked where a new one would not help either: it tells a token that is
 * good for nothing from an endpoint that refuses good ones, which must not take the others with it. Gives back what to throw.
 */
export async function judgeUnauthorised(
  { tokens, audience, refusedEndpoints }: AttemptParts,
  { ask, tries, token, pass, startedAt }: Attempt,
  isGoodElsewhere: () => Promise<boolean>,
): Promise<Failure> {
  pass.succeeded();
  const isKnown = refusedEndpoints.has(ask);
  if (!isKnown && !tries.unauthorised && tokens.mayHaveEnded(audience, token)) {
    tokens.refused(audience, token);
    tries.unauthorised = true;
    tries.verdict = atOnce;
    return authFailed();
  }
  // That it was accepted before says little: it may have been revoked since, as the one before it was.
  const isGood = isKnown && tokens.state(audience) !== "auth_failed";
  // What cannot be found out now may be later.
  tries.verdict = later();
  const isAccepted = isGood || (await isGoodElsewhere());
  tries.verdict = final;
  if (!isAccepted) {
    tokens.refused(audience, token);
    return authFailed();
  }
  if (!isGood) tokens.accepted(audience, token);
  return refusedEndpoints.park(ask, startedAt);
}

/** An answer came, but no page. Gives back what to throw. */
export function judgeStatus(parts: AttemptParts, attempt: Attempt, answer: Answer): Failure {
  const { ask, tries, token, pass, startedAt } = attempt;
  tries.verdict = final;
  if (answer.status === 403) {
    pass.succeeded();
    return parts.scopes.park(ask, scopeToBlame(ask, token.scopes));
  }
  const failure = statusFailure(ask.endpoint, answer, parts.concealment);
  if (failure.family === "operator") {
    pass.succeeded();
    const isStrange = failure.code === "not_found" && !ask.mayBeMissing;
    return isStrange ? parts.missingPaths.missing(ask, failure) : failure;
  }
  if (failure.code === "conflict") {
    pass.succeeded();
    tries.conflicts++;
    if (tries.conflicts <= CONFLICTS_BORNE) tries.verdict = later();
    return failure;
  }
  pass.failed(answer.retryAfterMs);
  if (answer.status === 429) parts.slots.congested(startedAt);
  tries.verdict = later(answer.retryAfterMs);
  return failure;
}

const CAPACITY = 20;
const REFILL_MS = 20_000;
const EARNED_BY_SUCCESS = 0.2;

/**
 * How many second tries the service is asked to bear, over all streams. While half of the answers fail, the
 * breaker never opens; without a budget every failure would multiply itself.
 */
export class RetryBudget {
  readonly #clock: Clock;
  #tokens = CAPACITY;
  #countedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAt = clock.monotonic();
  }

  earn(): void {
    this.#tokens = Math.min(CAPACITY, this.#tokens + EARNED_BY_SUCCESS);
  }

  /** Books one retry and says how long it must wait for its turn: 0 while the budget lasts. */
  take(): number {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(CAPACITY, this.#tokens + (now - this.#countedAt) / REFILL_MS);
    this.#countedAt = now;
    this.#tokens = Math.max(-CAPACITY, this.#tokens - 1);
    return this.#tokens >= 0 ? 0 : -this.#tokens * REFILL_MS;
  }
}
