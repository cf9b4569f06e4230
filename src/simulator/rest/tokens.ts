import { hashOf } from "../market/hash.ts";
import type { Quirks } from "../market/quirks.ts";
import { Refusal } from "./errors.ts";

export const allScopes = [
  "read:exchange-ticker",
  "read:index-ticker",
  "read:ohlcv",
  "read:market-cap",
  "read:LX",
  "read:derivatives",
] as const;

export type Audience = "rest" | "websocket";

interface Issued {
  readonly token: string;
  readonly audience: Audience;
  readonly expiresAt: number;
  readonly scopes: ReadonlySet<string>;
}

export interface TokenGrant {
  readonly access_token: string;
  readonly scope: string;
  readonly expires_in: number;
  readonly token_type: string;
}

/** In what a token may differ from the usual one. */
export interface TokenExceptions {
  readonly lifeSeconds?: number;
  readonly withoutScope?: string;
  readonly awkward?: boolean;
}

export interface TokenTerms {
  clientId: string;
  clientSecret: string;
  scopes: readonly string[];
  tokenSeconds: number;
}

/** Issues access tokens and knows which of them are good. */
export class Tokens {
  readonly terms: TokenTerms;
  readonly #seed: number;
  readonly #quirks: Quirks;
  readonly #audiences: () => Readonly<Record<Audience, string>>;
  #issued = new Map<string, Issued>();
  #count = 0;

  constructor(
    seed: number,
    quirks: Quirks,
    terms: TokenTerms,
    audiences: () => Readonly<Record<Audience, string>>,
  ) {
    this.#seed = seed;
    this.#quirks = quirks;
    this.terms = terms;
    this.#audiences = audiences;
  }

  /** The token endpoint: a JSON body in, the token response out. */
  issue(contentType: string, body: string, nowMs: number): string {
    if (!/^application\/json\b/i.test(contentType))
      throw new Refusal(400, "The body must be application/json");
    const { grant_type, client_id, client_secret, audience } = readFields(body);
    if (grant_type !== "client_credentials")
      throw invalid("grant_type", grant_type, "must be client_credentials");
    if (client_id !== this.terms.clientId || client_secret !== this.terms.clientSecret)
      throw new Refusal(401, "Client credentials are not valid");
    return JSON.stringify(this.grant(audience ?? "", nowMs));
  }

  /** A token response, but for what is named: for the endpoint, and for faults that want a strange one. */
  grant(audience: string, nowMs: number, but: TokenExceptions = {}): TokenGrant {
    const addresses = this.#audiences();
    const target = (["rest", "websocket"] as const).find((one) => addresses[one] === audience);
    if (!target) throw invalid("audience", audience, "must be the REST or the websocket address");
    const issued = this.#issue(target, nowMs, but);
    return {
      access_token: issued.token,
      scope: [...issued.scopes].join(" "),
      expires_in: Math.floor((issued.expiresAt - nowMs) / 1000),
      token_type: "Bearer",
    };
  }

  /** The scopes of a good token for this audience; undefined when it is unknown, expired, revoked or for the other one. */
  scopesOf(token: string, audience: Audience, nowMs: number): ReadonlySet<string> | undefined {
    const issued = this.#issued.get(token);
    if (!issued || issued.audience !== audience || issued.expiresAt <= nowMs) return undefined;
    return issued.scopes;
  }

  revoke(token: string): void {
    this.#issued.delete(token);
  }

  revokeAll(): void {
    this.#issued.clear();
  }

  #issue(audience: Audience, nowMs: number, but: TokenExceptions): Issued {
    for (const [token, issued] of this.#issued) if (issued.expiresAt <= nowMs) this.#issued.delete(token);
    if (this.#quirks.tokenReissue === "same")
      for (const issued of this.#issued.values()) if (issued.audience === audience) return issued;
    const issued: Issued = {
      token: this.#tokenText(this.#count++, but.awkward ?? this.#quirks.awkwardTokens),
      audience,
      expiresAt: nowMs + (but.lifeSeconds ?? this.terms.tokenSeconds) * 1000,
      scopes: new Set(this.terms.scopes.filter((scope) => scope !== but.withoutScope)),
    };
    this.#issued.set(issued.token, issued);
    return issued;
  }

  #tokenText(count: number, awkward: boolean): string {
    const words = Array.from({ length: 12 }, (_, word) => hashOf(this.#seed, 71, count, word));
    const bytes = Buffer.from(Uint32Array.from(words).buffer);
    if (awkward) return `+/${bytes.toString("base64")}=&a=`;
    const text = bytes.toString("base64url");
    return `${text.slice(0, 12)}.${text.slice(12, 44)}.${text.slice(44)}`;
  }
}

function readFields(body: string): Record<string, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    throw new Refusal(400, "The body is not JSON");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new Refusal(400, "The body is not a JSON object");
  return Object.fromEntries(
    Object.entries(parsed).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

function invalid(field: string, value: string | undefined, message: string): Refusal {
  return new Refusal(400, "Validation error", [
    { object: "TokenRequest", field, rejectedValue: value ?? "", message },
  ]);
}
