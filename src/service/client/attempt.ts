import { Failure, failureCode } from "../../model/failure.ts";
import { decodeBody, type ReadBody, type ResponseBody } from "../../model/response-body.ts";
import type { SecretRedactor } from "../../model/secret-redactor.ts";
import { MICROS_PER_MS } from "../../model/time.ts";
import { countAnswer, isEnough, pauseOf, requiredFor, type Tally } from "../../rule/repetition.ts";
import type { Clock } from "../../runtime/clock.ts";
import { finishesWithin, raceAbort } from "../../runtime/timeouts.ts";
import type { AccessToken, AudienceTokens } from "../auth/access-tokens.ts";
import { forbiddenFailure, type Parking } from "../auth/parking.ts";
import { authFailed } from "../auth/token-endpoint.ts";
import type { Bulkhead } from "../http/bulkhead.ts";
import { type ClientEventListener, requestEvent } from "../http/client-events.ts";
import { addressOf, timeoutFailure } from "../http/network-failures.ts";
import { type FailureSign, networkSign, type Outage, TOKEN_ENDPOINT } from "../http/outage.ts";
import { toLoadSign } from "../http/pace.ts";
import {
  buildRequestPath,
  describePath,
  guessMissingScope,
  requestPriority,
  type ServiceRequest,
} from "../http/request.ts";
import {
  deadEndpointFailure,
  failureFromStatus,
  unreachableFailure,
  withdrawnFailure,
} from "../http/status-errors.ts";
import type { Transport, TransportResponse } from "../http/transport.ts";
import {
  MAX_ATTEMPTS,
  MAX_PROBE_MS,
  MAX_RETRIES,
  MAX_SILENCE_MS,
  MINUTE_MS,
  TEN_MINUTES_MS,
} from "../limits.ts";
import type { FailureCounts, RetryBudget } from "./failure-counts.ts";
import type { PageSizeLimits } from "./page-size-limits.ts";

export interface AttemptContext {
  readonly clock: Clock;
  readonly onEvent: ClientEventListener;
  readonly baseUrl: URL;
  readonly tokens: AudienceTokens;
  readonly transport: Transport;
  readonly outage: Outage;
  readonly bulkhead: Bulkhead;
  readonly parking: Parking;
  readonly pageSizes: PageSizeLimits;
  readonly budget: RetryBudget;
  readonly failures: FailureCounts;
  readonly redactor: SecretRedactor;
  /** What others ask at present, by path. */
  readonly asked: Map<string, Promise<number | undefined>>;
}

/** What follows a failed attempt: at once, without counting it; after `afterMs` at least; or nothing. */
type Next = "now" | "never" | { readonly afterMs: number };
const LATER = { afterMs: 0 };

interface FailedAttempt {
  readonly error: unknown;
  readonly next: Next;
  /** No token: every request waits for one, so back off as in an outage. */
  readonly hasNoToken?: boolean;
}

/** How long a request waits for an outage to end, over all attempts: longer than a pause that the service asks for. */
const MAX_REQUEST_WAIT_MS = MAX_SILENCE_MS + TEN_MINUTES_MS / 2;

interface SentRequest extends AttemptContext {
  readonly request: ServiceRequest;
  /** Without ids. */
  readonly path: string;
  readonly token: AccessToken;
  /** Monotonic. */
  readonly startedAt: number;
}

interface SentAttempt extends SentRequest {
  readonly memory: RequestMemory;
}

type Answer = TransportResponse | { readonly failure: unknown; readonly sign?: FailureSign };

/** What one request remembers from attempt to attempt. */
class RequestMemory {
  readonly #counts = new Map<string, number>();
  /** What the service must say again before it counts. */
  readonly tallies = new Map<"no list" | "denied", Tally>();

  /** Whether a failure of this kind may be followed by another attempt. */
  mayRetry(kind: keyof typeof MAX_RETRIES): boolean {
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    return count <= MAX_RETRIES[kind];
  }
}

/**
 * Sends one request until it succeeds, its failure is final, or its attempts are used up: the only loop that repeats a request
 * (docs/decisions/retries.md). In an outage it waits, which is no attempt.
 */
export async function sendUntilAnswered<T>(
  context: AttemptContext,
  request: ServiceRequest,
  read: ReadBody<T>,
) {
  const { clock, outage, budget, failures } = context;
  const { signal, maxAttempts = MAX_ATTEMPTS } = request;
  const isUrgent = request.priority === requestPriority.snapshot;
  const until = clock.monotonic() + MAX_REQUEST_WAIT_MS;
  const memory = new RequestMemory();
  const sized = context.pageSizes.begin(request);
  for (let attempt = 1, counted = 1; ; attempt++) {
    signal?.throwIfAborted();
    if (isUrgent) outage.recordUrgency();
    const result = await attemptOnce(context, sized.request, read, memory, { attempt, until });
    if (!("error" in result)) {
      sized.recordSuccess();
      budget.recordSuccess();
      failures.recordSuccess();
      return result.page;
    }
    // While everything fails, the size of a page is not the cause.
    const isSizeCause = !signal?.aborted && !outage.isDown && sized.recordFailure(result.error);
    const next = isSizeCause ? "now" : result.next;
    const error = sized.explain(result.error);
    failures.record(error);
    if (next === "now") continue;
    const waitsFor = result.hasNoToken ? TOKEN_ENDPOINT : describePath(request);
    // What has no history is probed until the service is back, however often that fails.
    const isCounted = !(isUrgent && outage.isOpen(waitsFor));
    const isLast = (isCounted && counted >= maxAttempts) || clock.monotonic() >= until;
    if (next === "never" || isLast || !(error instanceof Failure) || error.family !== "retry") throw error;
    // The only delay between two attempts. The bulkhead adds what the rate of all requests demands.
    const delayMs = budget.spend(counted - 1, { isSlow: result.hasNoToken, isUrgent });
    if (isCounted) counted++;
    await outage.waitWhileClosed(waitsFor, Math.max(next.afterMs, delayMs), signal);
  }
}

/** Gets a token, waits for a slot, sends the request, and reads the response. */
async function attemptOnce<T>(
  context: AttemptContext,
  request: ServiceRequest,
  read: ReadBody<T>,
  memory: RequestMemory,
  { attempt, until }: { readonly attempt: number; readonly until: number },
): Promise<{ readonly page: T } | FailedAttempt> {
  const { clock, outage, bulkhead, baseUrl } = context;
  const { signal, priority = requestPriority.history } = request;
  let token: AccessToken;
  try {
    token = await acquireToken(context, request);
  } catch (error) {
    const mayRetry = memory.mayRetry("no token") || priority === requestPriority.snapshot;
    return { error, next: mayRetry ? LATER : "never", hasNoToken: true };
  }
  const path = describePath(request);
  // Waits for the endpoint before it queues for a slot, so that the queue orders requests by priority alone.
  const outcomeOfWait = await outage.enter(path, until, signal, () =>
    bulkhead.run(
      priority,
      signal,
      async () => {
        const sent = { ...context, request, path, token, memory, startedAt: clock.monotonic() };
        return { sent, answer: await sendInTime(sent) };
      },
      () => outage.tryStart(path),
    ),
  );
  if (outcomeOfWait === "dead") return { error: deadEndpointFailure(path), next: "never" };
  if (outcomeOfWait === "timeout") {
    const { last } = context.failures;
    const error = unreachableFailure("service.baseUrl", baseUrl, MAX_REQUEST_WAIT_MS, last);
    return { error, next: "never" };
  }
  const { sent, answer } = outcomeOfWait;
  let outcome = "unexpected";
  try {
    const result =
      "status" in answer ? await judgeResponse(sent, read, answer) : judgeNetworkFailure(sent, answer);
    outcome = "page" in result ? "ok" : signal?.aborted ? "aborted" : failureCode(result.error);
    return result;
  } finally {
    reportRequest(sent, answer, outcome, attempt);
  }
}

function reportRequest(
  { clock, onEvent, request: { endpoint }, startedAt }: SentRequest,
  answer: Answer,
  outcome: string,
  attempt: number,
): void {
  const ms = clock.monotonic() - startedAt;
  onEvent(requestEvent({ endpoint, outcome, ms, attempt }, "status" in answer ? answer : undefined));
}

/**
 * Returns a token. Throws while the request is parked. A scope that the token does not list may be granted all the same:
 * only a 403 shows that it is missing.
 */
async function acquireToken({ tokens, parking }: AttemptContext, request: ServiceRequest) {
  const parkedBy = parking.claimRetry(request);
  const token = await tokens.get(request.signal);
  if (parkedBy === undefined) return token;
  const refreshed = tokens.refresh(request.signal);
  // Only a new token has newly granted scopes. If the refresh fails after a 403, throw instead of parking the request for another
  // hour: nothing is known about its scopes. After a 401, try with the old token.
  return parkedBy === "401" ? refreshed.catch(() => token) : refreshed;
}

/** If nothing answers, nobody waits longer than a probe may take. But if the service is only slow, its answer ends the outage. */
async function sendInTime(sent: SentRequest): Promise<Answer> {
  const { clock, outage, baseUrl, request, path, startedAt } = sent;
  const isPoll = (request.priority ?? requestPriority.history) >= requestPriority.head;
  const answer: Promise<Answer> = send(sent).catch((failure: unknown) => ({ failure }));
  if (await finishesWithin(clock, MAX_PROBE_MS, answer)) return answer;
  if (!outage.isHanging(path, startedAt, isPoll)) return answer;
  void answer.then((late) => {
    if ("status" in late && toLoadSign(late.status) === "success")
      outage.recordAnswer(path, clock.monotonic() - startedAt);
  });
  return { failure: timeoutFailure(MAX_PROBE_MS, { address: addressOf(baseUrl) }), sign: "failed" };
}

async function send(sent: SentRequest): Promise<TransportResponse> {
  const { transport, bulkhead, outage, baseUrl, request, path, token, startedAt } = sent;
  const response = await transport.send({
    method: "GET",
    origin: baseUrl.origin,
    path: buildRequestPath(baseUrl.pathname.replace(/\/+$/, ""), request),
    headers: { authorization: `Bearer ${token.text}`, accept: "application/json" },
    // A large body on a slow link may take longer, while it comes fast enough.
    timeoutMs: MINUTE_MS,
    maxTimeoutMs: TEN_MINUTES_MS,
    signal: request.signal,
  });
  const { status, retryAfterMs } = response;
  const sign = toLoadSign(status);
  // One endpoint that asks for silence gets it alone, from the outage; a second one within that time speaks for all.
  const isOneEndpoint = sign === "rejected" && retryAfterMs > 0 && !outage.isAnyPaused(path);
  if (!isOneEndpoint) bulkhead.recordSign(sign, startedAt, retryAfterMs);
  return response;
}

function judgeNetworkFailure(
  { outage, bulkhead, request, path, memory, startedAt }: SentAttempt,
  { failure: error, sign: knownSign }: Exclude<Answer, TransportResponse>,
): FailedAttempt {
  if (!(error instanceof Failure) || request.signal?.aborted) return { error, next: "never" };
  // The server may close an idle keep-alive connection just as the request is sent: no sign of an outage.
  if (error.code === "connection_lost" && memory.mayRetry("connection_lost") && outage.claimResend())
    return { error, next: "now" };
  const sign = knownSign ?? networkSign(error.code);
  outage.recordFailure(path, sign);
  bulkhead.recordSign(sign === "timeout" ? "overloaded" : "failure", startedAt);
  return { error, next: LATER };
}

async function judgeResponse<T>(
  sent: SentAttempt,
  read: ReadBody<T>,
  response: TransportResponse,
): Promise<{ readonly page: T } | FailedAttempt> {
  const { outage, parking, tokens, clock, request, path, token, memory, startedAt } = sent;
  const { status, body, retryAfterMs } = response;
  const recordAnswer = () => outage.recordAnswer(path, clock.monotonic() - startedAt);
  if (status === 200 || status === 204) {
    tokens.reportAccepted(token);
    parking.recordSuccess(request);
    try {
      // A new buffer each time, because the reader may transfer it to another thread.
      const bytes = status === 204 ? new TextEncoder().encode('{"content":null}') : body.bytes;
      const page = await read({ ...body, bytes });
      recordAnswer();
      return { page };
    } catch (error) {
      const code = failureCode(error);
      // Not JSON: something else answers in place of the service. In all other cases the host works.
      if (code === "malformed_body") outage.recordFailure(path, "failed");
      else recordAnswer();
      if (code === "no_list") return { error, next: repeat(clock, memory, "no list") };
      return { error, next: code === "malformed_body" || code === "stale_response" ? LATER : "never" };
    }
  }
  if (status === 401) {
    recordAnswer();
    return judgeUnauthorized(sent);
  }
  if (status === 403) {
    recordAnswer();
    const scopes = guessMissingScope(request, token.scopes);
    const isLacking = scopes.some((scope) => token.scopes?.has(scope) === false);
    const isKnown = parking.signOf(request)?.startsWith("403") === true;
    const next = isLacking || isKnown ? "never" : repeat(clock, memory, "denied");
    if (next === "never") return { error: parking.parkForbidden(request, scopes, isLacking), next };
    return { error: forbiddenFailure(request, scopes, { isFinal: false }), next };
  }
  const error = failureFromStatus(request.endpoint, response, sent.redactor);
  if (error.family === "operator" || error.code === "conflict") {
    recordAnswer();
    if (error.code === "conflict") return { error, next: memory.mayRetry("conflict") ? LATER : "never" };
    if (error.code !== "not_found" || request.mayBeMissing) return { error, next: "never" };
    return { error: await judgeNotFound(sent, error), next: "never" };
  }
  outage.recordFailure(path, status === 429 ? "go_away" : "failed", retryAfterMs);
  return { error, next: LATER };
}

/** Until the service has said it again, often enough. */
function repeat(clock: Clock, { tallies }: RequestMemory, what: "no list" | "denied"): Next {
  const tally = countAnswer(tallies.get(what), clock.monotonic() * MICROS_PER_MS);
  tallies.set(what, tally);
  const required = requiredFor(what);
  return isEnough(tally, required) ? "never" : { afterMs: pauseOf(required) / MICROS_PER_MS };
}

/** A 401: one new token; then others are asked, to distinguish a bad token from an endpoint that rejects good ones. */
async function judgeUnauthorized(sent: SentAttempt): Promise<FailedAttempt> {
  const { tokens, parking, outage, request, token, memory, startedAt } = sent;
  const isParked = parking.signOf(request) === "401";
  if (!isParked && tokens.mayHaveExpired(token) && memory.mayRetry("401")) {
    tokens.reportRejected(token);
    return { error: authFailed(), next: "now" };
  }
  // An earlier success of this token proves nothing: it may have been revoked since.
  const isKnownGood = isParked && tokens.state !== "auth_failed";
  const others = parking
    .elsewhere(request.endpoint, (path) => outage.isOpen(path))
    .filter((other) => parking.signOf(other) !== "401");
  const isAccepted = isKnownGood || (await raceAbort(isTokenAccepted(sent, others), request.signal));
  if (isAccepted === undefined) {
    const why = "the service rejected a token, and the cross-check at other endpoints failed";
    return { error: new Failure(why, { code: "auth_undecided" }), next: LATER };
  }
  if (!isAccepted) tokens.reportRejected(token);
  else if (!isKnownGood) tokens.reportAccepted(token);
  return { error: isAccepted ? parking.parkUnauthorized(request, startedAt) : authFailed(), next: "never" };
}

/** Asks others about a token until one decides; undefined: none does. */
async function isTokenAccepted(sent: SentAttempt, others: readonly ServiceRequest[]) {
  let isAccepted: boolean | undefined;
  // Several endpoints may break together.
  for (const other of others.slice(0, 3)) {
    const status = await ask(sent, other, sent.token);
    if (status !== 401) return status === undefined ? undefined : true;
    isAccepted = false;
  }
  return isAccepted;
}

/** The same path, asked for a record that it had, shows whether only this record is missing. */
async function judgeNotFound(sent: SentAttempt, failure: Failure): Promise<Failure> {
  const { parking, request, token } = sent;
  const doubt = parking.doubtNotFound(request);
  if (!doubt) return failure;
  const { good } = doubt;
  if (!good || (await ask(sent, good, token)) !== 200) return withdrawnFailure(request.endpoint, failure);
  parking.recordSuccess(good);
  return failure;
}

/** The service itself answers so. */
const answeredStatuses: ReadonlySet<number> = new Set([200, 400, 401, 403, 404, 409]);

/**
 * Asks an endpoint at once, whatever is down: its answer ends an outage. Returns its status if the service itself has answered.
 */
export function ask(context: AttemptContext, request: ServiceRequest, token: AccessToken) {
  const { asked } = context;
  const path = describePath(request);
  // No signal: others may wait for the same answer.
  const answer =
    asked.get(path) ??
    askOnce(context, { ...request, signal: undefined }, token).finally(() => asked.delete(path));
  asked.set(path, answer);
  return answer;
}

async function askOnce(context: AttemptContext, request: ServiceRequest, token: AccessToken) {
  const { clock, outage, bulkhead } = context;
  const path = describePath(request);
  const sent = { ...context, request, path, token, startedAt: clock.monotonic() };
  const run = () => sendInTime(sent);
  const answer = (await bulkhead.run(requestPriority.crossCheck, undefined, run)) ?? { failure: undefined };
  const response = "status" in answer ? answer : undefined;
  const status = response?.status ?? 0;
  const hasAnswered = response !== undefined && answeredStatuses.has(status) && isJson(response.body);
  if (hasAnswered) outage.recordAnswer(path, clock.monotonic() - sent.startedAt);
  // One that failed late, after the outage, says nothing.
  else if (outage.isDown) outage.recordFailure(path, "failed", response?.retryAfterMs);
  const error =
    "status" in answer ? failureFromStatus(request.endpoint, answer, context.redactor) : answer.failure;
  if (!hasAnswered) context.failures.record(error);
  reportRequest(sent, answer, hasAnswered ? "ok" : failureCode(error), 1);
  return hasAnswered ? status : undefined;
}

/** A page in another format comes from a portal or proxy on the way, which may answer for every endpoint. */
function isJson(body: ResponseBody): boolean {
  try {
    JSON.parse(new TextDecoder().decode(decodeBody(body)));
    return true;
  } catch {
    return false;
  }
}
