import { exitCode, Failure } from "../../model/failure.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { requiredScope, type ServiceRequest } from "../http/request.ts";
import type { AccessToken } from "./access-tokens.ts";
import { probeDelayMs } from "./token-endpoint.ts";

const RETRY_INTERVAL_MS = 3_600_000;

/** An endpoint that the client does not request for now, because the profile lacks a scope (403). */
export interface ParkedEndpoint {
  readonly endpoint: string;
  /** The missing scopes; empty if unknown. */
  readonly scopes: readonly string[];
  /** On the boot clock, like `retryAt`. */
  readonly since: number;
  readonly retryAt: number;
}

/** Requests are parked per endpoint and scope: a missing `read:LX` must not park the other indices. */
function endpointScopeKey(request: ServiceRequest): string {
  return `${request.endpoint} ${requiredScope(request) ?? ""}`;
}

/** Parks requests whose scope is missing and lets one retry through every hour. */
export class ForbiddenEndpoints {
  readonly #clock: Clock;
  readonly #parked = new Map<string, ParkedEndpoint>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get parked(): readonly ParkedEndpoint[] {
    return [...this.#parked.values()];
  }

  /** Throws while the request is parked. True if it was parked and its hour is over. */
  isRetryDue(request: ServiceRequest): boolean {
    const parked = this.#parked.get(endpointScopeKey(request));
    if (parked && this.#clock.boottime() < parked.retryAt) throw forbiddenFailure(parked);
    return parked !== undefined;
  }

  /** `missing`: the scopes that the token lacks, or that a 403 is most likely about. */
  park(request: ServiceRequest, missing: readonly string[]): Failure {
    const now = this.#clock.boottime();
    const since = this.#parked.get(endpointScopeKey(request))?.since ?? now;
    const parked = { endpoint: request.endpoint, scopes: missing, since, retryAt: now + RETRY_INTERVAL_MS };
    this.#parked.set(endpointScopeKey(request), parked);
    return forbiddenFailure(parked);
  }

  unpark(request: ServiceRequest): void {
    this.#parked.delete(endpointScopeKey(request));
  }
}

/** Returns the required scopes that the token provably lacks. */
export function findMissingScopes(
  request: ServiceRequest,
  scopes: ReadonlySet<string> | undefined,
): readonly string[] {
  const scope = requiredScope(request);
  return scope === undefined || !scopes || scopes.has(scope) ? [] : [scope];
}

function forbiddenFailure({ endpoint, scopes }: ParkedEndpoint): Failure {
  const what = scopes.length > 0 ? `the scope ${scopes.join(" and ")}` : `access to ${endpoint}`;
  return new Failure(`the service denies access to ${endpoint}: ${what} is missing`, {
    family: "operator",
    code: "forbidden",
    remedy: `ask the provider to add ${what} to the client's profile; the client retries hourly`,
    exit: exitCode.incomplete,
  });
}

interface TokenRejection {
  readonly count: number;
  /** Monotonic: a 401 to a request that started earlier does not count again. */
  readonly since: number;
  /** On the boot clock. */
  probeAt: number;
}

/** No record has this id: any response but 401 shows that the endpoint accepts the token. */
const UNKNOWN_ID = "00000000-0000-0000-0000-000000000000";
const crossCheckLookups = ["/asset/{id}", "/market/{id}"] as const;
/** Several endpoints may break together: cross-check this many others before the token counts as rejected everywhere. */
const MAX_CROSS_CHECKS = 2;

/**
 * Parks endpoints that answer 401 to a token that others accept, and probes them at growing intervals. Without this, one
 * broken endpoint would make the client drop every token.
 */
export class UnauthorizedEndpoints {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #rejections = new Map<string, TokenRejection>();
  /** The last successful request per key, the latest last. */
  readonly #succeeded = new Map<string, ServiceRequest>();
  readonly #crossChecks = new WeakMap<AccessToken, Promise<boolean>>();

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Throws while the request is parked. True for the one request that may probe the endpoint. */
  claimProbe(request: ServiceRequest): boolean {
    const rejection = this.#rejections.get(endpointScopeKey(request));
    if (!rejection) return false;
    const now = this.#clock.boottime();
    if (now < rejection.probeAt) throw unauthorizedFailure(request);
    // Set before the request: one caller probes, the others fail without a request until it has its response.
    rejection.probeAt = now + probeDelayMs(rejection.count, this.#random);
    return true;
  }

  has(request: ServiceRequest): boolean {
    return this.#rejections.has(endpointScopeKey(request));
  }

  /** `startedAt` (monotonic): when the rejected request started. */
  park(request: ServiceRequest, startedAt: number): Failure {
    const existing = this.#rejections.get(endpointScopeKey(request));
    if (existing && startedAt <= existing.since) return unauthorizedFailure(request);
    const count = (existing?.count ?? 0) + 1;
    const probeAt = this.#clock.boottime() + probeDelayMs(count - 1, this.#random);
    this.#rejections.set(endpointScopeKey(request), { count, since: this.#clock.monotonic(), probeAt });
    return unauthorizedFailure(request);
  }

  /** Whether any other endpoint accepts the token. Concurrent callers share one cross-check. */
  isAcceptedElsewhere(
    token: AccessToken,
    isAcceptedBy: (crossCheck: ServiceRequest) => Promise<boolean>,
    rejected: ServiceRequest,
  ): Promise<boolean> {
    const existing = this.#crossChecks.get(token);
    if (existing) return existing;
    const check = anyTrue(this.#crossCheckRequests(rejected), isAcceptedBy);
    this.#crossChecks.set(token, check);
    // Cache only the negative result: an accepted token may be revoked later, and a failed check must be repeated.
    const forget = () => this.#crossChecks.delete(token);
    check.then((isAccepted) => isAccepted && forget(), forget);
    return check;
  }

  recordSuccess(request: ServiceRequest): void {
    const key = endpointScopeKey(request);
    this.#rejections.delete(key);
    // A cursor may expire, so such a request is no cross-check.
    if (request.query?.startAfter !== undefined) return;
    this.#succeeded.delete(key);
    this.#succeeded.set(key, request);
  }

  /** Requests to other endpoints: the last successful ones, and a lookup that needs only a valid token. */
  #crossCheckRequests({ endpoint }: ServiceRequest): ServiceRequest[] {
    const others = new Map<string, ServiceRequest>();
    for (const [key, succeeded] of [...this.#succeeded].reverse())
      if (succeeded.endpoint !== endpoint && !this.#rejections.has(key) && !others.has(succeeded.endpoint))
        others.set(succeeded.endpoint, succeeded);
    const lookup = endpoint.startsWith("/asset") ? crossCheckLookups[1] : crossCheckLookups[0];
    return [
      ...[...others.values()].slice(0, MAX_CROSS_CHECKS),
      { endpoint: lookup, params: { id: UNKNOWN_ID } },
    ];
  }
}

async function anyTrue(
  requests: readonly ServiceRequest[],
  check: (each: ServiceRequest) => Promise<boolean>,
): Promise<boolean> {
  for (const each of requests) if (await check(each)) return true;
  return false;
}

function unauthorizedFailure({ endpoint }: ServiceRequest): Failure {
  return new Failure(`${endpoint} rejects a token that other endpoints accept (401)`, {
    family: "operator",
    code: "auth_failed",
    remedy: "ask the provider of the service; the client retries at growing intervals",
    exit: exitCode.incomplete,
  });
}
