import { exitCode, Failure, failureCode } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import { serviceScopes } from "../../model/streams.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import { finishesWithin } from "../../runtime/timeouts.ts";
import { type ClientEventListener, requestEvent } from "../http/client-events.ts";
import { type Outage, TOKEN_ENDPOINT } from "../http/outage.ts";
import { isServerFailure, unreachableFailure } from "../http/status-errors.ts";
import type { Transport, TransportResponse } from "../http/transport.ts";
import {
  HOUR_MS,
  MAX_PROBE_MS,
  MAX_SILENCE_MS,
  MAX_TOKEN_LIFETIME_MS,
  MIN_TOKEN_LIFETIME_MS,
  parkings,
  SMALL_ANSWER_TIMEOUT_MS,
} from "../limits.ts";

interface TokenEndpointOptions {
  readonly transport: Transport;
  readonly outage: Outage;
  readonly clock: Clock;
  readonly random: Random;
  readonly onEvent: ClientEventListener;
  readonly authUrl: URL;
  readonly clientId: string;
  readonly readSecret: () => Promise<string>;
  /** Receives every secret before its first use, so that logs and errors can redact it. */
  readonly addSecret: (text: string) => void;
}

/** Returns a function that requests a token. Only this module sends the client secret. */
export function createTokenEndpoint(
  options: TokenEndpointOptions,
): (audience: string) => Promise<GrantedToken> {
  const { transport, outage, clock, random, authUrl } = options;
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
    });
  }

  function sendTokenRequest(audience: string, secret: string): Promise<TransportResponse> {
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
      timeoutMs: SMALL_ANSWER_TIMEOUT_MS,
    });
  }

  /** One that hangs is not waited for: another follows, and the first answer counts. */
  async function sendUntilAnswered(audience: string, secret: string): Promise<TransportResponse> {
    const answers: Promise<TransportResponse>[] = [];
    do answers.push(sendTokenRequest(audience, secret));
    while (!(await finishesWithin(clock, MAX_PROBE_MS, Promise.race(answers))));
    return Promise.race(answers);
  }

  async function attempt(audience: string, secret: string): Promise<GrantedToken> {
    const until = clock.monotonic() + MAX_SILENCE_MS;
    const started = await outage.enter(TOKEN_ENDPOINT, until, undefined, () =>
      outage.tryStart(TOKEN_ENDPOINT) ? { isStarted: true } : undefined,
    );
    if (typeof started === "string")
      throw unreachableFailure("service.authUrl", authUrl, MAX_SILENCE_MS, lastFailure);
    const startedAt = clock.monotonic();
    let response: TransportResponse | undefined;
    let outcome = "ok";
    try {
      response = await sendUntilAnswered(audience, secret);
      const failure = failureFromTokenStatus(response, authUrl.origin + path);
      if (failure) throw failure;
      const grant = parseGrantedToken(response);
      options.addSecret(grant.text);
      outage.recordAnswer(TOKEN_ENDPOINT);
      return grant;
    } catch (error) {
      outcome = failureCode(error);
      if (error instanceof Failure) lastFailure = error;
      if (error instanceof Failure && error.family === "retry")
        outage.recordFailure(TOKEN_ENDPOINT, "failed", response?.retryAfterMs);
      else outage.recordAnswer(TOKEN_ENDPOINT);
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
      const retryAt = clock.boottime() + backoffDelay(0, parkings["refused credentials"].retry, random);
      rejectedSecrets.set(audience, { secret, retryAt, failure: error });
      throw error;
    }
  };
}

function failureFromTokenStatus({ status }: TransportResponse, address: string): Failure | undefined {
  if (status === 200) return undefined;
  // No other status says anything about the credentials.
  if ([400, 401, 403].includes(status))
    return new Failure(`the token endpoint rejected the credentials (${status})`, {
      code: "credentials_rejected",
      remedy:
        "check the client id and the secret; a running daemon reads a changed secret file without a restart",
    });
  if (status >= 300 && status < 400)
    return new Failure(
      `the token endpoint ${address} redirects (${status}); following would send the secret to another address`,
      {
        code: "auth_unreachable",
        remedy: "set service.authUrl to the token endpoint itself; during maintenance, wait",
      },
    );
  const isBusy = status === 429 || isServerFailure(status) || status < 300;
  const remedy = "check service.authUrl: the address is wrong, or the service is under maintenance";
  return new Failure(`the token endpoint ${address} answered ${status}`, {
    code: "auth_unreachable",
    ...(isBusy ? {} : { remedy }),
  });
}

export type GrantedToken = ReturnType<typeof parseGrantedToken>;

/** Reads `expires_in`: a number, or a string that contains one; anything else counts as missing. */
function parseLifetime(expiresIn: unknown): number {
  const seconds =
    typeof expiresIn === "string" && expiresIn.trim() !== "" ? Number(expiresIn) : (expiresIn as number);
  if (typeof seconds !== "number" || Number.isNaN(seconds)) return HOUR_MS;
  return Math.min(MAX_TOKEN_LIFETIME_MS, Math.max(MIN_TOKEN_LIFETIME_MS, seconds * 1000));
}

/** A token becomes part of a header and a URL, so it must be visible ASCII. */
const visibleAscii = /^[\x21-\x7e]+$/;

/** Parses a 200 response. Errors never quote the body, because it contains a secret. */
function parseGrantedToken(response: TransportResponse) {
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

/**
 * The documented scopes that a text or a list names, in any case; undefined if it names none: it says nothing. A hint only: the service
 * decides request by request.
 */
function parseScopes(scope: unknown): ReadonlySet<string> | undefined {
  const texts: unknown[] = Array.isArray(scope) ? scope : [scope];
  const names = texts.flatMap((text) => (typeof text === "string" ? text.split(/[\s,]+/) : []));
  const lowerCase = new Set(names.map((name) => name.toLowerCase()));
  const named: readonly string[] = serviceScopes.filter((known) => lowerCase.has(known.toLowerCase()));
  return named.length > 0 ? new Set(named) : undefined;
}

export function authMalformed(reason: string): Failure {
  return new Failure(`the response of the token endpoint ${reason}`, {
    code: "auth_malformed",
    remedy: "check service.authUrl, and whether a proxy or captive portal answers instead",
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
