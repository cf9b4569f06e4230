import { Failure } from "../../model/failure.ts";
import type { Body } from "../../model/response-body.ts";
import { abortable } from "../../runtime/timeouts.ts";
import type { AccessToken } from "../auth/access-tokens.ts";
import { missingScopes } from "../auth/endpoint-access.ts";
import { type Ask, pathOf, priority } from "../http/request.ts";
import type { Answer } from "../http/transport.ts";
import {
  type Attempt,
  type AttemptParts,
  final,
  judgeBroken,
  judgeStatus,
  judgeUnauthorised,
  later,
  type Tries,
} from "./retry-policy.ts";

const DEADLINE_MS = 60_000;
/** A body of the largest size that comes at the lowest speed is given up by then. */
const LONGEST_MS = 600_000;

/** One attempt: a token, a turn, an exchange, and the reading of what came. On failure `tries.verdict` says what next. */
export async function attemptRequest<T>(
  parts: AttemptParts,
  ask: Ask,
  read: (body: Body) => Promise<T>,
  tries: Tries,
  number: number,
): Promise<T> {
  // Whatever fails before the exchange has its own pace: it is tried again only if it heals by waiting.
  tries.verdict = later();
  const token = await admittedToken(parts, ask);
  const exchanged = await exchange(parts, ask, tries, token);
  const { attempt, answer } = exchanged;
  let outcome = "ok";
  try {
    if (exchanged.answer === undefined) throw judgeBroken(parts, attempt, exchanged.failure);
    if (exchanged.answer.status === 401) {
      const isGoodElsewhere = () => isTokenGoodElsewhere(parts, attempt);
      throw await judgeUnauthorised(parts, attempt, isGoodElsewhere);
    }
    if (exchanged.answer.status !== 200) {
      const failure = judgeStatus(parts, attempt, exchanged.answer);
      const isAlarm = failure.code === "upstream_version";
      throw isAlarm && (await isWitnessed(parts, attempt)) ? failure.cause : failure;
    }
    parts.tokens.accepted(parts.audience, token);
    parts.scopes.granted(ask);
    parts.refusedEndpoints.answered(ask);
    parts.missingPaths.found(ask);
    parts.slots.clean();
    return await readPage(attempt, read, exchanged.answer.body);
  } catch (error) {
    outcome = error instanceof Failure ? error.code : ask.signal?.aborted ? "aborted" : "unexpected";
    throw error;
  } finally {
    attempt.pass.dropped();
    parts.observe({
      kind: "request",
      endpoint: ask.endpoint,
      status: answer?.status,
      outcome,
      ms: answer?.ms ?? parts.clock.monotonic() - attempt.startedAt,
      bytes: answer?.body.bytes.byteLength ?? 0,
      attempt: number,
      stale: (answer?.body.ageMs ?? 0) > 0,
    });
  }
}

/**
 * Whether the path still answers what it answered before: then the many records that it does not find are really not
 * there, however many they are in a row.
 */
async function isWitnessed(parts: AttemptParts, attempt: Attempt): Promise<boolean> {
  const witness = parts.missingPaths.witness(attempt.ask);
  if (!witness) return false;
  const status = await askWitness(parts, attempt, { ...witness, signal: attempt.ask.signal }, found);
  if (status === 200) parts.missingPaths.found(witness);
  return status === 200;
}

const found: ReadonlySet<number> = new Set([200]);
/** Whoever does not find something, or does not allow it, has looked at the token first and found it good. */
const recognised: ReadonlySet<number> = new Set([200, 400, 403, 404, 409]);

/** Whether some other endpoint takes the token that this one refuses. */
function isTokenGoodElsewhere(parts: AttemptParts, attempt: Attempt): Promise<boolean> {
  const { ask, token } = attempt;
  const question = async (witness: Ask) => {
    // Without a signal: others may be waiting for the same answer.
    const status = await askWitness(parts, attempt, { ...witness, signal: undefined }, recognised);
    if (status === 401 || (status !== undefined && recognised.has(status))) return status !== 401;
    throw new Failure("the service refused a token, and does not answer whether it is good elsewhere", {
      family: "retry",
      code: "auth_undecided",
    });
  };
  return abortable(parts.refusedEndpoints.isGoodElsewhere(token, question, ask), ask.signal);
}

/** Asks something else with the same token; the status of the answer, if one came. */
async function askWitness(
  parts: AttemptParts,
  { ask, tries, token }: Attempt,
  witness: Ask,
  good: ReadonlySet<number>,
): Promise<number | undefined> {
  const question = { ...witness, priority: ask.priority ?? priority.history };
  const { answer, attempt } = await exchange(parts, question, { ...tries }, token);
  const isGood = answer !== undefined && good.has(answer.status);
  if (isGood) attempt.pass.succeeded();
  else attempt.pass.dropped();
  parts.observe({
    kind: "request",
    endpoint: witness.endpoint,
    status: answer?.status,
    outcome: isGood ? "ok" : "no_witness",
    ms: answer?.ms ?? parts.clock.monotonic() - attempt.startedAt,
    bytes: answer?.body.bytes.byteLength ?? 0,
    attempt: 1,
    stale: false,
  });
  return answer?.status;
}

/** A token that, as far as we know, carries what the request needs. */
async function admittedToken(parts: AttemptParts, ask: Ask): Promise<AccessToken> {
  const { tokens, audience, scopes, refusedEndpoints } = parts;
  const askingAgain = scopes.due(ask);
  const probing = refusedEndpoints.due(ask);
  let token = await tokens.get(audience, ask.signal);
  // What has been granted since comes with a new token alone, also where the old one does not say that it lacks anything;
  // and without one nothing is known that would park the request for another hour.
  if (askingAgain) token = await tokens.renew(audience, ask.signal);
  // A new token may be what is missing; where none is to be had, the old one is as good as before.
  else if (probing) token = await tokens.renew(audience, ask.signal).catch(() => token);
  const missing = missingScopes(ask, token.scopes);
  if (missing.length > 0) throw scopes.park(ask, missing);
  return token;
}

type Exchange = { readonly attempt: Attempt } & (
  | { readonly answer: Answer }
  | { readonly answer: undefined; readonly failure: unknown }
);

/** Waits outside the slots while the host is closed, so that who waits for a turn is sorted by priority alone. */
async function exchange(parts: AttemptParts, ask: Ask, tries: Tries, token: AccessToken): Promise<Exchange> {
  const { gate, slots, transport, clock, baseUrl } = parts;
  let attempt: Attempt | undefined;
  const inSlot = async (): Promise<Exchange | undefined> => {
    const pass = gate.tryEnter();
    if (!pass) return undefined;
    const begun = { ask, tries, token, pass, startedAt: clock.monotonic() };
    attempt = begun;
    try {
      const answer = await transport.send({
        method: "GET",
        origin: baseUrl.origin,
        path: pathOf(baseUrl.pathname.replace(/\/+$/, ""), ask),
        headers: { authorization: `Bearer ${token.text}`, accept: "application/json" },
        deadlineMs: DEADLINE_MS,
        longestMs: LONGEST_MS,
        signal: ask.signal,
      });
      return { attempt: begun, answer };
    } catch (failure) {
      return { attempt: begun, answer: undefined, failure };
    }
  };
  for (;;) {
    if (!(await gate.passable(tries.until, ask.signal))) {
      tries.verdict = final;
      throw unreachable();
    }
    try {
      const exchanged = await slots.run(ask.priority ?? priority.history, ask.signal, inSlot);
      if (exchanged) return exchanged;
    } catch (error) {
      // The queue lets go of a caller that aborts; a probe that nobody reports back would keep the gate shut for ever.
      attempt?.pass.dropped();
      throw error;
    }
  }
}

async function readPage<T>(
  { tries, pass }: Attempt,
  read: (body: Body) => Promise<T>,
  body: Body,
): Promise<T> {
  try {
    const page = await read(body);
    pass.succeeded();
    return page;
  } catch (error) {
    const malformed = error instanceof Failure && error.code === "malformed_body";
    tries.verdict = malformed ? later() : final;
    if (malformed) pass.failed(0);
    throw error;
  }
}

function unreachable(): Failure {
  return new Failure("the service has not answered for a long time", {
    family: "retry",
    code: "service_unreachable",
    remedy: "check the network and service.baseUrl; it is tried again by itself",
  });
}
