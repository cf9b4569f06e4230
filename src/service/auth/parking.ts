import { exitCode, Failure } from "../../model/failure.ts";
import { noListFailure } from "../../model/response-body.ts";
import { hasHistory, streamOfEndpoint } from "../../model/streams.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import { accessKey, describePath, requiredScope, type ServiceRequest } from "../http/request.ts";
import { MAX_MISSING_RECORDS, type ParkingSign, parkings, REPEATED } from "../limits.ts";

/** An endpoint that the client does not request for now. */
export interface ParkedEndpoint {
  readonly endpoint: string;
  /** The missing scopes; empty if unknown, or if another cause parked the endpoint. */
  readonly scopes: readonly string[];
}

interface Parked extends ParkedEndpoint {
  readonly sign: ParkingSign;
  readonly failure: Failure;
  /** Monotonic. */
  readonly parkedAt: number;
  /** On the boot clock. */
  retryAt: number;
  retries: number;
  /** When a retry takes a new token, which may have newly granted scopes. */
  readonly newTokenAt: number;
}

/** These parameters select a page, not a record. */
const pagingParams: ReadonlySet<string> = new Set(["timestamp", "size", "startAfter"]);
/** No record has this id: a 404 shows that the endpoint accepts the token. */
const UNKNOWN_ID = "00000000-0000-0000-0000-000000000000";

/** A 401 concerns all derivative types. */
function endpointKey({ endpoint, query = {} }: ServiceRequest): string {
  return accessKey({ endpoint, query });
}

/** A 403 may concern one index only. */
function indexKey(request: ServiceRequest): string | undefined {
  const id = request.query?.indexId;
  return id === undefined ? undefined : `${accessKey(request)} ${id}`;
}

function parkingKeys(request: ServiceRequest): readonly string[] {
  return [accessKey(request), indexKey(request) ?? "", endpointKey(request)];
}

/** Index and derivative types count as different kinds: one may be broken while the others are served. */
function listKey({ endpoint, params, query }: ServiceRequest): string {
  return `list ${endpoint} ${query?.indexType ?? params?.derivativeType ?? ""}`;
}

function isHistory({ endpoint }: ServiceRequest): boolean {
  const stream = streamOfEndpoint(endpoint);
  return stream !== undefined && hasHistory(stream);
}

/** Knows what the service serves and what it denies, and parks the latter as the table `parkings` says. */
export class Parking {
  readonly #clock: Pick<Clock, "monotonic" | "boottime">;
  readonly #random: Random;
  readonly #parked = new Map<string, Parked>();
  /** The last good request per `accessKey`, the latest last. */
  readonly #good = new Map<string, ServiceRequest>();
  /** The kinds of which a request got records. */
  readonly #listed = new Set<string>();
  readonly #noLists = new Map<string, number>();
  /** The records per endpoint that answered 404 since the last success of that endpoint. */
  readonly #missingRecords = new Map<string, Set<string>>();
  /** Endpoints that answered 404 since the last success of any endpoint. */
  readonly #missingEndpoints = new Set<string>();

  constructor(clock: Pick<Clock, "monotonic" | "boottime">, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  get parked(): readonly ParkedEndpoint[] {
    return [...this.#parked.values()].filter(({ sign }) => sign !== "no list");
  }

  signOf(request: ServiceRequest): ParkingSign | undefined {
    return this.#find(request)?.sign;
  }

  /** Throws while the request is parked. If its retry is due and needs a new token, returns the sign that parked it. */
  claimRetry(request: ServiceRequest): ParkingSign | undefined {
    const parked = this.#find(request);
    if (!parked) return undefined;
    this.#claim(parked);
    return this.#clock.boottime() >= parked.newTokenAt ? parked.sign : undefined;
  }

  /** One caller retries; the others fail at once until it has its answer. After a 403 each does: its new token may fail. */
  #claim(parked: Parked): void {
    const now = this.#clock.boottime();
    if (now < parked.retryAt) throw parked.failure;
    if (!parked.sign.startsWith("403")) parked.retryAt = now + this.#delayMs(parked.sign, parked.retries + 1);
  }

  /** `likelyScopes`: those that the 403 is most likely about; `isLacking`: the token does not have them. */
  parkForbidden(request: ServiceRequest, likelyScopes: readonly string[], isLacking: boolean): Failure {
    const index = isLacking ? undefined : this.#findDeniedIndex(request);
    const family = accessKey(request);
    if (index === undefined) {
      // Its indices that were denied first are retried with their type.
      this.#good.delete(family);
      for (const key of this.#parked.keys()) if (key.startsWith(`${family} `)) this.#parked.delete(key);
    }
    // If the endpoint serves another derivative type under the same scope, the scope is not what is missing.
    const hasScope = [...this.#good.values()].some(
      (other) => other.endpoint === request.endpoint && requiredScope(other) === requiredScope(request),
    );
    const scopes = hasScope ? [] : likelyScopes;
    const isOneIndex = index !== undefined;
    const failure = forbiddenFailure(request, isOneIndex ? likelyScopes : scopes, { isOneIndex });
    const sign = isOneIndex ? "403 of an index" : isHistory(request) ? "403" : "403 of a snapshot";
    return this.#park(index ?? family, request, sign, failure, scopes);
  }

  /** The key of the index, if the 403 is about it alone: others of its type are served, or too few were requested to know. */
  #findDeniedIndex(request: ServiceRequest): string | undefined {
    const index = indexKey(request);
    const family = accessKey(request);
    if (index === undefined || this.#good.has(family)) return index;
    const denied = new Set([...this.#parked.keys()].filter((key) => key.startsWith(`${family} `)));
    return isSaidEnough("denied type", denied.add(index).size) ? undefined : index;
  }

  /** `startedAt` (monotonic): when the rejected request started. */
  parkUnauthorized(request: ServiceRequest, startedAt: number): Failure {
    const key = endpointKey(request);
    const previous = this.#parked.get(key);
    // A request that was in flight when the endpoint was parked is no failed retry.
    if (previous && startedAt <= previous.parkedAt) return previous.failure;
    const failure = new Failure(`${request.endpoint} rejects a token that other endpoints accept (401)`, {
      code: "auth_failed",
      remedy: "ask the provider of the service; the client retries at growing intervals",
      exit: exitCode.incomplete,
    });
    return this.#park(key, request, "401", failure, []);
  }

  #park(
    key: string,
    request: ServiceRequest,
    sign: ParkingSign,
    failure: Failure,
    scopes: readonly string[],
  ): Failure {
    const { endpoint } = request;
    const before = this.#find(request);
    const now = this.#clock.boottime();
    const retries = before?.sign === sign ? before.retries + 1 : 0;
    const isNewer = before && now < before.newTokenAt;
    const newTokenAt = isNewer ? before.newTokenAt : now + parkings[sign].newTokenMs;
    const retryAt = now + this.#delayMs(sign, retries);
    const parkedAt = this.#clock.monotonic();
    this.#parked.set(key, { endpoint, scopes, sign, failure, parkedAt, retryAt, retries, newTokenAt });
    return failure;
  }

  #find(request: ServiceRequest): Parked | undefined {
    return parkingKeys(request)
      .map((key) => this.#parked.get(key))
      .find((parked) => parked !== undefined);
  }

  #delayMs(sign: ParkingSign, retries: number): number {
    return backoffDelay(retries, parkings[sign].retry, this.#random);
  }

  recordSuccess(request: ServiceRequest): void {
    for (const key of parkingKeys(request)) this.#parked.delete(key);
    this.#missingEndpoints.clear();
    this.#missingRecords.delete(request.endpoint);
    // A cursor may expire, so sending such a request again proves nothing.
    if (request.query?.startAfter !== undefined) return;
    this.#good.delete(accessKey(request));
    this.#good.set(accessKey(request), request);
  }

  /**
   * What may answer although `endpoint` fails: good requests to others, the latest first, and lookups that need only a token; at
   * last those to paths that fail at present. `endpoint`: may be the path of one derivative type.
   */
  elsewhere(endpoint: string, isFailing: (path: string) => boolean): readonly ServiceRequest[] {
    const others = new Map<string, ServiceRequest>();
    for (const good of [...this.#good.values()].reverse())
      if (![good.endpoint, describePath(good)].includes(endpoint) && !others.has(good.endpoint))
        others.set(good.endpoint, good);
    for (const lookup of ["/asset", "/market"])
      if (!endpoint.startsWith(lookup))
        others.set(`${lookup}/{id}`, { endpoint: `${lookup}/{id}`, params: { id: UNKNOWN_ID } });
    const rank = (request: ServiceRequest) => Number(isFailing(describePath(request)));
    return [...others.values()].sort((a, b) => rank(a) - rank(b));
  }

  /**
   * Whether a 404 may mean a missing path, not a missing record: returns a good request that shows it, or a failure without one. A
   * withdrawn path must not make all records count as missing.
   */
  doubtNotFound(request: ServiceRequest): { readonly good: ServiceRequest | undefined } | undefined {
    const { endpoint, params = {}, query = {} } = request;
    this.#missingEndpoints.add(endpoint);
    const records = this.#missingRecords.get(endpoint) ?? new Set();
    this.#missingRecords.set(endpoint, records);
    const recordParams = Object.entries({ ...params, ...query }).filter(([name]) => !pagingParams.has(name));
    // The set is bounded: more records would not change the decision.
    if (records.size <= MAX_MISSING_RECORDS) records.add(JSON.stringify(recordParams));
    const isPlausible = this.#missingEndpoints.size < REPEATED && records.size <= MAX_MISSING_RECORDS;
    return isPlausible
      ? undefined
      : { good: [...this.#good.values()].findLast((each) => each.endpoint === endpoint) };
  }

  hasListed(request: ServiceRequest): boolean {
    return this.#listed.has(listKey(request));
  }

  /**
   * Throws while no request of this kind has ever got records or a list; lets one request a minute through. An outage is none of
   * it, since the host answers: thousands of series would ask again and again.
   */
  assertListed(request: ServiceRequest): void {
    const parked = this.#parked.get(listKey(request));
    if (parked) this.#claim(parked);
  }

  recordList(request: ServiceRequest, rows: number): void {
    const key = listKey(request);
    this.#noLists.delete(key);
    this.#parked.delete(key);
    if (rows > 0) this.#listed.add(key);
  }

  recordNoList(request: ServiceRequest): void {
    const key = listKey(request);
    const count = (this.#noLists.get(key) ?? 0) + 1;
    this.#noLists.set(key, count);
    // Some ids may be broken while others are served: those must not wait.
    if (this.hasListed(request) || !isSaidEnough("no list of a kind", count)) return;
    this.#park(key, request, "no list", noListFailure("like all recent responses of this kind"), []);
  }
}

/** Returns the required scopes that the token does not list, if it lists any. */
export function findMissingScopes(request: ServiceRequest, scopes: ReadonlySet<string> | undefined) {
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
