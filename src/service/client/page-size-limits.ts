import { Failure, type FailureCode } from "../../model/failure.ts";
import { MAX_PAGE_SIZE } from "../../model/streams.ts";
import type { Log } from "../../runtime/log.ts";
import type { ServiceRequest } from "../http/request.ts";
import { StatusFailure } from "../http/status-errors.ts";
import { GOOD_PAGES, MIN_PAGE_SIZE, REPEATED } from "../limits.ts";

const TOO_LARGE = 413;
/** Gateways answer so when the page behind them is too large or takes too long, and also in an outage. */
const GATEWAY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** A broken connection, or a limit of the service or a proxy. */
const cutBodies: ReadonlySet<FailureCode> = new Set<FailureCode>(["answer_cut", "malformed_body"]);

/** What an endpoint has shown. */
interface EndpointSizes {
  /** How large a page it sends; undefined: as large as specified. */
  limit?: {
    size: number;
    /** Pages of this size since the limit changed. */
    goodPages: number;
    /** The next larger size is tried after so many. */
    readonly neededPages: number;
  };
  /** The largest size that got a page. */
  accepted: number;
  /** A 400 that no smaller page avoided: the smallest one decides about the next one. */
  hasOtherCause: boolean;
}

/**
 * How large a page each endpoint sends, although the specification allows more. Learned when a smaller page arrives after a
 * larger one failed; the size grows back by and by, so that one bad moment does not slow down the day.
 */
export class PageSizeLimits {
  readonly #log: Log;
  readonly #endpoints = new Map<string, EndpointSizes>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Starts a request within the known limit of its endpoint. */
  begin(request: ServiceRequest): SizedRequest {
    const known = this.#endpoints.get(request.endpoint) ?? { accepted: 0, hasOtherCause: false };
    this.#endpoints.set(request.endpoint, known);
    return new SizedRequest(known, request, this.#log);
  }
}

/** A request whose page gets smaller after failures that speak of its size. */
class SizedRequest {
  readonly #known: EndpointSizes;
  readonly #request: ServiceRequest;
  readonly #log: Log;
  #size: number | undefined;
  #failures = 0;
  /** The last size that failed. */
  #failedSize: number | undefined;
  /** The first 400. */
  #refusal: StatusFailure | undefined;

  constructor(known: EndpointSizes, request: ServiceRequest, log: Log) {
    this.#known = known;
    this.#request = request;
    this.#log = log;
    const size = request.query?.size;
    if (typeof size === "number") this.#size = Math.min(size, known.limit?.size ?? size);
  }

  /** The next attempt. */
  get request(): ServiceRequest {
    if (this.#size === undefined) return this.#request;
    return { ...this.#request, query: { ...this.#request.query, size: this.#size } };
  }

  /** Returns whether to try a smaller page at once. */
  recordFailure(error: unknown): boolean {
    const maxFailures = failuresUntilSmaller(error);
    if (this.#size === undefined || maxFailures === undefined || ++this.#failures < maxFailures) return false;
    const size = this.#nextSize(this.#size, error);
    if (size === this.#size) {
      if (this.#refusal) this.#known.hasOtherCause = true;
      return false;
    }
    if (isRefusal(error)) this.#refusal ??= error;
    this.#failedSize = this.#size;
    this.#size = size;
    this.#failures = 0;
    return true;
  }

  /** The size to try after a failure at `size`; the same: the size is not the cause. */
  #nextSize(size: number, error: unknown): number {
    const known = this.#known;
    const isRefused = isRefusal(error);
    // A page of some ten kilobytes fails for another reason than its size, unless the service says that it is too large.
    const half = Math.max(Math.floor(size / 2), isRefused ? MIN_PAGE_SIZE : 5 * MIN_PAGE_SIZE);
    if (!isRefused || error.status === TOO_LARGE) return Math.min(size, half);
    // A 400 may have any cause.
    if (known.hasOtherCause) return Math.min(size, MIN_PAGE_SIZE);
    // A service that names the field has lowered its limit below what it accepted before.
    if (error.fields.has("size") && size <= known.accepted) known.accepted = 0;
    return Math.min(size, Math.max(half, known.accepted));
  }

  recordSuccess(): void {
    const [known, size] = [this.#known, this.#size];
    if (size === undefined) return;
    known.accepted = Math.max(size, known.accepted);
    const { limit } = known;
    if (this.#failedSize !== undefined) {
      known.hasOtherCause = false;
      this.#learn(Math.max(size, Math.floor(this.#failedSize / 2)));
    } else if (limit && size >= limit.size && ++limit.goodPages >= limit.neededPages) {
      if (limit.size >= MAX_PAGE_SIZE) delete known.limit;
      limit.size = Math.min(limit.size * 2, MAX_PAGE_SIZE);
      limit.goodPages = 0;
    }
  }

  #learn(size: number): void {
    const { limit } = this.#known;
    if (limit && limit.size <= size) return;
    const neededPages = limit ? Math.min(limit.neededPages * 2, GOOD_PAGES.max) : GOOD_PAGES.first;
    this.#known.limit = { size, goodPages: 0, neededPages };
    if (!limit) this.#log.warn({ endpoint: this.#request.endpoint, size }, "service refuses larger pages");
  }

  /** The failure to report: if smaller pages are refused too, the first refusal. */
  explain(error: unknown): unknown {
    return isRefusal(error) ? (this.#refusal ?? error) : error;
  }
}

function isRefusal(error: unknown): error is StatusFailure {
  return error instanceof StatusFailure && error.code === "rejected";
}

/** After so many failures of this kind in a row a smaller page is requested; undefined: its size is not the cause. */
function failuresUntilSmaller(error: unknown): number | undefined {
  if (isRefusal(error)) {
    const { status, fields } = error;
    return status === TOO_LARGE || fields.size === 0 || fields.has("size") ? 1 : undefined;
  }
  const isOfGateway = error instanceof StatusFailure && GATEWAY_STATUSES.has(error.status);
  const isCut = error instanceof Failure && cutBodies.has(error.code);
  return isOfGateway || isCut ? REPEATED : undefined;
}
