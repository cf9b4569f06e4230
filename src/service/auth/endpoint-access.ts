import { exitCode, Failure } from "../../model/failure.ts";
import { hasHistory, streamOfEndpoint } from "../../model/streams.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import { backoffDelay, type Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { accessKey, describePath, requiredScope, type ServiceRequest } from "../http/request.ts";
import { REJECTED_TOKEN_BACKOFF } from "./token-endpoint.ts";
import type { Witness } from "./witness.ts";

/** An endpoint that the client does not request for now. */
export interface ParkedEndpoint {
  readonly endpoint: string;
  /** The missing scopes; empty if unknown, or if another cause parked the endpoint. */
  readonly scopes: readonly string[];
}

interface Parking extends ParkedEndpoint {
  /** 403: access is missing. 401: it rejects tokens that others accept, probed at growing intervals. */
  readonly status: 401 | 403;
  readonly failure: Failure;
  /** Monotonic. */
  readonly parkedAt: number;
  readonly failedProbes: number;
  /** On the boot clock. */
  retryAt: number;
  /** When a retry takes a new token, which may have newly granted scopes. */
  newTokenAt: number;
}

/** A history can be fetched later; what else is missed is lost. Hundreds of indices may be denied one by one. */
const FORBIDDEN_RETRY = {
  index: { intervalMs: 3_600_000, newTokenMs: 3_600_000 },
  history: { intervalMs: 600_000, newTokenMs: 600_000 },
  snapshot: { intervalMs: 60_000, newTokenMs: 600_000 },
};

/** A 401 concerns all derivative types. */
function endpointKey({ endpoint, query = {} }: ServiceRequest): string {
  return accessKey({ endpoint, query });
}

/** A 403 may concern one index only. */
function indexAccessKey(request: ServiceRequest): string | undefined {
  const id = request.query?.indexId;
  return id === undefined ? undefined : `${accessKey(request)} ${id}`;
}

function accessKeys(request: ServiceRequest): string[] {
  return [accessKey(request), indexAccessKey(request) ?? "", endpointKey(request)];
}

function isHistory({ endpoint }: ServiceRequest): boolean {
  const stream = streamOfEndpoint(endpoint);
  return stream !== undefined && hasHistory(stream);
}

/**
 * Knows which endpoints accept the client's token, and parks the others: a missing scope or one broken endpoint must not make
 * the client drop every token.
 */
export class EndpointAccess {
  readonly #clock: Clock;
  readonly #random: Random;
  /** By `accessKey`, or by `indexAccessKey` if the others of its type are served. */
  readonly #parked = new Map<string, Parking>();
  readonly #witness: Witness;

  constructor(clock: Clock, random: Random, witness: Witness) {
    this.#clock = clock;
    this.#random = random;
    this.#witness = witness;
  }

  get parked(): readonly ParkedEndpoint[] {
    return [...this.#parked.values()];
  }

  isUnauthorized(request: ServiceRequest): boolean {
    return this.#find(request)?.status === 401;
  }

  isForbidden(request: ServiceRequest): boolean {
    return this.#find(request)?.status === 403;
  }

  /** Throws while the request is parked. If its retry is due and needs a new token, returns the status that parked it. */
  claimRetry(request: ServiceRequest): 401 | 403 | undefined {
    const parked = this.#find(request);
    if (!parked) return undefined;
    const now = this.#clock.boottime();
    if (now < parked.retryAt) throw parked.failure;
    // Set before the request: one caller probes; the others fail at once until the probe has its response.
    if (parked.status === 401) parked.retryAt = now + this.#probeDelayMs(parked.failedProbes + 1);
    return now < parked.newTokenAt ? undefined : parked.status;
  }

  /** `likelyScopes`: those that the 403 is most likely about; `isLacking`: the token does not have them. */
  parkForbidden(request: ServiceRequest, likelyScopes: readonly string[], isLacking: boolean): Failure {
    const parked = this.#find(request);
    const index = isLacking ? undefined : this.#findDeniedIndex(request);
    if (index === undefined) this.#forgetFamily(request);
    // If the endpoint serves another derivative type under the same scope, the scope is not what is missing.
    const hasScope = this.#witness.good.some(
      (other) => other.endpoint === request.endpoint && requiredScope(other) === requiredScope(request),
    );
    const scopes = hasScope ? [] : likelyScopes;
    const failure = forbiddenFailure(request, index === undefined ? scopes : likelyScopes, {
      isOneIndex: index !== undefined,
    });
    const family = isHistory(request) ? FORBIDDEN_RETRY.history : FORBIDDEN_RETRY.snapshot;
    const { intervalMs, newTokenMs } = index === undefined ? family : FORBIDDEN_RETRY.index;
    const now = this.#clock.boottime();
    const newTokenAt = parked && now < parked.newTokenAt ? parked.newTokenAt : now + newTokenMs;
    const parking = { status: 403, scopes, failure, failedProbes: 0, newTokenAt } as const;
    return this.#park(request, parking, intervalMs, index);
  }

  /** Its indices that were denied first are retried with their type. */
  #forgetFamily(request: ServiceRequest): void {
    const family = accessKey(request);
    this.#witness.forget(request);
    for (const key of this.#parked.keys()) if (key.startsWith(`${family} `)) this.#parked.delete(key);
  }

  #find(request: ServiceRequest): Parking | undefined {
    return accessKeys(request)
      .map((key) => this.#parked.get(key))
      .find((parked) => parked !== undefined);
  }

  /** The key of the index, if the 403 is about it alone: others of its type are served, or too few were requested to tell. */
  #findDeniedIndex(request: ServiceRequest): string | undefined {
    const index = indexAccessKey(request);
    const family = accessKey(request);
    if (index === undefined || this.#witness.hasServed(request)) return index;
    const denied = new Set([...this.#parked.keys()].filter((key) => key.startsWith(`${family} `)));
    return isSaidEnough("denied type", denied.add(index).size) ? undefined : index;
  }

  /** `startedAt` (monotonic): when the rejected request started. */
  parkUnauthorized(request: ServiceRequest, startedAt: number): Failure {
    const previous = this.#parked.get(endpointKey(request));
    // A request that was in flight when the endpoint was parked is no failed probe.
    if (previous && startedAt <= previous.parkedAt) return previous.failure;
    const failedProbes = previous ? previous.failedProbes + 1 : 0;
    const failure = unauthorizedFailure(request);
    return this.#park(
      request,
      { status: 401, scopes: [], failure, failedProbes, newTokenAt: 0 },
      this.#probeDelayMs(failedProbes),
      endpointKey(request),
    );
  }

  recordSuccess(request: ServiceRequest): void {
    for (const key of accessKeys(request)) this.#parked.delete(key);
    this.#witness.recordGood(request);
  }

  #park(
    request: ServiceRequest,
    parking: Pick<Parking, "status" | "scopes" | "failure" | "failedProbes" | "newTokenAt">,
    delayMs: number,
    key = accessKey(request),
  ): Failure {
    const parkedAt = this.#clock.monotonic();
    const retryAt = this.#clock.boottime() + delayMs;
    this.#parked.set(key, { ...parking, endpoint: request.endpoint, parkedAt, retryAt });
    return parking.failure;
  }

  #probeDelayMs(failedProbes: number): number {
    return backoffDelay(failedProbes, REJECTED_TOKEN_BACKOFF, this.#random);
  }
}

/** Returns the required scopes that the token does not list, if it lists any. */
export function findMissingScopes(
  request: ServiceRequest,
  scopes: ReadonlySet<string> | undefined,
): readonly string[] {
  const scope = requiredScope(request);
  return scope === undefined || !scopes || scopes.has(scope) ? [] : [scope];
}

/** `isFinal`: the 403 is believed; else it is retried. `isOneIndex`: it concerns one index, not all of the type. */
export function forbiddenFailure(
  request: ServiceRequest,
  scopes: readonly string[],
  { isFinal = true, isOneIndex = false }: { isFinal?: boolean; isOneIndex?: boolean } = {},
): Failure {
  const path = describePath(request);
  const missing = scopes.length > 0 ? `the scope ${scopes.join(" and ")}` : `access to ${path}`;
  const what = isOneIndex ? `the index, or ${missing},` : missing;
  const historyInterval = isOneIndex ? "hourly" : "every ten minutes";
  const interval = isHistory(request) ? historyInterval : "every minute";
  return new Failure(`the service denies access to ${path} (403): ${what} is missing`, {
    code: isOneIndex ? "index_forbidden" : "forbidden",
    family: isFinal ? "operator" : "retry",
    remedy: `ask the provider to add ${what.replace(/,$/, "")} to the client's profile; the client retries ${interval}`,
    exit: exitCode.incomplete,
  });
}

function unauthorizedFailure({ endpoint }: ServiceRequest): Failure {
  return new Failure(`${endpoint} rejects a token that other endpoints accept (401)`, {
    code: "auth_failed",
    remedy: "ask the provider of the service; the client retries at growing intervals",
    exit: exitCode.incomplete,
  });
}
