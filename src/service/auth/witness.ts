import { exitCode, Failure } from "../../model/failure.ts";
import { noListFailure } from "../../model/response-body.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import type { Clock } from "../../runtime/clock.ts";
import { accessKey, describePath, type ServiceRequest } from "../http/request.ts";
import type { AccessToken } from "./access-tokens.ts";

/** A bad answer, and what the witness shows it to be about. */
export type BadAnswer = "unauthorized" | "not_found" | "failure";
export type Blame = "record" | "endpoint" | "token" | "everything" | "undecided";

/** The service checks the token before it answers with one of these. */
const answeredStatuses: ReadonlySet<number> = new Set([200, 400, 403, 404, 409]);

/** `status`: what the witness answered; undefined: nothing, or something that does not come from the service. */
export function blame(answer: BadAnswer, status: number | undefined): Blame {
  const hasAnswered = status !== undefined && answeredStatuses.has(status);
  // The same path, asked for a record that it had, shows whether only this record is missing.
  if (answer === "not_found") return status === 200 ? "record" : "endpoint";
  if (hasAnswered) return "endpoint";
  if (answer === "failure") return "everything";
  return status === 401 ? "token" : "undecided";
}

/** Sends one request at once, whatever the breakers say. Returns its status. */
type SendOnce = (request: ServiceRequest, token: AccessToken) => Promise<number | undefined>;

/** Whether everything fails is asked once in this time, whoever wants to know. */
const MIN_INTERVAL_MS = 10_000;
/** Several endpoints may break together: so many others are asked about a token. */
const MAX_WITNESSES = 2;
/** No record has this id: a 404 shows that the endpoint accepts the token. */
const UNKNOWN_ID = "00000000-0000-0000-0000-000000000000";
const lookups = ["/asset/{id}", "/market/{id}"] as const;
/** When this many different paths answer 404 and none succeeds, the service is at fault, not the records. */
const MISSING_PATHS_FOR_ALARM = 3;
/** The same holds for more than this many different records of one path. */
const MISSING_RECORDS_FOR_ALARM = 100;
/** These parameters select a page, not a record. */
const pagingParams: ReadonlySet<string> = new Set(["timestamp", "size", "startAfter"]);
const LIST_PROBE_INTERVAL_MS = 60_000;

/** Index and derivative types count as different kinds: one may be broken while the others are served. */
function listKind({ endpoint, params, query }: ServiceRequest): string {
  return `${endpoint} ${query?.indexType ?? params?.derivativeType ?? ""}`;
}

/**
 * Remembers what the service has answered, and asks one of those requests again to see what a bad answer is about: this
 * record, this endpoint, this token, or everything.
 */
export class Witness {
  readonly #clock: Pick<Clock, "monotonic">;
  /** The last good request per `accessKey`, the latest last. */
  readonly #good = new Map<string, ServiceRequest>();
  readonly #testimonies = new Map<
    string,
    { token: AccessToken; status: Promise<number | undefined>; validUntil: number }
  >();
  /** The records per endpoint that answered 404 since the last success of that endpoint. */
  readonly #missingRecords = new Map<string, Set<string>>();
  /** Endpoints that answered 404 since the last success of any endpoint. */
  readonly #missingEndpoints = new Set<string>();
  /** By `listKind`. */
  readonly #served = new Set<string>();
  readonly #noLists = new Map<string, { count: number; probeAt: number }>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  get good(): readonly ServiceRequest[] {
    return [...this.#good.values()];
  }

  recordGood(request: ServiceRequest): void {
    this.#missingEndpoints.clear();
    this.#missingRecords.delete(request.endpoint);
    // A cursor may expire, so sending such a request again proves nothing.
    if (request.query?.startAfter !== undefined) return;
    this.forget(request);
    this.#good.set(accessKey(request), request);
  }

  /** The service denies what it served. */
  forget(request: ServiceRequest): void {
    this.#good.delete(accessKey(request));
  }

  hasServed(request: ServiceRequest): boolean {
    return this.#good.has(accessKey(request));
  }

  /**
   * Good requests to other endpoints, the latest first, and a lookup that needs only a valid token. None to a path that fails
   * at present, unless all do. `endpoint`: may be the path of one derivative type.
   */
  elsewhere(endpoint: string, isFailing: (path: string) => boolean): ServiceRequest[] {
    const others = new Map<string, ServiceRequest>();
    for (const good of this.good.toReversed())
      if (![good.endpoint, describePath(good)].includes(endpoint) && !isFailing(describePath(good)))
        others.set(good.endpoint, others.get(good.endpoint) ?? good);
    const unknown = lookups.filter((lookup) => !endpoint.startsWith(lookup.replace("/{id}", "")));
    const lookup = unknown.find((each) => !isFailing(each)) ?? unknown[0] ?? lookups[0];
    const last = { endpoint: lookup, params: { id: UNKNOWN_ID } };
    return [...[...others.values()].slice(0, MAX_WITNESSES), last];
  }

  /** Whether the endpoint, the token or everything is at fault: others are asked until one decides. */
  async askElsewhere(
    answer: Exclude<BadAnswer, "not_found">,
    others: readonly ServiceRequest[],
    token: AccessToken,
    send: SendOnce,
  ): Promise<Blame> {
    let verdict: Blame = "undecided";
    for (const other of answer === "failure" ? others.slice(0, 1) : others) {
      verdict = blame(answer, await this.#ask(answer, other, token, send));
      if (verdict !== "token") return verdict;
    }
    return verdict;
  }

  /** Whether a 404 means a missing record or a missing path: a withdrawn path must not make all records count as missing. */
  async judgeNotFound(
    request: ServiceRequest,
    failure: Failure,
    token: AccessToken,
    send: SendOnce,
  ): Promise<Failure> {
    const { endpoint, params = {}, query = {} } = request;
    this.#missingEndpoints.add(endpoint);
    const records = this.#missingRecords.get(endpoint) ?? new Set();
    this.#missingRecords.set(endpoint, records);
    const recordParams = Object.entries({ ...params, ...query }).filter(([name]) => !pagingParams.has(name));
    // The set is bounded: more records would not change the decision.
    if (records.size <= MISSING_RECORDS_FOR_ALARM) records.add(JSON.stringify(recordParams));
    const isSuspicious =
      this.#missingEndpoints.size >= MISSING_PATHS_FOR_ALARM || records.size > MISSING_RECORDS_FOR_ALARM;
    if (!isSuspicious) return failure;
    const good = this.good.findLast((each) => each.endpoint === endpoint);
    if (good && blame("not_found", await this.#ask("not_found", good, token, send)) === "record") {
      this.recordGood(good);
      return failure;
    }
    return new Failure(`${endpoint} answers every request with 404`, {
      code: "upstream_version",
      remedy: "check service.baseUrl; the service may have withdrawn version 3 of its API",
      exit: exitCode.incomplete,
      cause: failure,
    });
  }

  #ask(answer: BadAnswer, request: ServiceRequest, token: AccessToken, send: SendOnce) {
    const key = `${answer} ${describePath(request)}`;
    const now = this.#clock.monotonic();
    const last = this.#testimonies.get(key);
    if (last?.token === token && now < last.validUntil) return last.status;
    // No signal: others may wait for the same answer. Only whether everything fails is not asked again for a while.
    const status = send({ ...request, signal: undefined }, token).finally(() => {
      if (answer !== "failure") this.#testimonies.delete(key);
    });
    this.#testimonies.set(key, { token, status, validUntil: now + MIN_INTERVAL_MS });
    return status;
  }

  /** Whether a request of this kind has got records. */
  hasListed(request: ServiceRequest): boolean {
    return this.#served.has(listKind(request));
  }

  /**
   * Throws while no request of this kind has ever got records or a list; lets one request a minute through. The circuit breaker
   * does not count such responses, since the host answers: thousands of series would ask for them again and again.
   */
  assertListed(request: ServiceRequest): void {
    // Some ids may be broken while others are served: those must not wait for a probe.
    if (this.hasListed(request)) return;
    const missing = this.#noLists.get(listKind(request));
    if (!missing || !isSaidEnough("no list of a kind", missing.count)) return;
    const now = this.#clock.monotonic();
    if (now < missing.probeAt) throw noListFailure("like all recent responses of this kind");
    missing.probeAt = now + LIST_PROBE_INTERVAL_MS;
  }

  recordList(request: ServiceRequest, rows: number): void {
    this.#noLists.delete(listKind(request));
    if (rows > 0) this.#served.add(listKind(request));
  }

  recordNoList(request: ServiceRequest): void {
    const count = (this.#noLists.get(listKind(request))?.count ?? 0) + 1;
    this.#noLists.set(listKind(request), {
      count,
      probeAt: this.#clock.monotonic() + LIST_PROBE_INTERVAL_MS,
    });
  }
}
