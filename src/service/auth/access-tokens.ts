import { Failure, failureCode } from "../../model/failure.ts";
import type { AuthState } from "../../model/status/service-condition.ts";
import { backoffDelay, type Clock, type Random } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { raceAbort, singleFlight } from "../../runtime/timeouts.ts";
import {
  MAX_TOKEN_LIFETIME_MS,
  MIN_TOKEN_LIFETIME_MS,
  parkings,
  REFRESH_AT_FRACTION,
  TEN_MINUTES_MS,
} from "../limits.ts";
import { authFailed, authMalformed, type GrantedToken } from "./token-endpoint.ts";

export interface AccessToken {
  readonly text: string;
  /** Undefined if the token response lists no scopes. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** On the boot clock, like `expiresAt`: docs/decisions/service-clock.md. */
  readonly firstSeenAt: number;
  readonly expiresAt: number;
}

interface AccessTokensOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Sends one token request. Rejects with a Failure: `operator` if the endpoint rejects the credentials, else `retry`. */
  readonly requestToken: (audience: string) => Promise<GrantedToken>;
  readonly onStateChange: (audience: string, state: AuthState, previousState: AuthState) => void;
}

/** Returns the tokens of an audience, always the same ones. */
export function createAccessTokens(options: AccessTokensOptions): (audience: string) => AudienceTokens {
  const audiences = new Map<string, AudienceTokens>();
  return (audience) => {
    const known = audiences.get(audience) ?? new AudienceTokens(audience, options);
    audiences.set(audience, known);
    return known;
  };
}

/** The token of one audience. Audiences share nothing. */
export class AudienceTokens {
  readonly #audience: string;
  readonly #options: AccessTokensOptions;
  readonly #requestShared: () => Promise<AccessToken>;
  #current: AccessToken | undefined;
  /** Recognises a cached token that the service returns a second time. */
  #previous: AccessToken | undefined;
  #receivedAt = Number.NEGATIVE_INFINITY;
  #refreshAt = 0;
  #failedRefreshes = 0;
  #rejections = 0;
  #probeAt = 0;
  /** The service returned an expired token: no further request before this time. */
  #expiredGrantUntil = Number.NEGATIVE_INFINITY;
  state: AuthState = "unknown";

  constructor(audience: string, options: AccessTokensOptions) {
    this.#audience = audience;
    this.#options = options;
    this.#requestShared = singleFlight(() => this.#requestToken());
  }

  /** Returns a valid token, from memory if possible. Concurrent callers share one request. */
  async get(signal?: AbortSignal): Promise<AccessToken> {
    const now = this.#options.clock.boottime();
    if (this.state === "auth_failed") {
      if (now < this.#probeAt) throw authFailed();
      // Set before the request: one caller probes; the others fail at once until the probe has its response.
      this.#probeAt = now + this.#probeDelayMs();
      return raceAbort(this.#requestShared(), signal);
    }
    const token = this.#current;
    if (!token || now >= token.expiresAt) return raceAbort(this.#requestShared(), signal);
    if (now >= this.#refreshAt) this.#refreshInBackground();
    return token;
  }

  /** Requests a new token although the current one is valid: only a new one carries new scopes. */
  async refresh(signal?: AbortSignal): Promise<AccessToken> {
    const isRecent = this.#options.clock.boottime() - this.#receivedAt < MIN_TOKEN_LIFETIME_MS;
    if (isRecent && this.#current) return this.#current;
    return raceAbort(this.#requestShared(), signal);
  }

  /** The service answered 401 to this token. Drops it; several reports cause one refresh. */
  reportRejected(token: AccessToken): void {
    if (token !== this.#current) return;
    const { clock, log } = this.#options;
    this.#current = undefined;
    if (this.#isTrusted) this.#rejections = 0;
    this.#rejections++;
    log.warn({ audience: this.#audience, rejections: this.#rejections }, "access token rejected");
    if (this.#rejections < 2) return;
    this.#probeAt = clock.boottime() + this.#probeDelayMs();
    this.#setState("auth_failed");
  }

  /** The service accepted this token. Resets the count of rejections. */
  reportAccepted(token: AccessToken): void {
    if (token !== this.#current) return;
    this.#rejections = 0;
    if (this.state === "auth_failed") this.#setState("ok");
  }

  /** Whether a 401 may mean that this token expired. False if it has just replaced a rejected one. */
  mayHaveExpired(token: AccessToken): boolean {
    if (this.state === "auth_failed") return false;
    return token !== this.#current || this.#rejections === 0 || this.#isTrusted;
  }

  #probeDelayMs(): number {
    const failedProbes = Math.max(0, this.#rejections - 2);
    return backoffDelay(failedProbes, parkings["401 of all"].retry, this.#options.random);
  }

  get #isTrusted(): boolean {
    // The service does not revoke a younger token: a 401 to it has another cause.
    return this.#options.clock.boottime() - this.#receivedAt >= TEN_MINUTES_MS;
  }

  #refreshInBackground(): void {
    const { clock, random, log } = this.#options;
    // Set before the response arrives, so that only one attempt is in flight.
    const { baseMs, maxMs } = { baseMs: MIN_TOKEN_LIFETIME_MS, maxMs: TEN_MINUTES_MS / 2 };
    this.#refreshAt = clock.boottime() + maxMs;
    this.#requestShared().catch((error: unknown) => {
      const extraMs = backoffDelay(this.#failedRefreshes++, { baseMs, maxMs: maxMs - baseMs }, random);
      this.#refreshAt = clock.boottime() + baseMs + extraMs;
      const fields = { audience: this.#audience, code: failureCode(error) };
      log.warn(fields, "token refresh failed, current token still valid");
    });
  }

  async #requestToken(): Promise<AccessToken> {
    const { clock, log } = this.#options;
    // The lifetime counts from before the request: a slow response has used up a part of it.
    const requestedAt = clock.boottime();
    if (requestedAt < this.#expiredGrantUntil) throw authMalformed(EXPIRED);
    let grant: GrantedToken;
    try {
      grant = await this.#options.requestToken(this.#audience);
    } catch (error) {
      if (this.state !== "auth_failed") this.#setState(stateAfterError(error));
      throw error;
    }
    const token = this.#acceptGrant(grant, requestedAt);
    this.#failedRefreshes = 0;
    if (this.state !== "auth_failed") this.#setState("ok");
    const lifetimeSeconds = (token.expiresAt - requestedAt) / 1000;
    log.debug({ audience: this.#audience, lifetimeSeconds }, "token refreshed");
    return token;
  }

  #acceptGrant(grant: GrantedToken, requestedAt: number): AccessToken {
    const { clock, random } = this.#options;
    const now = clock.boottime();
    const sameToken = this.#previous?.text === grant.text ? this.#previous : undefined;
    const firstSeenAt = sameToken?.firstSeenAt ?? requestedAt;
    const expiresAt = Math.min(requestedAt + grant.lifetimeMs, firstSeenAt + MAX_TOKEN_LIFETIME_MS);
    if (expiresAt <= now) {
      this.#expiredGrantUntil = now + MIN_TOKEN_LIFETIME_MS;
      throw authMalformed(EXPIRED);
    }
    const token = { text: grant.text, scopes: grant.scopes, firstSeenAt, expiresAt };
    // Daemons that started together do not refresh together.
    const jitter = (random() - 0.5) * ((1 - REFRESH_AT_FRACTION) / 5);
    const dueAt = requestedAt + (expiresAt - requestedAt) * (REFRESH_AT_FRACTION + jitter);
    this.#refreshAt = Math.max(dueAt, now + MIN_TOKEN_LIFETIME_MS);
    this.#receivedAt = now;
    this.#current = token;
    this.#previous = token;
    return token;
  }

  #setState(state: AuthState): void {
    if (state === this.state) return;
    const previousState = this.state;
    this.state = state;
    this.#options.onStateChange(this.#audience, state, previousState);
  }
}

const EXPIRED = "contains an expired token";

function stateAfterError(error: unknown): AuthState {
  if (!(error instanceof Failure)) return "auth_unreachable";
  if (error.code === "auth_malformed") return "auth_malformed";
  if (error.code === "secret_missing" || error.code === "secret_unreadable") return "secret_unreadable";
  return error.family === "operator" ? "credentials_rejected" : "auth_unreachable";
}
