import { Failure } from "../../model/failure.ts";
import { decodeBody, type ResponseBody } from "../../model/response-body.ts";
import type { Clock } from "../../runtime/clock.ts";
import { raceAbort } from "../../runtime/timeouts.ts";
import type { AccessToken } from "../auth/access-tokens.ts";
import { blame } from "../auth/witness.ts";
import { requestEvent } from "../http/client-events.ts";
import { MAX_PROBE_MS, type Permit } from "../http/endpoint-breakers.ts";
import { addressOf, timeoutFailure } from "../http/network-failures.ts";
import type { FailureSign } from "../http/outage-rules.ts";
import type { LoadSign } from "../http/pace.ts";
import { buildRequestPath, describePath, requestPriority, type ServiceRequest } from "../http/request.ts";
import { deadEndpointFailure, isServerFailure, unreachableFailure } from "../http/status-errors.ts";
import type { TransportResponse } from "../http/transport.ts";
import {
  type Attempt,
  type AttemptContext,
  decideOnErrorStatus,
  decideOnNetworkFailure,
  decideOnTokenFailure,
  decideOnUnauthorized,
  decideOnUnreadableBody,
  MAX_REQUEST_WAIT_MS,
  noRetry,
  type RetryState,
  retryLater,
} from "./retry-policy.ts";

const REQUEST_TIMEOUT_MS = 60_000;
/** For a large body on a slow link. The largest body at the lowest accepted rate takes longer and is aborted. */
const MAX_REQUEST_TIMEOUT_MS = 600_000;

/** Gets a token, waits for a slot, sends the request, and reads the response. On failure it sets `state.decision`. */
export async function attemptRequest<T>(
  context: AttemptContext,
  request: ServiceRequest,
  read: (body: ResponseBody) => Promise<T>,
  state: RetryState,
  attemptNumber: number,
): Promise<T> {
  const token = await acquireToken(context, request).catch((error: unknown) => {
    decideOnTokenFailure(state, request.priority === requestPriority.snapshot);
    throw error;
  });
  state.decision = retryLater();
  const answered = await roundTrip(context, request, state, token);
  const { attempt, response } = answered;
  let outcome = "ok";
  try {
    if (answered.response === undefined)
      throw decideOnNetworkFailure(context, attempt, answered.failure, answered.sign);
    if (answered.response.status === 401) {
      const isAcceptedElsewhere = () => isTokenAcceptedElsewhere(context, attempt);
      throw await decideOnUnauthorized(context, attempt, isAcceptedElsewhere);
    }
    const { status } = answered.response;
    if (status !== 200 && status !== 204) {
      const failure = decideOnErrorStatus(context, attempt, answered.response);
      if (failure.code !== "not_found" || request.mayBeMissing) throw failure;
      throw await context.witness.judgeNotFound(request, failure, token, sendWitness(context));
    }
    context.tokens.reportAccepted(context.audience, token);
    context.endpointAccess.recordSuccess(request);
    const { body } = answered.response;
    const list = status === 204 ? { ...body, bytes: createNullList() } : body;
    return await readPage(context, attempt, read, list);
  } catch (error) {
    outcome = error instanceof Failure ? error.code : request.signal?.aborted ? "aborted" : "unexpected";
    throw error;
  } finally {
    attempt.permit.release();
    const ms = context.clock.monotonic() - attempt.startedAt;
    const { endpoint } = request;
    context.onEvent(requestEvent({ endpoint, outcome, ms, attempt: attemptNumber }, response));
    if (outcome !== "ok") await judgeOutage(context, attempt);
  }
}

/** What 204 stands for. A new buffer each time, because the reader may transfer it to another thread. */
function createNullList(): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode('{"content":null}');
}

/** Asks another endpoint about the token that this one rejects. */
async function isTokenAcceptedElsewhere(context: AttemptContext, attempt: Attempt): Promise<boolean> {
  const { witness, breakers, endpointAccess } = context;
  const { request, token } = attempt;
  const others = witness
    .elsewhere(request.endpoint, (path) => breakers.isOpen(path))
    .filter((other) => !endpointAccess.isUnauthorized(other));
  const send = sendWitness(context);
  const verdict = await raceAbort(witness.askElsewhere("unauthorized", others, token, send), request.signal);
  if (verdict !== "undecided") return verdict === "endpoint";
  throw new Failure("the service rejected a token, and the cross-check at other endpoints failed", {
    code: "auth_undecided",
  });
}

/** After a failed attempt: asks another endpoint whether the service answers at all, if nothing else shows it. */
async function judgeOutage(context: AttemptContext, { request, token }: Attempt): Promise<void> {
  const { witness, breakers } = context;
  const path = describePath(request);
  const [other] = witness.elsewhere(path, (each) => breakers.isFailing(each));
  if (!other || !breakers.needsWitness(path) || request.signal?.aborted) return;
  // What is not sent until the witness answers cannot fail. If something else answers first, nothing is down.
  breakers.recordSilence(true);
  const verdict = await witness.askElsewhere("failure", [other], token, sendWitness(context));
  if (verdict === "endpoint") breakers.recordAnswer(describePath(other));
  else if (breakers.isDown) breakers.recordSilence();
}

/** Sends a request at once, whatever the breakers say. Its status counts only if the service itself has answered. */
function sendWitness(context: AttemptContext) {
  return async (request: ServiceRequest, token: AccessToken): Promise<number | undefined> => {
    const startedAt = context.clock.monotonic();
    const send = async () => {
      const answer = sendRequest(context, request, token, startedAt).catch(() => undefined);
      return (await isAnsweredInTime(context, request, startedAt, answer)) ? answer : undefined;
    };
    const response = await context.bulkhead.run(requestPriority.witness, undefined, send);
    const status = response && isJson(response.body) ? response.status : undefined;
    const outcome = blame("failure", status) === "endpoint" ? "ok" : "no_witness";
    const ms = context.clock.monotonic() - startedAt;
    context.onEvent(requestEvent({ endpoint: request.endpoint, outcome, ms, attempt: 1 }, response));
    return status;
  };
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

/**
 * Returns a token. Throws while the request is parked. A scope that the token does not list may be granted all the same:
 * only a 403 shows that it is missing.
 */
async function acquireToken(context: AttemptContext, request: ServiceRequest): Promise<AccessToken> {
  const { tokens, audience, endpointAccess } = context;
  const parkedBy = endpointAccess.claimRetry(request);
  let token = await tokens.get(audience, request.signal);
  // Only a new token has newly granted scopes, even if the old one lists none. If the refresh fails, throw instead of
  // parking the request for another hour: nothing is known about its scopes.
  if (parkedBy === 403) token = await tokens.refresh(audience, request.signal);
  // A new token may solve the problem; if the refresh fails, probe with the old one.
  else if (parkedBy === 401) token = await tokens.refresh(audience, request.signal).catch(() => token);
  return token;
}

type RoundTrip = { readonly attempt: Attempt } & (
  | { readonly response: TransportResponse }
  | { readonly response: undefined; readonly failure: unknown; readonly sign?: FailureSign }
);

/** Waits for the breaker before it queues for a slot, so that the queue orders requests by priority alone. */
async function roundTrip(
  context: AttemptContext,
  request: ServiceRequest,
  state: RetryState,
  token: AccessToken,
): Promise<RoundTrip> {
  const { breakers, bulkhead, clock, baseUrl } = context;
  const path = describePath(request);
  let permit: Permit | undefined;
  /** Called when it is the request's turn: the breaker may have opened while the request waited for a slot. */
  const admit = () => {
    permit = breakers.tryAcquire(path);
    return permit !== undefined;
  };
  const send = async (attempt: Attempt): Promise<RoundTrip> => {
    try {
      return { attempt, response: await sendRequest(context, request, token, attempt.startedAt) };
    } catch (failure) {
      return { attempt, response: undefined, failure };
    }
  };
  const inSlot = async (): Promise<RoundTrip> => {
    if (!permit) throw new Error("a request started without a permit");
    const attempt = { request, state, token, permit, startedAt: clock.monotonic() };
    const answer = send(attempt);
    const response = answer.then((each) => each.response);
    if (await isAnsweredInTime(context, request, attempt.startedAt, response)) return await answer;
    const failure = timeoutFailure(MAX_PROBE_MS, { address: addressOf(baseUrl) });
    return { attempt, response: undefined, failure, sign: "failed" };
  };
  const { signal, priority = requestPriority.history } = request;
  try {
    const answered = await breakers.enterWhenAvailable(path, state.waitUntil, signal, () =>
      bulkhead.run(priority, signal, inSlot, admit),
    );
    if (typeof answered === "object") return answered;
    state.decision = noRetry;
    throw answered === "dead"
      ? deadEndpointFailure(path)
      : unreachableFailure({
          setting: "service.baseUrl",
          address: addressOf(baseUrl),
          waitedMs: MAX_REQUEST_WAIT_MS,
          lastFailure: context.lastFailure(),
        });
  } catch (error) {
    // The queue rejects an aborted caller at once; a probe without a report would keep the breaker open forever.
    permit?.release();
    throw error;
  }
}

/** False: nobody waits any longer for it. But if the service is only slow, its answer ends the outage. */
async function isAnsweredInTime(
  { clock, breakers }: AttemptContext,
  request: ServiceRequest,
  startedAt: number,
  answer: Promise<TransportResponse | undefined>,
): Promise<boolean> {
  const path = describePath(request);
  const isPoll = (request.priority ?? requestPriority.history) >= requestPriority.head;
  if (await settlesWithin(clock, MAX_PROBE_MS, answer)) return true;
  if (!breakers.isHanging(path, startedAt, isPoll)) return true;
  void answer.then((late) => {
    if (late && toLoadSign(late.status) === "success") breakers.recordAnswer(path, true);
  });
  return false;
}

/** Whether `work` ends within `ms`. It never rejects. */
async function settlesWithin(clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  const settled = new AbortController();
  const done = work.then(() => settled.abort());
  await Promise.race([done, clock.sleep(ms, settled.signal).catch(() => {})]);
  return settled.signal.aborted;
}

async function sendRequest(
  { transport, bulkhead, breakers, baseUrl }: AttemptContext,
  request: ServiceRequest,
  token: AccessToken,
  startedAt: number,
): Promise<TransportResponse> {
  const response = await transport.send({
    method: "GET",
    origin: baseUrl.origin,
    path: buildRequestPath(baseUrl.pathname.replace(/\/+$/, ""), request),
    headers: { authorization: `Bearer ${token.text}`, accept: "application/json" },
    timeoutMs: REQUEST_TIMEOUT_MS,
    maxTimeoutMs: MAX_REQUEST_TIMEOUT_MS,
    signal: request.signal,
  });
  // One endpoint that asks for silence gets it alone; a second one within that time speaks for all.
  const { status, retryAfterMs } = response;
  const isOneEndpoint = !breakers.isAnyPaused(describePath(request));
  bulkhead.recordSign(toLoadSign(status), startedAt, { retryAfterMs, isOneEndpoint });
  return response;
}

function toLoadSign(status: number): LoadSign {
  if (status === 429) return "rejected";
  if (status === 503) return "overloaded";
  return isServerFailure(status) ? "failure" : "success";
}

async function readPage<T>(
  context: AttemptContext,
  attempt: Attempt,
  read: (body: ResponseBody) => Promise<T>,
  body: ResponseBody,
): Promise<T> {
  try {
    const page = await read(body);
    attempt.permit.recordSuccess();
    return page;
  } catch (error) {
    decideOnUnreadableBody(context, attempt, error);
    throw error;
  }
}
