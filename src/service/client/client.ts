import { EventEmitter } from "node:events";
import pRetry from "p-retry";
import { Failure } from "../../model/failure.ts";
import type { ResponseBody } from "../../model/response-body.ts";
import { SecretRedactor } from "../../model/secret-redactor.ts";
import { normaliseAddress, parseServiceUrl } from "../../model/service-url.ts";
import type { LimitReason, ServiceCondition } from "../../model/status/service-condition.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { type AccessTokens, createAccessTokens } from "../auth/access-tokens.ts";
import { EndpointAccess, type ParkedEndpoint } from "../auth/endpoint-access.ts";
import { createTokenEndpoint } from "../auth/token-endpoint.ts";
import { Witness } from "../auth/witness.ts";
import { Bulkhead, type RequestLimits } from "../http/bulkhead.ts";
import type { AuthState, ClientEventListener, RecoveryBell } from "../http/client-events.ts";
import { type BreakerState, EndpointBreakers, TOKEN_ENDPOINT } from "../http/endpoint-breakers.ts";
import { addressOf } from "../http/network-failures.ts";
import { PAUSE_TEXT } from "../http/pace.ts";
import { clampToPresent, describePath, requestPriority, type ServiceRequest } from "../http/request.ts";
import { ServerClock } from "../http/server-clock.ts";
import { createTransport } from "../http/transport.ts";
import { attemptRequest } from "./attempt.ts";
import { FailureCounts } from "./failure-counts.ts";
import { PageSizeLimits } from "./page-size-limits.ts";
import {
  type AttemptContext,
  createRetryState,
  MAX_REQUEST_WAIT_MS,
  RetryBudget,
  type RetryState,
  retryNow,
} from "./retry-policy.ts";

export interface ServiceClientOptions {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly clientId: string;
  /** Called for every token request, so that the client notices a rotated secret. */
  readonly readSecret: () => Promise<string>;
  /** Maximum number of concurrent requests. */
  readonly concurrency: number;
  /** 0: only the limit that the service shows. */
  readonly maxRequestsPerSecond: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly onEvent: ClientEventListener;
}

/** Connection state for status, doctor and metrics. */
interface ServiceHealth {
  readonly authState: AuthState;
  readonly condition: ServiceCondition;
  /** On the boot clock; undefined before the first success. */
  readonly lastSuccessAt: number | undefined;
  /** The last failed attempt of a request. */
  readonly lastFailure: Failure | undefined;
  readonly parkedEndpoints: readonly ParkedEndpoint[];
  /** How far the local wall clock is ahead of the service's. */
  readonly skewMs: number | undefined;
}

/** The part of the client that paginated walks use. */
export interface RequestSender {
  /**
   * Sends the request, passes the response body to `read`, and retries transient failures. If `read` throws
   * `malformed_body`, `no_list` or `stale_response`, the client sends the request again; every other error of `read` goes
   * to the caller.
   */
  request<T>(request: ServiceRequest, read: (body: ResponseBody) => Promise<T>): Promise<T>;
  readonly onEvent: ClientEventListener;
  readonly witness: Pick<Witness, "hasListed" | "assertListed" | "recordList" | "recordNoList">;
}

export interface ServiceClient extends RequestSender {
  /** The REST address, in one spelling. */
  readonly address: string;
  readonly tokens: AccessTokens;
  /** Rings when the service answers again; the websocket rings it too. */
  readonly bell: RecoveryBell;
  /** Nothing answers, and probes are under way. */
  isDown(): boolean;
  /** While nothing answers: resolves when the websocket may try to connect in place of a probe. */
  waitForTurn(signal: AbortSignal): Promise<void>;
  /** The client secret and the tokens; a new array after each change. */
  secrets(): readonly string[];
  /** Milliseconds since 1970 by the service's clock; undefined before its first response. */
  serverNow(): number | undefined;
  health(): ServiceHealth;
  close(): Promise<void>;
}

/** While three requests of four fail, one page in a hundred needs more; its range is then fetched again. */
const DEFAULT_MAX_ATTEMPTS = 16;
/** They follow from earlier failures, and do not say what failed. */
const breakerFailures: ReadonlySet<string> = new Set(["endpoint_failing", "service_unreachable"]);

export function createServiceClient(options: ServiceClientOptions): ServiceClient {
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
      const { message: cause, remedy } = lastFailure ?? {};
      log.warn({ endpoint: scope, address, state, cause, remedy }, "circuit breaker opened");
    }
    onEvent({ kind: "breaker", endpoint: scope, state });
  };
  const breakers = new EndpointBreakers({
    clock,
    random,
    onStateChange,
    onRecovered: () => bell.emit("ring"),
  });
  const bell: RecoveryBell = new EventEmitter();
  bell.on("ring", () => breakers.probeNow());
  const retryBudget = new RetryBudget(random);
  const witness = new Witness(clock);
  const endpointAccess = new EndpointAccess(clock, random, witness);
  const bulkhead = new Bulkhead({
    clock,
    maxConcurrency: options.concurrency,
    maxPerSecond: options.maxRequestsPerSecond,
    onLimitChange: (limits) => {
      logLimitChange(limits);
      onEvent({ kind: "limits", limits });
    },
  });
  const tokens = createAccessTokens({
    clock,
    random,
    log,
    requestToken: createTokenEndpoint({
      transport,
      breakers,
      clock,
      random,
      onEvent,
      authUrl,
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
  const context: AttemptContext = {
    clock,
    onEvent,
    baseUrl,
    audience: options.baseUrl,
    tokens,
    transport,
    breakers,
    bulkhead,
    endpointAccess,
    witness,
    redactor,
    lastFailure: () => lastFailure,
  };

  let lastReason: LimitReason = "settings";
  /** A change of the reason is news for the operator. Figures and short pauses alone are not. */
  function logLimitChange({ concurrency, perSecond, reason, text: limit }: RequestLimits): void {
    if (reason === lastReason || reason === "paused") return;
    lastReason = reason;
    const rate = perSecond === undefined ? null : Number(perSecond.toPrecision(3));
    log.info({ reason, limit, concurrency, perSecond: rate }, "request limit changed");
  }

  function describeCondition(): ServiceCondition {
    const paused = { reason: "paused", text: PAUSE_TEXT, since: undefined } as const;
    const limits = { ...bulkhead.limits, ...(breakers.isPaused ? paused : {}) };
    const { concurrency, perSecond = null, reason, text, since } = limits;
    return {
      concurrency,
      per_second: perSecond,
      reason,
      limit: text ?? null,
      limit_since: since === undefined ? null : new Date(since).toISOString(),
      throttled: reason === "rate_limited" || reason === "paused",
      open_breakers: breakers.open,
      recent_failures: failureCounts.recent,
    };
  }

  const failureCounts = new FailureCounts(clock, log);
  const pageSizes = new PageSizeLimits(log);
  let lastSuccessAt: number | undefined;
  let lastFailure: Failure | undefined;

  async function send<T>(request: ServiceRequest, read: (body: ResponseBody) => Promise<T>): Promise<T> {
    const state = createRetryState(clock.monotonic() + MAX_REQUEST_WAIT_MS);
    const sized = pageSizes.begin(request);
    const isUrgent = request.priority === requestPriority.snapshot;
    const awaitedEndpoint = () => (state.decision.isSlow ? TOKEN_ENDPOINT : describePath(request));
    // What has no history is probed until the service is back, however often that fails.
    const isProbing = () => isUrgent && breakers.isOpen(awaitedEndpoint());
    const attemptSized = async (attempt: number) => {
      if (isUrgent) breakers.recordUrgency();
      try {
        return await attemptRequest(context, sized.request, read, state, attempt);
      } catch (error) {
        // While everything fails, the size of a page is not the cause.
        const isCause = !request.signal?.aborted && !breakers.isDown;
        if (isCause && sized.recordFailure(error)) state.decision = retryNow;
        throw sized.explain(error);
      }
    };
    // p-retry only counts: its own waits would use the system clock.
    const page = await pRetry(attemptSized, {
      retries: (request.maxAttempts ?? DEFAULT_MAX_ATTEMPTS) - 1,
      minTimeout: 0,
      signal: request.signal,
      shouldConsumeRetry: () => !state.decision.isImmediate && !isProbing(),
      onFailedAttempt: async ({ error, retriesConsumed, retriesLeft }) => {
        if (error instanceof Failure && !breakerFailures.has(error.code)) lastFailure = error;
        if (error instanceof Failure && error.family === "retry") failureCounts.record(error);
        if (!shouldRetry(error, state) || state.decision.isImmediate || retriesLeft <= 0) return;
        // The only delay between two attempts. The bulkhead adds what the rate of all requests demands.
        const { minDelayMs, isSlow } = state.decision;
        const waitMs = Math.max(minDelayMs, retryBudget.spend(retriesConsumed, { isSlow, isUrgent }));
        const code = error instanceof Failure ? error.code : "unexpected";
        log.debug(
          { endpoint: request.endpoint, code, waitMs: Math.round(waitMs) },
          "request failed, will retry",
        );
        await breakers.waitWhileClosed(awaitedEndpoint(), waitMs, request.signal);
      },
      shouldRetry: ({ error }) => shouldRetry(error, state),
    });
    sized.recordSuccess();
    retryBudget.recordSuccess();
    lastSuccessAt = clock.boottime();
    failureCounts.logFinishedMinute();
    return page;
  }

  return {
    address: normaliseAddress(baseUrl),
    request: (request, read) => send(clampToPresent(request, server.now() ?? clock.now()), read),
    onEvent,
    witness,
    tokens,
    bell,
    isDown: () => breakers.isDown,
    waitForTurn: (signal) => breakers.waitForTurn(signal),
    secrets: () => redactor.secrets,
    serverNow: () => server.now(),
    health: () => ({
      authState: tokens.state(options.baseUrl),
      condition: describeCondition(),
      lastSuccessAt,
      lastFailure,
      parkedEndpoints: endpointAccess.parked,
      skewMs: server.skewMs(),
    }),
    async close() {
      failureCounts.logFinishedMinute(true);
      await transport.close();
    },
  };
}

/** An immediate retry (after a token refresh) is allowed even though a 401 is not a `retry` failure. */
function shouldRetry(error: Error, { decision }: RetryState): boolean {
  return (
    decision.shouldRetry && error instanceof Failure && (decision.isImmediate || error.family === "retry")
  );
}
