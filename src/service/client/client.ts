import pRetry from "p-retry";
import { Failure } from "../../model/failure.ts";
import type { Body } from "../../model/response-body.ts";
import type { Random } from "../../runtime/backoff.ts";
import { backoffDelay } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { type AccessTokens, createAccessTokens } from "../auth/access-tokens.ts";
import { type Parked, RefusedEndpoints, ScopeGate } from "../auth/endpoint-access.ts";
import { createTokenEndpoint } from "../auth/token-endpoint.ts";
import { HostGate } from "../http/circuit-breaker.ts";
import { RequestSlots } from "../http/concurrency.ts";
import type { AuthState, Observe } from "../http/events.ts";
import type { Ask } from "../http/request.ts";
import { Concealment } from "../http/secret-redactor.ts";
import { ServerClock } from "../http/server-clock.ts";
import { MissingPaths } from "../http/status-errors.ts";
import { checkedAddress, createTransport } from "../http/transport.ts";
import { attemptRequest } from "./attempt.ts";
import { type AttemptParts, final, RetryBudget, type Tries } from "./retry-policy.ts";

export interface ServiceClientOptions {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly wsUrl: string;
  readonly clientId: string;
  /** Read again for every token, so that a rotated secret is picked up. */
  readonly readSecret: () => Promise<string>;
  /** Requests under way at once, at most. */
  readonly concurrency: number;
  /** 0: as many as the service answers cleanly. */
  readonly maxRequestsPerSecond: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly observe: Observe;
}

/** How the client stands with the service, for status, doctor and metrics. */
export interface ServiceHealth {
  readonly rest: AuthState;
  readonly breaker: "closed" | "open";
  /** On the boot clock; undefined before the first. */
  readonly lastSuccessAt: number | undefined;
  readonly lastFailure: Failure | undefined;
  readonly parked: readonly Parked[];
  /** How far the local wall clock is ahead of the service's. */
  readonly skewMs: number | undefined;
}

/** What a walk needs of the client. */
export interface Requests {
  /**
   * Asks, and has `read` read the answer; tries again what may heal. `read` throws `malformed_body` for what is no
   * page, which is then asked again; whatever else it throws is the caller's own.
   */
  request<T>(ask: Ask, read: (body: Body) => Promise<T>): Promise<T>;
  readonly observe: Observe;
}

export interface ServiceClient extends Requests {
  readonly tokens: AccessTokens;
  /** Milliseconds since 1970 by the service's clock; undefined before its first answer. */
  serverNow(): number | undefined;
  health(): ServiceHealth;
  close(): Promise<void>;
}

const ATTEMPTS = 6;
/** Longer than the longest pause that the service may ask for. */
const PATIENCE_MS = 20 * 60_000;
const BACKOFF = { baseMs: 1_000, capMs: 60_000 };

export function createServiceClient(options: ServiceClientOptions): ServiceClient {
  const { clock, random, log, observe } = options;
  const baseUrl = checkedAddress("service.baseUrl", options.baseUrl);
  const authUrl = checkedAddress("service.authUrl", options.authUrl);
  checkedAddress("service.wsUrl", options.wsUrl);

  const server = new ServerClock(clock);
  const transport = createTransport({ clock, server });
  const concealment = new Concealment();
  // Two gates even for one host: an outage of the token endpoint alone must not hold the data back.
  const gateFor = (host: "data" | "token") =>
    new HostGate(clock, random, (state) => {
      log.warn({ host, state }, "the way to the service opened or closed");
      observe({ kind: "breaker", host, state });
    });
  const gate = gateFor("data");
  const budget = new RetryBudget(clock);
  const scopes = new ScopeGate(clock);
  const slots = new RequestSlots({
    clock,
    ceiling: options.concurrency,
    maxPerSecond: options.maxRequestsPerSecond,
    limitChanged: (limit) => observe({ kind: "concurrency", limit }),
  });
  const tokens = createAccessTokens({
    clock,
    random,
    log,
    grant: createTokenEndpoint({
      transport,
      gate: gateFor("token"),
      clock,
      random,
      observe,
      authUrl,
      clientId: options.clientId,
      readSecret: options.readSecret,
      conceal: (text) => concealment.conceal(text),
    }),
    stateChanged: (audience, state) => {
      log.info({ audience, state }, "standing with the token endpoint changed");
      observe({ kind: "auth", audience, state });
    },
  });
  const parts: AttemptParts = {
    clock,
    observe,
    baseUrl,
    audience: options.baseUrl,
    tokens,
    transport,
    gate,
    slots,
    scopes,
    refusedEndpoints: new RefusedEndpoints(clock, random),
    missingPaths: new MissingPaths(),
    concealment,
  };

  let lastSuccessAt: number | undefined;
  let lastFailure: Failure | undefined;

  async function request<T>(ask: Ask, read: (body: Body) => Promise<T>): Promise<T> {
    const tries: Tries = {
      until: clock.monotonic() + PATIENCE_MS,
      unauthorised: false,
      staleConnection: false,
      conflicts: 0,
      verdict: final,
    };
    // Every wait is ours, on the injected clock: p-retry only counts.
    const page = await pRetry((attempt) => attemptRequest(parts, ask, read, tries, attempt), {
      retries: (ask.attempts ?? ATTEMPTS) - 1,
      minTimeout: 0,
      signal: ask.signal,
      shouldConsumeRetry: () => !tries.verdict.free,
      onFailedAttempt: async ({ error, retriesConsumed, retriesLeft }) => {
        if (error instanceof Failure) lastFailure = error;
        if (!heals(error, tries) || tries.verdict.free || retriesLeft <= 0) return;
        const own = backoffDelay(retriesConsumed, BACKOFF, random);
        const wait = Math.max(own, tries.verdict.floorMs, budget.take());
        const code = error instanceof Failure ? error.code : "unexpected";
        log.debug(
          { endpoint: ask.endpoint, code, waitMs: Math.round(wait) },
          "request failed, waiting to retry",
        );
        await clock.sleep(wait, ask.signal);
      },
      shouldRetry: ({ error }) => heals(error, tries),
    });
    budget.earn();
    lastSuccessAt = clock.boottime();
    return page;
  }

  return {
    request,
    observe,
    tokens,
    serverNow: () => server.now(),
    health: () => ({
      rest: tokens.state(options.baseUrl),
      breaker: gate.open ? "open" : "closed",
      lastSuccessAt,
      lastFailure,
      parked: scopes.parked,
      skewMs: server.skewMs(),
    }),
    close: () => transport.close(),
  };
}

/** The 401 that earns a refresh is no failure that heals by waiting, but its retry is free. */
function heals(error: Error, { verdict }: Tries): boolean {
  return verdict.again && error instanceof Failure && (verdict.free || error.family === "retry");
}
