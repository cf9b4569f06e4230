import type { Body } from "../model/body.ts";
import { Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import type { AccessToken, AccessTokens } from "./access-tokens.ts";
import type { Concealment } from "./concealment.ts";
import { type Ask, pathOf, priority } from "./endpoints.ts";
import type { HostGate, Pass } from "./host-gate.ts";
import type { Observe } from "./observation.ts";
import type { RequestSlots } from "./request-slots.ts";
import { missingScopes, type ScopeGate } from "./scope-gate.ts";
import { type MissingPaths, statusFailure } from "./status-failure.ts";
import { authFailed } from "./token-grant.ts";
import type { Answer, Transport } from "./transport.ts";

export interface AttemptParts {
  readonly clock: Clock;
  readonly observe: Observe;
  readonly baseUrl: URL;
  /** The address as configured, character by character: it is the token's audience. */
  readonly audience: string;
  readonly tokens: AccessTokens;
  readonly transport: Transport;
  readonly gate: HostGate;
  readonly slots: RequestSlots;
  readonly scopes: ScopeGate;
  readonly missingPaths: MissingPaths;
  readonly concealment: Concealment;
}

/** What one request remembers from one attempt to the next. */
export interface Tries {
  /** Monotonic: from then on it no longer waits for a service that is down. */
  readonly until: number;
  unauthorised: boolean;
  staleConnection: boolean;
  conflicts: number;
  /** About the attempt that failed last. */
  verdict: Verdict;
}

export interface Verdict {
  readonly again: boolean;
  /** At once, and without counting. */
  readonly free: boolean;
  /** The service does not want to be asked before. */
  readonly floorMs: number;
}

export const final: Verdict = { again: false, free: false, floorMs: 0 };
const later = (floorMs = 0): Verdict => ({ again: true, free: false, floorMs });
const atOnce: Verdict = { again: true, free: true, floorMs: 0 };

const DEADLINE_MS = 60_000;
const CONFLICTS_BORNE = 3;

/** One attempt: a token, a turn, an exchange, and the reading of what came. On failure `tries.verdict` says what next. */
export async function attemptRequest<T>(
  parts: AttemptParts,
  ask: Ask,
  read: (body: Body) => Promise<T>,
  tries: Tries,
  attempt: number,
): Promise<T> {
  // Whatever fails before the exchange has its own pace: it is tried again only if it heals by waiting.
  tries.verdict = later();
  const token = await admittedToken(parts, ask);
  const exchanged = await exchange(parts, ask, tries, token);
  const { pass, startedAt, answer } = exchanged;
  let outcome = "ok";
  try {
    if (exchanged.answer === undefined) throw judgeBroken(parts, tries, pass, startedAt, exchanged.failure);
    if (exchanged.answer.status !== 200) {
      throw judgeStatus(parts, ask, tries, pass, startedAt, token, exchanged.answer);
    }
    parts.tokens.accepted(parts.audience, token);
    parts.scopes.granted(ask);
    parts.missingPaths.found();
    parts.slots.clean();
    return await readPage(tries, pass, read, exchanged.answer.body);
  } catch (error) {
    outcome = error instanceof Failure ? error.code : "aborted";
    throw error;
  } finally {
    pass.dropped();
    parts.observe({
      kind: "request",
      endpoint: ask.endpoint,
      status: answer?.status,
      outcome,
      ms: answer?.ms ?? parts.clock.monotonic() - startedAt,
      bytes: answer?.body.bytes.byteLength ?? 0,
      attempt,
      stale: (answer?.body.ageMs ?? 0) > 0,
    });
  }
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

type Exchange = { readonly pass: Pass; readonly startedAt: number } & (
  | { readonly answer: Answer }
  | { readonly answer: undefined; readonly failure: unknown }
);

/** Waits outside the slots while the host is closed, so that who waits for a turn is sorted by priority alone. */
async function exchange(parts: AttemptParts, ask: Ask, tries: Tries, token: AccessToken): Promise<Exchange> {
  const { gate, slots, transport, clock, baseUrl } = parts;
  let pass: Pass | undefined;
  const inSlot = async (): Promise<Exchange | undefined> => {
    const entered = gate.tryEnter();
    if (!entered) return undefined;
    pass = entered;
    const startedAt = clock.monotonic();
    try {
      const answer = await transport.send({
        method: "GET",
        origin: baseUrl.origin,
        path: pathOf(baseUrl.pathname.replace(/\/+$/, ""), ask),
        headers: { authorization: `Bearer ${token.text}`, accept: "application/json" },
        deadlineMs: DEADLINE_MS,
        signal: ask.signal,
      });
      return { pass: entered, startedAt, answer };
    } catch (failure) {
      return { pass: entered, startedAt, answer: undefined, failure };
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
      pass?.dropped();
      throw error;
    }
  }
}

function judgeBroken(
  { gate, slots }: AttemptParts,
  tries: Tries,
  pass: Pass,
  startedAt: number,
  failure: unknown,
): unknown {
  if (!(failure instanceof Failure)) {
    tries.verdict = final;
    return failure;
  }
  // A kept-alive connection that the server closed as we wrote says nothing about the server.
  if (failure.code === "connection_lost" && !tries.staleConnection && gate.healthy) {
    tries.staleConnection = true;
    tries.verdict = atOnce;
    return failure;
  }
  pass.failed(0);
  if (failure.code === "timeout") slots.congested(startedAt);
  tries.verdict = later();
  return failure;
}

function judgeStatus(
  parts: AttemptParts,
  ask: Ask,
  tries: Tries,
  pass: Pass,
  startedAt: number,
  token: AccessToken,
  answer: Answer,
): Failure {
  tries.verdict = final;
  if (answer.status === 401) {
    pass.succeeded();
    parts.tokens.refused(parts.audience, token);
    if (!tries.unauthorised) tries.verdict = atOnce;
    tries.unauthorised = true;
    return authFailed();
  }
  if (answer.status === 403) {
    pass.succeeded();
    return parts.scopes.park(ask);
  }
  const failure = statusFailure(ask.endpoint, answer, parts.concealment);
  if (failure.family === "operator") {
    pass.succeeded();
    return failure.code === "not_found" ? parts.missingPaths.missing(ask.endpoint, failure) : failure;
  }
  if (failure.code === "conflict") {
    pass.succeeded();
    tries.conflicts++;
    if (tries.conflicts <= CONFLICTS_BORNE) tries.verdict = later();
    return failure;
  }
  pass.failed(answer.retryAfterMs);
  if (answer.status === 429) parts.slots.congested(startedAt);
  tries.verdict = later(answer.retryAfterMs);
  return failure;
}

async function readPage<T>(
  tries: Tries,
  pass: Pass,
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

export function unreachable(): Failure {
  return new Failure("the service has not answered for a long time", {
    family: "retry",
    code: "service_unreachable",
    remedy: "check the network and service.baseUrl; it is tried again by itself",
  });
}
