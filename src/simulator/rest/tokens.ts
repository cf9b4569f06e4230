import { hashNumbers } from "../market/hash.ts";
import type { Quirks } from "../market/quirks.ts";
import { HttpError, validationError } from "./errors.ts";

export const allScopes = [
  "read:exchange-ticker",
  "read:index-ticker",
  "read:ohlcv",
  "read:market-cap",
  "read:LX",
  "read:derivatives",
] as const;

type TokenAudience = "rest" | "websocket";

interface IssuedToken {
  readonly token: string;
  readonly audience: TokenAudience;
  readonly expiresAt: number;
  readonly scopes: ReadonlySet<string>;
}

interface TokenSettings {
  clientId: string;
  clientSecret: string;
  scopes: readonly string[];
  tokenSeconds: number;
}

/** Issues and validates access tokens. */
export class Tokens {
  /** Changes apply to later tokens. */
  readonly settings: TokenSettings;
  readonly #seed: number;
  readonly #quirks: Quirks;
  readonly #audiences: () => Readonly<Record<TokenAudience, string>>;
  #issued = new Map<string, IssuedToken>();
  #count = 0;

  constructor(
    seed: number,
    quirks: Quirks,
    settings: TokenSettings,
    audiences: () => Readonly<Record<TokenAudience, string>>,
  ) {
    this.#seed = seed;
    this.#quirks = quirks;
    this.settings = settings;
    this.#audiences = audiences;
  }

  /** Handles POST /oauth/token: returns the response as JSON. */
  handleTokenRequest(contentType: string, body: string, nowMs: number): string {
    if (!/^application\/json\b/i.test(contentType))
      throw new HttpError(400, "The body must be application/json");
    const { grant_type, client_id, client_secret, audience } = parseTokenRequest(body);
    if (grant_type !== "client_credentials")
      throw validationError("TokenRequest", "grant_type", grant_type ?? "", "must be client_credentials");
    if (client_id !== this.settings.clientId || client_secret !== this.settings.clientSecret)
      throw new HttpError(401, "Client credentials are not valid");
    return JSON.stringify(this.#issueToken(audience ?? "", nowMs));
  }

  #issueToken(audience: string, nowMs: number) {
    const addresses = this.#audiences();
    const target = (["rest", "websocket"] as const).find((one) => addresses[one] === audience);
    if (!target)
      throw validationError(
        "TokenRequest",
        "audience",
        audience,
        "must be the REST or the websocket address",
      );
    const issued = this.#createToken(target, nowMs);
    return {
      access_token: issued.token,
      scope: [...issued.scopes].join(" "),
      expires_in: Math.floor((issued.expiresAt - nowMs) / 1000),
      token_type: "Bearer",
    };
  }

  /** The scopes of a token; undefined when it is unknown, expired, revoked or for the other audience. */
  scopesOf(token: string, audience: TokenAudience, nowMs: number): ReadonlySet<string> | undefined {
    const issued = this.#issued.get(token);
    if (!issued || issued.audience !== audience || issued.expiresAt <= nowMs) return undefined;
    return issued.scopes;
  }

  /** What the client must not store: its secret and the newest token of each audience. */
  get secrets(): readonly string[] {
    const newest = new Map([...this.#issued.values()].map(({ audience, token }) => [audience, token]));
    return [this.settings.clientSecret, ...newest.values()];
  }

  revoke(token: string): void {
    this.#issued.delete(token);
  }

  revokeAll(): void {
    this.#issued.clear();
  }

  #createToken(audience: TokenAudience, nowMs: number): IssuedToken {
    for (const [token, issued] of this.#issued) if (issued.expiresAt <= nowMs) this.#issued.delete(token);
    const issued: IssuedToken = {
      token: this.#createTokenText(this.#count++),
      audience,
      expiresAt: nowMs + this.settings.tokenSeconds * 1000,
      scopes: new Set(this.settings.scopes),
    };
    this.#issued.set(issued.token, issued);
    return issued;
  }

  #createTokenText(count: number): string {
    const words = Array.from({ length: 12 }, (_, word) => hashNumbers(this.#seed, 71, count, word));
    const bytes = Buffer.from(Uint32Array.from(words).buffer);
    if (this.#quirks.awkwardTokens) return `+/${bytes.toString("base64")}=&a=`;
    const text = bytes.toString("base64url");
    return `${text.slice(0, 12)}.${text.slice(12, 44)}.${text.slice(44)}`;
  }
}

function parseTokenRequest(body: string): Record<string, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    throw new HttpError(400, "The body is not JSON");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new HttpError(400, "The body is not a JSON object");
  return Object.fromEntries(
    Object.entries(parsed).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
