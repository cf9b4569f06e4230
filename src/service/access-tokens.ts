import { Failure } from "../model/failure.ts";
import { abortable } from "../runtime/abortable.ts";
import { backoffDelay } from "../runtime/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { Random } from "../runtime/random.ts";
import { singleFlight } from "../runtime/single-flight.ts";
import type { AuthState } from "./observation.ts";
import { authFailed, authMalformed, type Grant, LONGEST_LIFE_MS, SHORTEST_LIFE_MS } from "./token-grant.ts";

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
  /** The service took this token: ends a row of refusals. */
  accepted(audience: string, token: AccessToken): void;
  /** A new token although the old one lives: new scopes come only with a new one. */
  renew(audience: string, signal?: AbortSignal): Promise<AccessToken>;
  state(audience: string): AuthState;
}

export interface AccessTokensOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Asks the token endpoint once. Rejects with a Failure: `operator` if it refused, else `retry`. */
  readonly grant: (audience: string) => Promise<Grant>;
  readonly stateChanged: (audience: string, state: AuthState) => void;
}

/** About four hours and a half of a day's token are left when it is first renewed: an outage shorter than that goes by unseen. */
const RENEW_AT = 0.8;
const RENEW_JITTER = 0.04;
const RENEWAL_PAUSE = { least: SHORTEST_LIFE_MS, most: 300_000 };
/** A token that worked for this long and is refused then had simply ended. */
const PROVEN_AFTER_MS = 600_000;
const PROBE = { baseMs: 60_000, capMs: 1_800_000 };

export function createAccessTokens(options: AccessTokensOptions): AccessTokens {
  const audiences = new Map<string, AudienceTokens>();
  const of = (audience: string) => {
    const known = audiences.get(audience) ?? new AudienceTokens(audience, options);
    audiences.set(audience, known);
    return known;
  };
  return {
    get: (audience, signal) => of(audience).get(signal),
    refused: (audience, token) => of(audience).refused(token),
    accepted: (audience, token) => of(audience).accepted(token),
    renew: (audience, signal) => of(audience).renew(signal),
    state: (audience) => of(audience).state,
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
      this.#probeAt = now + this.#probeDelay();
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
    const { clock, log } = this.#options;
    this.#current = undefined;
    if (clock.boottime() - this.#grantedAt >= PROVEN_AFTER_MS) this.#refusals = 0;
    this.#refusals++;
    log.warn({ audience: this.#audience, refusals: this.#refusals }, "access token refused by the service");
    if (this.#refusals < 2) return;
    this.#probeAt = clock.boottime() + this.#probeDelay();
    this.#enter("auth_failed");
  }

  accepted(token: AccessToken): void {
    if (token !== this.#current) return;
    this.#refusals = 0;
    if (this.#state === "auth_failed") this.#enter("ok");
  }

  /** At least a minute, doubling to half an hour, and never the same for two. */
  #probeDelay(): number {
    const doubled = Math.min(PROBE.capMs, PROBE.baseMs * 2 ** Math.max(0, this.#refusals - 2));
    return doubled * (1 + this.#options.random() / 5);
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
    this.#state = state;
    this.#options.stateChanged(this.#audience, state);
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
