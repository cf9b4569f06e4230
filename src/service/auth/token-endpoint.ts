import { exitCode, Failure } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type ClientEventListener, requestEvent } from "../http/client-events.ts";
import { DEAD_ENDPOINT_MS, type EndpointBreakers, TOKEN_ENDPOINT } from "../http/endpoint-breakers.ts";
import { addressOf } from "../http/network-failures.ts";
import { documentedScopes } from "../http/request.ts";
import { unreachableFailure } from "../http/status-errors.ts";
import type { Transport, TransportResponse } from "../http/transport.ts";

interface TokenEndpointOptions {
  readonly transport: Transport;
  readonly breakers: EndpointBreakers;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: ClientEventListener;
  readonly authUrl: URL;
  readonly clientId: string;
  readonly readSecret: () => Promise<string>;
  /** Receives every secret before its first use, so that logs and errors can redact it. */
  readonly addSecret: (text: string) => void;
}

const TOKEN_REQUEST_TIMEOUT_MS = 30_000;
const MAX_BREAKER_WAIT_MS = 15 * 60_000;
/** Retrying rejected credentials more often would not help. */
const REJECTED_RETRY_INTERVAL_MS = 300_000;

/** Returns a function that requests a token. Only this module sends the client secret. */
export function createTokenEndpoint(
  options: TokenEndpointOptions,
): (audience: string) => Promise<GrantedToken> {
  const { transport, breakers, clock, random, authUrl } = options;
  const path = `${authUrl.pathname.replace(/\/+$/, "")}/v3/oauth/token`;
  /** Per audience: the last rejected secret, and the time before which it is not sent again. */
  const rejectedSecrets = new Map<string, { secret: string; retryAt: number; failure: Failure }>();

  let lastFailure: Failure | undefined;

  async function readSecret(): Promise<string> {
    try {
      const secret = (await options.readSecret()).trim();
      if (secret !== "") {
        options.addSecret(secret);
        return secret;
      }
    } catch (error) {
      if (error instanceof Failure) throw error;
    }
    throw new Failure("the client secret is unreadable or empty", {
      code: "secret_unreadable",
      remedy: "check the secret file and its permissions, or the environment variable",
      exit: exitCode.credentials,
    });
  }

  async function sendTokenRequest(audience: string, secret: string): Promise<TransportResponse> {
    return transport.send({
      method: "POST",
      origin: authUrl.origin,
      path,
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        grant_type: "client_credentials",
        client_id: options.clientId,
        client_secret: secret,
        audience,
      }),
      timeoutMs: TOKEN_REQUEST_TIMEOUT_MS,
    });
  }

  async function attempt(audience: string, secret: string): Promise<GrantedToken> {
    const deadline = clock.monotonic() + MAX_BREAKER_WAIT_MS;
    const permit = await breakers.enterWhenAvailable(TOKEN_ENDPOINT, deadline, undefined, () =>
      breakers.tryAcquire(TOKEN_ENDPOINT),
    );
    if (typeof permit === "string")
      throw unreachableFailure({
        setting: "service.authUrl",
        address: addressOf(authUrl),
        waitedMs: permit === "dead" ? DEAD_ENDPOINT_MS : MAX_BREAKER_WAIT_MS,
        lastFailure,
      });
    const startedAt = clock.monotonic();
    let response: TransportResponse | undefined;
    let outcome = "ok";
    try {
      response = await sendTokenRequest(audience, secret);
      const failure = failureFromTokenStatus(response, authUrl.origin + path);
      if (failure) throw failure;
      const grant = parseGrantedToken(response);
      options.addSecret(grant.text);
      permit.recordSuccess();
      return grant;
    } catch (error) {
      outcome = error instanceof Failure ? error.code : "unexpected";
      if (error instanceof Failure) lastFailure = error;
      if (error instanceof Failure && error.family === "retry")
        permit.recordFailure("no_token", response?.retryAfterMs);
      else permit.recordSuccess();
      throw error;
    } finally {
      const ms = clock.monotonic() - startedAt;
      options.onEvent(requestEvent({ endpoint: TOKEN_ENDPOINT, outcome, ms, attempt: 1 }, response));
    }
  }

  return async function requestToken(audience) {
    const secret = await readSecret();
    const rejected = rejectedSecrets.get(audience);
    if (rejected && rejected.secret === secret && clock.boottime() < rejected.retryAt) throw rejected.failure;
    try {
      const token = await attempt(audience, secret);
      rejectedSecrets.delete(audience);
      return token;
    } catch (error) {
      if (!(error instanceof Failure) || error.family !== "operator") throw error;
      // The secret may have been rotated while the request was in flight.
      const currentSecret = await readSecret();
      if (currentSecret !== secret && rejected?.secret !== currentSecret)
        return attempt(audience, currentSecret);
      const retryAt = clock.boottime() + REJECTED_RETRY_INTERVAL_MS * (1 + random() / 5);
      rejectedSecrets.set(audience, { secret, retryAt, failure: error });
      throw error;
    }
  };
}

/** The statuses with which a token endpoint refuses credentials. No other status says anything about them. */
const refusedStatuses: readonly number[] = [400, 401, 403];

function failureFromTokenStatus({ status }: TransportResponse, address: string): Failure | undefined {
  if (status === 200) return undefined;
  if (refusedStatuses.includes(status)) return credentialsRejected(status);
  if (status >= 300 && status < 400)
    return new Failure(
      `the token endpoint ${address} redirects (${status}); following would send the secret to another address`,
      {
        code: "auth_unreachable",
        remedy: "set service.authUrl to the token endpoint itself; during maintenance, wait",
      },
    );
  const isBusy = status === 429 || status >= 500 || status === 408 || status === 425 || status < 300;
  return new Failure(
    `the token endpoint ${address} answered ${status}`,
    isBusy
      ? { code: "auth_unreachable" }
      : {
          code: "auth_unreachable",
          remedy: "check service.authUrl: the address is wrong, or the service is under maintenance",
        },
  );
}

/** Shorter lifetimes count as this: `expires_in: 0` must not cause a token request per request. */
export const MIN_TOKEN_LIFETIME_MS = 30_000;
/** No token is used longer than this after it was first seen, whatever the response says. */
export const MAX_TOKEN_LIFETIME_MS = 86_400_000;
/** For responses without a usable `expires_in`. A 401 ends such a token earlier if needed. */
const DEFAULT_TOKEN_LIFETIME_MS = 3_600_000;

export interface GrantedToken {
  readonly text: string;
  /** Undefined: not stated. A hint only: the service decides request by request. */
  readonly scopes: ReadonlySet<string> | undefined;
  readonly lifetimeMs: number;
}

/** Reads `expires_in`: a number, or a string that contains one; anything else counts as missing. */
function parseLifetime(expiresIn: unknown): number {
  const seconds =
    typeof expiresIn === "string" && expiresIn.trim() !== "" ? Number(expiresIn) : (expiresIn as number);
  if (typeof seconds !== "number" || Number.isNaN(seconds)) return DEFAULT_TOKEN_LIFETIME_MS;
  return Math.min(MAX_TOKEN_LIFETIME_MS, Math.max(MIN_TOKEN_LIFETIME_MS, seconds * 1000));
}

/** A token becomes part of a header and a URL, so it must be visible ASCII. */
const visibleAscii = /^[\x21-\x7e]+$/;

/** Parses a 200 response. Errors never quote the body, because it contains a secret. */
function parseGrantedToken(response: TransportResponse): GrantedToken {
  let fields: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(decodeBody(response.body, 1024 * 1024)));
    if (typeof parsed === "object" && parsed !== null) fields = parsed as Record<string, unknown>;
  } catch {
    // The error of JSON.parse quotes the body, so it must not be passed on.
    throw authMalformed("is not JSON");
  }
  const { access_token: text, scope, expires_in: expiresIn } = fields;
  if (typeof text !== "string" || !visibleAscii.test(text)) throw authMalformed("has no access_token");
  return { text, scopes: parseScopes(scope), lifetimeMs: parseLifetime(expiresIn) };
}

/** The documented scopes that a text or a list names, in any case; undefined if it names none: it says nothing. */
function parseScopes(scope: unknown): ReadonlySet<string> | undefined {
  const texts: unknown[] = Array.isArray(scope) ? scope : [scope];
  const names = texts.flatMap((text) => (typeof text === "string" ? text.split(/[\s,]+/) : []));
  const lowerCase = new Set(names.map((name) => name.toLowerCase()));
  const named = documentedScopes.filter((known) => lowerCase.has(known.toLowerCase()));
  return named.length > 0 ? new Set(named) : undefined;
}

/** The delay before the next probe with a rejected token: at least one minute, growing to at least half an hour. */
export const REJECTED_TOKEN_BACKOFF = { baseMs: 75_000, maxMs: 2_250_000, jitter: 0.2 };

export function authMalformed(reason: string): Failure {
  return new Failure(`the response of the token endpoint ${reason}`, {
    code: "auth_malformed",
    remedy: "check service.authUrl, and whether a proxy or captive portal answers instead",
    exit: exitCode.tryLater,
  });
}

function credentialsRejected(status: number): Failure {
  return new Failure(`the token endpoint rejected the credentials (${status})`, {
    code: "credentials_rejected",
    remedy:
      "check the client id and the secret; a running daemon reads a changed secret file without a restart",
    exit: exitCode.credentials,
  });
}

export function authFailed(): Failure {
  return new Failure("the service rejects the tokens that its token endpoint issues", {
    code: "auth_failed",
    remedy:
      "check that service.baseUrl (the token's audience), service.authUrl and the client id belong together",
    exit: exitCode.credentials,
  });
}
