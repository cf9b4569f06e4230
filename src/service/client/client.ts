import { EventEmitter } from "node:events";
import type { ReadBody } from "../../model/response-body.ts";
import { SecretRedactor } from "../../model/secret-redactor.ts";
import { normaliseAddress, parseServiceUrl } from "../../model/service-url.ts";
import type { ServiceCondition } from "../../model/status/service-condition.ts";
import type { Clock, Random } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { createAccessTokens } from "../auth/access-tokens.ts";
import { Parking } from "../auth/parking.ts";
import { createTokenEndpoint } from "../auth/token-endpoint.ts";
import { Bulkhead } from "../http/bulkhead.ts";
import type { ClientEventListener, RecoveryBell } from "../http/client-events.ts";
import { addressOf } from "../http/network-failures.ts";
import { type BreakerState, Outage, TOKEN_ENDPOINT } from "../http/outage.ts";
import { PAUSE_TEXT } from "../http/pace.ts";
import { clampToPresent, type ServiceRequest } from "../http/request.ts";
import { ServerClock } from "../http/server-clock.ts";
import { createTransport } from "../http/transport.ts";
import { type AttemptContext, ask, sendUntilAnswered } from "./attempt.ts";
import { FailureCounts, RetryBudget } from "./failure-counts.ts";
import { PageSizeLimits } from "./page-size-limits.ts";

export interface ServiceClientOptions {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clientId: string;
  /** Called for every token request, so that the client notices a rotated secret. */
  readonly readSecret: () => Promise<string>;
  readonly concurrency: number;
  /** 0: only the limit that the service shows. */
  readonly maxRequestsPerSecond: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onEvent: ClientEventListener;
}

/** The part of the client that paginated walks use. */
export interface RequestSender {
  /**
   * Sends the request, passes the response body to `read`, and retries transient failures. If `read` throws
   * `malformed_body`, `no_list` or `stale_response`, the client sends the request again; every other error of `read` goes
   * to the caller.
   */
  request<T>(request: ServiceRequest, read: ReadBody<T>): Promise<T>;
  readonly onEvent: ClientEventListener;
  readonly parking: Pick<Parking, "hasListed" | "assertListed" | "recordList" | "recordNoList">;
}

export type ServiceClient = ReturnType<typeof createServiceClient>;

export function createServiceClient(options: ServiceClientOptions) {
  const { clock, random, log, onEvent } = options;
  const baseUrl = parseServiceUrl("service.baseUrl", options.baseUrl);
  const authUrl = parseServiceUrl("service.authUrl", options.authUrl);

  const server = new ServerClock(clock);
  const transport = createTransport({ clock, server });
  const redactor = new SecretRedactor("messages");
  const onStateChange = (scope: string, state: BreakerState) => {
    const address = addressOf(scope === TOKEN_ENDPOINT ? authUrl : baseUrl);
    if (state === "closed") log.warn({ endpoint: scope, address, state }, "circuit breaker closed");
    else {
      const { message: cause, remedy } = failures.last ?? {};
      log.warn({ endpoint: scope, address, state, cause, remedy }, "circuit breaker opened");
    }
    onEvent({ kind: "breaker", endpoint: scope, state });
  };
  const failures = new FailureCounts(clock, log);
  const bell: RecoveryBell = new EventEmitter();
  const parking = new Parking(clock, random);
  const outage = new Outage({
    clock,
    random,
    onStateChange,
    onRecovered: () => bell.emit("ring"),
    /** Another endpoint each time, those first that answered last. */
    probe: async (probes) => {
      const candidates = parking.elsewhere("", (path) => outage.isFailing(path));
      const request = candidates[(probes - 1) % candidates.length];
      const token = await tokens.get().catch(() => undefined);
      if (request && token) await ask(context, request, token);
    },
  });
  bell.on("ring", () => outage.probeNow());
  const bulkhead = new Bulkhead({
    clock,
    maxConcurrency: options.concurrency,
    maxPerSecond: options.maxRequestsPerSecond,
    onLimitChange: ({ concurrency, per_second, reason, limit }) => {
      const perSecond = per_second && Number(per_second.toPrecision(3));
      log.info({ reason, limit, concurrency, perSecond }, "request limit changed");
    },
  });
  const tokensOf = createAccessTokens({
    clock,
    random,
    log,
    requestToken: createTokenEndpoint({
      ...{ transport, outage, clock, random, onEvent, authUrl },
      clientId: options.clientId,
      readSecret: options.readSecret,
      addSecret: (text) => redactor.addSecret(text),
    }),
    onStateChange: (audience, state, previousState) => {
      log.info({ audience, state }, "authentication state changed");
      onEvent({ kind: "auth", audience, state });
      if (state === "ok" && previousState !== "unknown") bell.emit("ring");
    },
  });
  // The configured address, unmodified: the token's audience must match it character by character.
  const tokens = tokensOf(options.baseUrl);
  const context: AttemptContext = {
    ...{ clock, onEvent, baseUrl, tokens, transport, outage, bulkhead, parking, failures, redactor },
    pageSizes: new PageSizeLimits(log),
    budget: new RetryBudget(random),
    asked: new Map(),
  };

  function describeCondition(): ServiceCondition {
    const paused = { reason: "paused", limit: PAUSE_TEXT, limit_since: null } as const;
    const limits = { ...bulkhead.limits, ...(outage.isPaused ? paused : {}) };
    const throttled = limits.reason === "rate_limited" || limits.reason === "paused";
    return { ...limits, throttled, open_breakers: outage.open, recent_failures: failures.recent };
  }

  const sender: RequestSender = {
    request: (request, read) =>
      sendUntilAnswered(context, clampToPresent(request, server.now() ?? clock.now()), read),
    onEvent,
    parking,
  };
  return {
    ...sender,
    /** The REST address, in one spelling. */
    address: normaliseAddress(baseUrl),
    tokensOf,
    /** Its clock, which the websocket shares. */
    server,
    /** Rings when the service answers again; the websocket rings it too. */
    bell,
    /** Nothing answers, and probes are under way. */
    isDown: () => outage.isDown,
    /** While nothing answers: resolves when the websocket may try to connect in place of a probe. */
    waitForTurn: (signal: AbortSignal) => outage.waitForTurn(signal),
    /** The client secret and the tokens; a new array after each change. */
    secrets: () => redactor.secrets,
    /** Connection state for status, doctor and metrics. */
    health: () => ({
      authState: tokens.state,
      condition: describeCondition(),
      lastSuccessAt: failures.lastSuccessAt,
      lastFailure: failures.last,
      parkedEndpoints: parking.parked,
      /** How far the local wall clock is ahead of the service's. */
      skewMs: server.skewMs(),
    }),
    async close() {
      failures.logFinishedMinute(true);
      await transport.close();
    },
  };
}
