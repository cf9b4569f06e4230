import { Failure, type FailureCode } from "../../model/failure.ts";
import { MAX_PAGE_SIZE } from "../../model/streams.ts";
import type { Log } from "../../runtime/log.ts";
import type { RequestQuery, ServiceRequest } from "../http/request.ts";
import { StatusFailure } from "../http/status-errors.ts";
import { GOOD_PAGES, MIN_PAGE_SIZE, REPEATED } from "../limits.ts";

const TOO_LARGE = 413;
/** Gateways answer so when the page behind them is too large or takes too long, and also in an outage. */
const GATEWAY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** A broken connection, or a limit of the service or a proxy. */
const cutBodies: ReadonlySet<FailureCode> = new Set<FailureCode>(["answer_cut", "malformed_body"]);

interface SizeLimit {
  size: number;
  /** Pages of this size since the limit changed. */
  goodPages: number;
  /** The next larger size is tried after so many. */
  readonly neededPages: number;
}

/**
 * How large a page each endpoint sends, although the specification allows more. Learned when a smaller page arrives after a
 * larger one failed; the size grows back by and by, so that one bad moment does not slow down the day.
 */
export class PageSizeLimits {
  readonly #log: Log;
  readonly #limits = new Map<string, SizeLimit>();
  /** By endpoint: the largest size that got a page. */
  readonly #acceptedSizes = new Map<string, number>();
  /** Endpoints with a 400 that no smaller page avoided: the smallest one decides about the next one. */
  readonly #otherCauses = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Starts a request within the known limit of its endpoint. */
  begin(request: ServiceRequest): SizedRequest {
    return new SizedRequest(this, request, this.#limits.get(request.endpoint)?.size);
  }

  /** The size to try after a failure at `size`; the same: the size is not the cause. */
  nextSize(endpoint: string, size: number, error: unknown): number {
    const isRefused = isRefusal(error);
    // A page of some ten kilobytes fails for another reason than its size, unless the service says that it is too large.
    const half = Math.max(Math.floor(size / 2), isRefused ? MIN_PAGE_SIZE : 5 * MIN_PAGE_SIZE);
    if (!isRefused || error.status === TOO_LARGE) return Math.min(size, half);
    // A 400 may have any cause.
    if (this.#otherCauses.has(endpoint)) return Math.min(size, MIN_PAGE_SIZE);
    const accepted = this.#acceptedSizes.get(endpoint) ?? 0;
    // A service that names the field has lowered its limit below what it accepted before.
    const isLowered = error.fields.has("size") && size <= accepted;
    if (isLowered) this.#acceptedSizes.delete(endpoint);
    return Math.min(size, Math.max(half, isLowered ? 0 : accepted));
  }

  /** No smaller page avoided a 400. */
  recordOtherCause(endpoint: string): void {
    this.#otherCauses.add(endpoint);
  }

  /** `failedSize`: the size that failed just before. */
  recordPage(endpoint: string, size: number, failedSize: number | undefined): void {
    this.#acceptedSizes.set(endpoint, Math.max(size, this.#acceptedSizes.get(endpoint) ?? 0));
    const known = this.#limits.get(endpoint);
    if (failedSize !== undefined) {
      this.#otherCauses.delete(endpoint);
      this.#learn(endpoint, Math.max(size, Math.floor(failedSize / 2)), known);
    } else if (known && size >= known.size && ++known.goodPages >= known.neededPages) {
      if (known.size >= MAX_PAGE_SIZE) this.#limits.delete(endpoint);
      known.size = Math.min(known.size * 2, MAX_PAGE_SIZE);
      known.goodPages = 0;
    }
  }

  #learn(endpoint: string, size: number, known: SizeLimit | undefined): void {
    if (known && known.size <= size) return;
    const neededPages = known ? Math.min(known.neededPages * 2, GOOD_PAGES.max) : GOOD_PAGES.first;
    this.#limits.set(endpoint, { size, goodPages: 0, neededPages });
    if (!known) this.#log.warn({ endpoint, size }, "service refuses larger pages");
  }
}

/** A request whose page gets smaller after failures that speak of its size. */
class SizedRequest {
  readonly #limits: PageSizeLimits;
  readonly #request: ServiceRequest;
  #size: number | undefined;
  #failures = 0;
  /** The last size that failed. */
  #failedSize: number | undefined;
  /** The first 400. */
  #refusal: StatusFailure | undefined;

  constructor(limits: PageSizeLimits, request: ServiceRequest, maxSize = Number.POSITIVE_INFINITY) {
    this.#limits = limits;
    this.#request = request;
    const size = request.query?.size;
    this.#size = typeof size === "number" ? Math.min(size, maxSize) : undefined;
  }

  /** The next attempt. */
  get request(): ServiceRequest {
    if (this.#size === undefined) return this.#request;
    const query: RequestQuery = { ...this.#request.query, size: this.#size };
    return { ...this.#request, query };
  }

  /** Returns whether to try a smaller page at once. */
  recordFailure(error: unknown): boolean {
    const maxFailures = failuresUntilSmaller(error);
    if (this.#size === undefined || maxFailures === undefined || ++this.#failures < maxFailures) return false;
    const { endpoint } = this.#request;
    const size = this.#limits.nextSize(endpoint, this.#size, error);
    if (size === this.#size) {
      if (this.#refusal) this.#limits.recordOtherCause(endpoint);
      return false;
    }
    if (isRefusal(error)) this.#refusal ??= error;
    this.#failedSize = this.#size;
    this.#size = size;
    this.#failures = 0;
    return true;
  }

  recordSuccess(): void {
    if (this.#size !== undefined)
      this.#limits.recordPage(this.#request.endpoint, this.#size, this.#failedSize);
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
