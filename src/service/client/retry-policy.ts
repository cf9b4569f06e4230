import { Failure } from "../../model/failure.ts";
import type { SecretRedactor } from "../../model/secret-redactor.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { countAnswer, isEnough, pauseOf, requiredFor, type Tally } from "../../rule/repetition.ts";
import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { AccessToken, AccessTokens } from "../auth/access-tokens.ts";
import { type EndpointAccess, forbiddenFailure } from "../auth/endpoint-access.ts";
import { authFailed } from "../auth/token-endpoint.ts";
import type { Witness } from "../auth/witness.ts";
import type { Bulkhead } from "../http/bulkhead.ts";
import type { ClientEventListener } from "../http/client-events.ts";
import type { EndpointBreakers, Permit } from "../http/endpoint-breakers.ts";
import { type FailureSign, networkSign } from "../http/outage-rules.ts";
import { guessMissingScope, type ServiceRequest } from "../http/request.ts";
import { failureFromStatus } from "../http/status-errors.ts";
import type { Transport, TransportResponse } from "../http/transport.ts";

export interface AttemptContext {
  readonly clock: Clock;
  readonly onEvent: ClientEventListener;
  readonly baseUrl: URL;
  /** The configured address, unmodified: the token's audience must match it character by character. */
  readonly audience: string;
  readonly tokens: AccessTokens;
  readonly transport: Transport;
  readonly breakers: EndpointBreakers;
  readonly bulkhead: Bulkhead;
  readonly endpointAccess: EndpointAccess;
  readonly witness: Witness;
  readonly redactor: SecretRedactor;
  /** Of any attempt. */
  readonly lastFailure: () => Failure | undefined;
}

/** State that one request carries from attempt to attempt. */
export interface RetryState {
  /** Monotonic: after this the request no longer waits for an open breaker. */
  readonly waitUntil: number;
  hasRefreshedToken: boolean;
  hasReconnected: boolean;
  conflicts: number;
  /** What the service must say again before it counts. */
  readonly tallies: Map<"no list" | "denied", Tally>;
  tokenFailures: number;
  /** Made after the last failed attempt. */
  decision: RetryDecision;
}

/** `waitUntil` (monotonic): how long the request may wait for an open breaker. */
export function createRetryState(waitUntil: number): RetryState {
  return {
    waitUntil,
    hasRefreshedToken: false,
    hasReconnected: false,
    conflicts: 0,
    tallies: new Map(),
    tokenFailures: 0,
    decision: noRetry,
  };
}

interface RetryDecision {
  readonly shouldRetry: boolean;
  /** Retry without delay, and without counting the attempt. */
  readonly isImmediate: boolean;
  /** From `Retry-After`. */
  readonly minDelayMs: number;
  /** No token: back off as in an outage, even if other requests succeed. */
  readonly isSlow?: boolean;
}

/** An attempt in flight. */
export interface Attempt {
  readonly request: ServiceRequest;
  readonly state: RetryState;
  readonly token: AccessToken;
  readonly permit: Permit;
  /** Monotonic. */
  readonly startedAt: number;
}

export const noRetry: RetryDecision = { shouldRetry: false, isImmediate: false, minDelayMs: 0 };
export const retryLater = (minDelayMs = 0): RetryDecision => ({
  shouldRetry: true,
  isImmediate: false,
  minDelayMs: minDelayMs,
});
export const retryNow: RetryDecision = { shouldRetry: true, isImmediate: true, minDelayMs: 0 };

/** How long a request waits for the circuit breaker, over all attempts. Must exceed `MAX_RETRY_AFTER_MS`. */
export const MAX_REQUEST_WAIT_MS = 20 * 60_000;
const MAX_CONFLICT_RETRIES = 3;

/** Sets the decision: retries until the service has said it again, often enough. */
function isRepeated(clock: Clock, state: RetryState, what: "no list" | "denied"): boolean {
  const tally = countAnswer(state.tallies.get(what), clock.monotonic() * MICROS_PER_MS);
  state.tallies.set(what, tally);
  const required = requiredFor(what);
  const isEnoughNow = isEnough(tally, required);
  state.decision = isEnoughNow ? noRetry : retryLater(pauseOf(required) / MICROS_PER_MS);
  return isEnoughNow;
}

/** For a response that cannot be read as a page. Sets the decision. */
export function decideOnUnreadableBody(
  { clock }: AttemptContext,
  { state, permit }: Attempt,
  error: unknown,
): void {
  const code = error instanceof Failure ? error.code : undefined;
  // Not JSON: something else answers in place of the service. In all other cases the host works.
  if (code === "malformed_body") permit.recordFailure("failed");
  else permit.recordSuccess();
  if (code === "no_list") isRepeated(clock, state, "no list");
  else state.decision = code === "malformed_body" || code === "stale_response" ? retryLater() : noRetry;
}
const MAX_TOKEN_FAILURES = 6;

/** For an attempt that gets no token: all requests share its failures, so each may cause only a few. */
export function decideOnTokenFailure(state: RetryState, isUrgent: boolean): void {
  const isLast = ++state.tokenFailures >= MAX_TOKEN_FAILURES && !isUrgent;
  state.decision = isLast ? noRetry : { ...retryLater(), isSlow: true };
}

/**
 * For an attempt without a complete response. Sets the decision and returns the error to throw. `knownSign`: by default, what
 * the failure says.
 */
export function decideOnNetworkFailure(
  { breakers, bulkhead }: AttemptContext,
  attempt: Attempt,
  failure: unknown,
  knownSign?: FailureSign,
): unknown {
  const { request, state, permit, startedAt } = attempt;
  if (!(failure instanceof Failure) || request.signal?.aborted) {
    state.decision = noRetry;
    return failure;
  }
  // The server may close an idle keep-alive connection just as the request is sent: no sign of an outage.
  if (failure.code === "connection_lost" && !state.hasReconnected && breakers.claimResend()) {
    state.hasReconnected = true;
    state.decision = retryNow;
    return failure;
  }
  const sign = knownSign ?? networkSign(failure.code);
  permit.recordFailure(sign);
  bulkhead.recordSign(sign === "timeout" ? "overloaded" : "failure", startedAt);
  state.decision = retryLater();
  return failure;
}

/**
 * For a 401. If a new token would not help, `isAcceptedElsewhere` distinguishes a bad token from an endpoint that rejects good
 * tokens, which must not stop the others. Sets the decision and returns the error to throw.
 */
export async function decideOnUnauthorized(
  { tokens, audience, endpointAccess }: AttemptContext,
  { request, state, token, permit, startedAt }: Attempt,
  isAcceptedElsewhere: () => Promise<boolean>,
): Promise<Failure> {
  permit.recordSuccess();
  const isKnownUnauthorized = endpointAccess.isUnauthorized(request);
  if (!isKnownUnauthorized && !state.hasRefreshedToken && tokens.mayHaveExpired(audience, token)) {
    tokens.reportRejected(audience, token);
    state.hasRefreshedToken = true;
    state.decision = retryNow;
    return authFailed();
  }
  // An earlier success of this token proves nothing: it may have been revoked since.
  const isKnownGood = isKnownUnauthorized && tokens.state(audience) !== "auth_failed";
  // If the cross-check fails, retry later.
  state.decision = retryLater();
  const isAccepted = isKnownGood || (await isAcceptedElsewhere());
  state.decision = noRetry;
  if (!isAccepted) {
    tokens.reportRejected(audience, token);
    return authFailed();
  }
  if (!isKnownGood) tokens.reportAccepted(audience, token);
  return endpointAccess.parkUnauthorized(request, startedAt);
}

/** For every other status than 200 and 401. Sets the decision and returns the error to throw. */
export function decideOnErrorStatus(
  context: AttemptContext,
  attempt: Attempt,
  response: TransportResponse,
): Failure {
  const { request, state, token, permit } = attempt;
  state.decision = noRetry;
  if (response.status === 403) {
    permit.recordSuccess();
    const scopes = guessMissingScope(request, token.scopes);
    const isLacking = scopes.some((scope) => token.scopes?.has(scope) === false);
    const isKnown = context.endpointAccess.isForbidden(request);
    if (isLacking || isKnown || isRepeated(context.clock, state, "denied"))
      return context.endpointAccess.parkForbidden(request, scopes, isLacking);
    return forbiddenFailure(request, scopes, { isFinal: false });
  }
  const failure = failureFromStatus(request.endpoint, response, context.redactor);
  if (failure.family === "operator") {
    permit.recordSuccess();
    return failure;
  }
  if (failure.code === "conflict") {
    permit.recordSuccess();
    state.conflicts++;
    if (state.conflicts <= MAX_CONFLICT_RETRIES) state.decision = retryLater();
    return failure;
  }
  permit.recordFailure(response.status === 429 ? "go_away" : "failed", response.retryAfterMs);
  state.decision = retryLater();
  return failure;
}

/** Retries that each success pays for: they are at most nine requests in ten. */
const RETRIES_PER_SUCCESS = 9;
const MAX_RETRIES = 30;
/** Isolated failures: the next attempt probably succeeds. */
const FAST_BACKOFF = { baseMs: 10, maxMs: 160 };
/** Nearly everything fails. */
const SLOW_BACKOFF = { baseMs: 1_000, maxMs: 60_000 };
/** A snapshot must not miss its period because history has spent the budget. */
const URGENT_BACKOFF = { baseMs: 500, maxMs: 5_000 };

/**
 * Bounds retries as a fraction of all requests, not their number per time: retries wait only milliseconds while successes pay
 * for them, and back off to a minute when hardly any request succeeds.
 */
export class RetryBudget {
  readonly #random: Random;
  #available = MAX_RETRIES;

  constructor(random: Random) {
    this.#random = random;
  }

  recordSuccess(): void {
    this.#available = Math.min(MAX_RETRIES, this.#available + RETRIES_PER_SUCCESS);
  }

  /** Takes one retry from the budget and returns how long it must wait. `retries`: of the same request so far. */
  spend(retries: number, { isSlow = false, isUrgent = false } = {}): number {
    const isPaid = this.#available >= 1;
    if (isPaid) this.#available--;
    const unpaid = isUrgent && !isSlow ? URGENT_BACKOFF : SLOW_BACKOFF;
    return backoffDelay(retries, isPaid && !isSlow ? FAST_BACKOFF : unpaid, this.#random);
  }
}
