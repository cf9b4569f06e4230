import { formatTimestamp, MICROS_PER_MS, type Micros, parseTimestamp } from "../../model/time.ts";
import type { Log } from "../../runtime/log.ts";
import type { RequestQuery, ServiceRequest } from "../http/request.ts";
import { RejectedFailure } from "../http/status-errors.ts";

/** The documented default; a service that refuses it refuses something else. */
const MIN_PAGE_SIZE = 10;
/** The service's time is known to about a second. */
const CLOCK_UNCERTAINTY_MS = 1_000;
const MAX_LIMIT_AGE_MS = 3_600_000;
/** So many 400s in a row to timestamps in the future show that a service which accepted them refuses them now. */
const MAX_REFUSED_FUTURES = 3;

/**
 * What this service refuses although the specification allows it: large pages and timestamps in the future. Learned from
 * a 400 that a smaller request does not get, and never sent again.
 */
export class ParameterLimits {
  readonly #log: Log;
  /** Milliseconds since 1970 by the service's clock. */
  readonly #now: () => number;
  /** By endpoint: the largest size that got a page. */
  readonly #acceptedSizes = new Map<string, number>();
  /** By endpoint: the largest size to ask for, because larger ones are refused. */
  readonly #maxSizes = new Map<string, { readonly size: number; readonly learnedAt: number }>();
  /** Endpoints with a 400 that no smaller request avoided: a single small request decides about the next one. */
  readonly #otherCauses = new Set<string>();
  /** Undefined: not known yet. */
  #acceptsFuture: boolean | undefined;
  #refusedFutures = 0;

  constructor(log: Log, now: () => number) {
    this.#log = log;
    this.#now = now;
  }

  /** Sends the request within the known limits. After a 400 tries smaller requests; if none helps, throws that 400. */
  async send<T>(given: ServiceRequest, send: (request: ServiceRequest) => Promise<T>): Promise<T> {
    const request = this.#applyKnownLimits(given);
    let query = request.query ?? {};
    let refusal: RejectedFailure | undefined;
    for (;;) {
      try {
        const result = await send({ ...request, query });
        this.#recordAccepted(request, query);
        return result;
      } catch (error) {
        // Only a 400 is explained by the first one; an abort, a 401 or a 5xx is a failure of its own.
        if (!(error instanceof RejectedFailure)) throw error;
        if (!refusal) this.#recordRefusal(request, error.fields);
        refusal ??= error;
        const smaller = this.#reduce(request, query, error.fields);
        if (!smaller) {
          if (query !== request.query) this.#otherCauses.add(request.endpoint);
          throw refusal;
        }
        if (query === request.query && !(await this.#mayBeAvoided(request, smaller, send))) throw refusal;
        query = smaller;
      }
    }
  }

  /** If the endpoint has answered 400 whatever the parameters, asks for the smallest page before it tries all others. */
  async #mayBeAvoided<T>(
    request: ServiceRequest,
    smaller: RequestQuery,
    send: (request: ServiceRequest) => Promise<T>,
  ): Promise<boolean> {
    if (!this.#otherCauses.has(request.endpoint)) return true;
    const present = this.#clampToPresent(smaller) ?? smaller;
    const size = typeof present.size === "number" ? Math.min(present.size, MIN_PAGE_SIZE) : undefined;
    try {
      await send({ ...request, query: { ...present, ...(size === undefined ? {} : { size }) } });
    } catch (error) {
      if (error instanceof RejectedFailure) return false;
      throw error;
    }
    this.#otherCauses.delete(request.endpoint);
    return true;
  }

  /** A service that accepted the future may refuse it from some day on. */
  #recordRefusal({ query = {} }: ServiceRequest, fields: ReadonlySet<string>): void {
    if (this.#acceptsFuture !== true || !this.#clampToPresent(query)) return;
    const isNamed = fields.has("timestamp");
    if (fields.size > 0 && !isNamed) return;
    if (isNamed || ++this.#refusedFutures >= MAX_REFUSED_FUTURES) this.#acceptsFuture = undefined;
  }

  #applyKnownLimits(request: ServiceRequest): ServiceRequest {
    const { endpoint, query } = request;
    if (!query) return request;
    const known = this.#maxSizes.get(endpoint);
    // A single 400 may have had another cause: try the full size again now and then.
    const maxSize =
      known && this.#now() - known.learnedAt < MAX_LIMIT_AGE_MS ? known.size : Number.POSITIVE_INFINITY;
    const isTooLarge = typeof query.size === "number" && query.size > maxSize;
    const sized = isTooLarge ? { ...query, size: maxSize } : query;
    const present = this.#acceptsFuture === false ? this.#clampToPresent(sized) : undefined;
    return { ...request, query: present ?? sized };
  }

  /** The next request to try: first without the future, then with smaller and smaller pages. */
  #reduce(
    { endpoint, query: full = {} }: ServiceRequest,
    sent: RequestQuery,
    fields: ReadonlySet<string>,
  ): RequestQuery | undefined {
    const mayConcern = (field: string) => fields.size === 0 || fields.has(field);
    if (this.#acceptsFuture !== true && mayConcern("timestamp") && sent.timestamp === full.timestamp) {
      const present = this.#clampToPresent(sent);
      if (present) return present;
    }
    if (typeof sent.size !== "number" || !mayConcern("size")) return undefined;
    const accepted = this.#acceptedSizes.get(endpoint) ?? 0;
    // A service that names the field has lowered its limit below what it accepted before.
    const floor = fields.has("size") && sent.size <= accepted ? 0 : accepted;
    if (floor < accepted) this.#acceptedSizes.delete(endpoint);
    const size = Math.max(Math.floor(sent.size / 2), MIN_PAGE_SIZE, floor);
    return size < sent.size ? { ...sent, size } : undefined;
  }

  /** The same query up to the present; undefined if it does not reach into the future. */
  #clampToPresent(query: RequestQuery): RequestQuery | undefined {
    const presentMs = Math.floor(this.#now() - CLOCK_UNCERTAINTY_MS);
    const ts = readTimestamp(query);
    if (ts === undefined || ts <= presentMs * MICROS_PER_MS) return undefined;
    return { ...query, timestamp: `${formatTimestamp(presentMs * MICROS_PER_MS).slice(0, 23)}Z` };
  }

  #recordAccepted({ endpoint, query: full = {} }: ServiceRequest, sent: RequestQuery): void {
    if (typeof sent.size === "number") {
      const accepted = Math.max(sent.size, this.#acceptedSizes.get(endpoint) ?? 0);
      this.#acceptedSizes.set(endpoint, accepted);
      const known = this.#maxSizes.get(endpoint)?.size;
      if (known !== undefined && sent.size > known) this.#maxSizes.delete(endpoint);
      else if (sent.size !== full.size) {
        this.#maxSizes.set(endpoint, { size: accepted, learnedAt: this.#now() });
        if (known !== accepted) this.#log.warn({ endpoint, size: accepted }, "service refuses larger pages");
      }
    }
    const isFuture = (readTimestamp(sent) ?? 0) > (this.#now() + CLOCK_UNCERTAINTY_MS) * MICROS_PER_MS;
    if (isFuture) this.#refusedFutures = 0;
    if (this.#acceptsFuture !== undefined) return;
    if (sent.timestamp !== full.timestamp) {
      // If the size was reduced too, that alone may have helped.
      if (sent.size !== full.size) return;
      this.#acceptsFuture = false;
      this.#log.warn({ endpoint }, "service refuses timestamps in the future");
    } else if (isFuture) this.#acceptsFuture = true;
  }
}

function readTimestamp({ timestamp }: RequestQuery): Micros | undefined {
  return typeof timestamp === "string" ? parseTimestamp(timestamp) : undefined;
}
