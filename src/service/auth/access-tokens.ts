import { Failure } from "../../model/failure.ts";
import type { Random } from "../../runtime/backoff.ts";
import { backoffDelay } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { abortable, singleFlight } from "../../runtime/timeouts.ts";
import type { AuthState } from "../http/events.ts";
import {
  authFailed,
  authMalformed,
  type Grant,
  LONGEST_LIFE_MS,
  probeDelay,
  SHORTEST_LIFE_MS,
} from "./token-endpoint.ts";

export interface AccessToken {
  readonly text: string;
  /** Undefined: the service did not say. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** When this very token was first seen, on the boot clock: no wall clock step and no suspension fools it. */
  readonly issuedAt: number;
  readonly endsAt: number;
}

export interface AccessTokens {
  /** A token that lives, from memory where possible. Callers at once share one request. */
  get(audience: string, signal?: AbortSignal): Promise<AccessToken>;
  /** A 401 was met with this very token: earns one refresh, however many say so. */
  refused(audience: string, token: AccessToken): void;
  /** Whether a 401 with this token may mean that its time was over: not if it has just taken the place of a refused one. */
  mayHaveEnded(audience: string, token: AccessToken): boolean;
  /** The service took this token: ends a row of refusals. */
  accepted(audience: string, token: AccessToken): void;
  /** A new token although the old one lives: new scopes come only with a new one. */
  renew(audience: string, signal?: AbortSignal): Promise<AccessToken>;
  state(audience: string): AuthState;
  /** Tells whenever tokens of some audience can be had, or are taken, again. Call the result to hear no more. */
  onHealed(listener: () => void): () => void;
}

export interface AccessTokensOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Asks the token endpoint once. Rejects with a Failure: `operator` if it refused, else `retry`. */
  readonly grant: (audience: string) => Promise<Grant>;
  readonly stateChanged: (audience: string, state: AuthState, before: AuthState) => void;
}

/** About four hours and a half of a day's token are left when it is first renewed: an outage shorter than that goes by unseen. */
const RENEW_AT = 0.8;
const RENEW_JITTER = 0.04;
const RENEWAL_PAUSE = { least: SHORTEST_LIFE_MS, most: 300_000 };
/** A token that worked for this long and is refused then had simply ended. */
const PROVEN_AFTER_MS = 600_000;

export function createAccessTokens(options: AccessTokensOptions): AccessTokens {
  const audiences = new Map<string, AudienceTokens>();
  const listeners = new Set<() => void>();
  const stateChanged: AccessTokensOptions["stateChanged"] = (audience, state, before) => {
    options.stateChanged(audience, state, before);
    if (state === "ok" && before !== "unknown") for (const listener of [...listeners]) listener();
  };
  const of = (audience: string) => {
    const known = audiences.get(audience) ?? new AudienceTokens(audience, { ...options, stateChanged });
    audiences.set(audience, known);
    return known;
  };
  return {
    get: (audience, signal) => of(audience).get(signal),
    refused: (audience, token) => of(audience).refused(token),
    mayHaveEnded: (audience, token) => of(audience).mayHaveEnded(token),
    accepted: (audience, token) => of(audience).accepted(token),
    renew: (audience, signal) => of(audience).renew(signal),
    state: (audience) => of(audience).state,
    onHealed(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The token of one audience. Tokens of different audiences never meet. */
class AudienceTokens {
  readonly #audience: string;
  readonly #options: AccessTokensOptions;
  readonly #refresh: () => Promise<AccessToken>;
  #current: AccessToken | undefined;
  /** The token before, kept to recognise it when the service hands out the same one again. */
  #last: AccessToken | undefined;
  #grantedAt = Number.NEGATIVE_INFINITY;
  #renewAt = 0;
  #renewalsFailed = 0;
  #refusals = 0;
  #probeAt = 0;
  /** The service handed out a token whose time was over: not asked again before this. */
  #spentUntil = Number.NEGATIVE_INFINITY;
  #state: AuthState = "unknown";

  constructor(audience: string, options: AccessTokensOptions) {
    this.#audience = audience;
    this.#options = options;
    this.#refresh = singleFlight(() => this.#grant());
  }

  get state(): AuthState {
    return this.#state;
  }

  async get(signal?: AbortSignal): Promise<AccessToken> {
    const now = this.#options.clock.boottime();
    if (this.#state === "auth_failed") {
      if (now < this.#probeAt) throw authFailed();
      // Moved at once: one caller probes, the others keep failing without a request until it has its answer.
      this.#probeAt = now + probeDelay(this.#refusals - 2, this.#options.random);
      return abortable(this.#refresh(), signal);
    }
    const token = this.#current;
    if (!token || now >= token.endsAt) return abortable(this.#refresh(), signal);
    if (now >= this.#renewAt) this.#renewInBackground();
    return token;
  }

  async renew(signal?: AbortSignal): Promise<AccessToken> {
    const fresh = this.#options.clock.boottime() - this.#grantedAt < SHORTEST_LIFE_MS;
    if (fresh && this.#current) return this.#current;
    return abortable(this.#refresh(), signal);
  }

  refused(token: AccessToken): void {
    if (token !== this.#current) return;
    const { clock, random, log } = this.#options;
    this.#current = undefined;
    if (this.#isProven) this.#refusals = 0;
    this.#refusals++;
    log.warn({ audience: this.#audience, refusals: this.#refusals }, "access token refused by the service");
    if (this.#refusals < 2) return;
    this.#probeAt = clock.boottime() + probeDelay(this.#refusals - 2, random);
    this.#enter("auth_failed");
  }

  accepted(token: AccessToken): void {
    if (token !== this.#current) return;
    this.#refusals = 0;
    if (this.#state === "auth_failed") this.#enter("ok");
  }

  mayHaveEnded(token: AccessToken): boolean {
    if (this.#state === "auth_failed") return false;
    return token !== this.#current || this.#refusals === 0 || this.#isProven;
  }

  get #isProven(): boolean {
    return this.#options.clock.boottime() - this.#grantedAt >= PROVEN_AFTER_MS;
  }

  #renewInBackground(): void {
    const { clock, random, log } = this.#options;
    // Set before the answer comes, so that one attempt at a time is under way.
    this.#renewAt = clock.boottime() + RENEWAL_PAUSE.most;
    this.#refresh().catch((error: unknown) => {
      const { least, most } = RENEWAL_PAUSE;
      const more = backoffDelay(this.#renewalsFailed++, { baseMs: least, capMs: most - least }, random);
      this.#renewAt = clock.boottime() + least + more;
      const code = error instanceof Failure ? error.code : "unexpected";
      log.warn({ audience: this.#audience, code }, "access token not renewed, the current one still lives");
    });
  }

  async #grant(): Promise<AccessToken> {
    const { clock, log } = this.#options;
    // The life counts from before the request: an answer that took long has used some of it up.
    const askedAt = clock.boottime();
    if (askedAt < this.#spentUntil) throw spentToken();
    let grant: Grant;
    try {
      grant = await this.#options.grant(this.#audience);
    } catch (error) {
      if (this.#state !== "auth_failed") this.#enter(stateAfter(error));
      throw error;
    }
    const token = this.#admit(grant, askedAt);
    this.#renewalsFailed = 0;
    if (this.#state !== "auth_failed") this.#enter("ok");
    log.debug(
      { audience: this.#audience, lifeSeconds: (token.endsAt - askedAt) / 1000 },
      "access token granted",
    );
    return token;
  }

  #admit(grant: Grant, askedAt: number): AccessToken {
    const { clock, random } = this.#options;
    const now = clock.boottime();
    const again = this.#last?.text === grant.text ? this.#last : undefined;
    const issuedAt = again?.issuedAt ?? askedAt;
    const endsAt = Math.min(askedAt + grant.lifeMs, issuedAt + LONGEST_LIFE_MS);
    if (endsAt <= now) {
      this.#spentUntil = now + SHORTEST_LIFE_MS;
      throw spentToken();
    }
    const token = { text: grant.text, scopes: grant.scopes, issuedAt, endsAt };
    const early = askedAt + (endsAt - askedAt) * (RENEW_AT + (random() - 0.5) * RENEW_JITTER);
    this.#renewAt = Math.max(early, now + SHORTEST_LIFE_MS);
    this.#grantedAt = now;
    this.#current = token;
    this.#last = token;
    return token;
  }

  #enter(state: AuthState): void {
    if (state === this.#state) return;
    const before = this.#state;
    this.#state = state;
    this.#options.stateChanged(this.#audience, state, before);
  }
}

function spentToken(): Failure {
  return authMalformed("is a token whose time is over");
}

function stateAfter(error: unknown): AuthState {
  if (!(error instanceof Failure)) return "auth_unreachable";
  if (error.code === "auth_malformed") return "auth_malformed";
  return error.family === "operator" ? "credentials_rejected" : "auth_unreachable";
}
