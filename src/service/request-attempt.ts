import type { Body } from "../model/body.ts";
import { Failure } from "../model/failure.ts";
import type { AccessToken } from "./access-tokens.ts";
import {
  type Attempt,
  type AttemptParts,
  final,
  judgeBroken,
  judgeStatus,
  later,
  type Tries,
} from "./attempt-verdict.ts";
import { type Ask, pathOf, priority } from "./endpoints.ts";
import { missingScopes } from "./scope-gate.ts";
import type { Answer } from "./transport.ts";

const DEADLINE_MS = 60_000;

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
    if (exchanged.answer.status !== 200) {
      const failure = judgeStatus(parts, attempt, exchanged.answer);
      const isAlarm = failure.code === "upstream_version";
      throw isAlarm && (await isWitnessed(parts, attempt)) ? failure.cause : failure;
    }
    parts.tokens.accepted(parts.audience, token);
    parts.scopes.granted(ask);
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
async function isWitnessed(parts: AttemptParts, { ask, tries, token }: Attempt): Promise<boolean> {
  const witness = parts.missingPaths.witness(ask);
  if (!witness) return false;
  const question = { ...witness, priority: ask.priority ?? priority.history, signal: ask.signal };
  const { answer, attempt } = await exchange(parts, question, { ...tries }, token);
  const isThere = answer?.status === 200;
  if (isThere) {
    attempt.pass.succeeded();
    parts.missingPaths.found(witness);
  } else attempt.pass.dropped();
  parts.observe({
    kind: "request",
    endpoint: witness.endpoint,
    status: answer?.status,
    outcome: isThere ? "ok" : "no_witness",
    ms: answer?.ms ?? parts.clock.monotonic() - attempt.startedAt,
    bytes: answer?.body.bytes.byteLength ?? 0,
    attempt: 1,
    stale: false,
  });
  return isThere;
}

/** A token that, as far as we know, carries what the request needs. */
async function admittedToken(parts: AttemptParts, ask: Ask): Promise<AccessToken> {
  const { tokens, audience, scopes } = parts;
  const askingAgain = scopes.due(ask);
  let token = await tokens.get(audience, ask.signal);
  let missing = missingScopes(ask, token.scopes);
  if (missing.length > 0 && askingAgain) {
    token = await tokens.renew(audience, ask.signal);
    missing = missingScopes(ask, token.scopes);
  }
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
