import type { PlainResponse } from "../rest/http-types.ts";
import type { TokenOverrides, Tokens } from "../rest/tokens.ts";
import { plainErrorResponse, plainJsonResponse } from "./body-faults.ts";
import type { TriggeredFault } from "./script.ts";

/** The part of Tokens that the faults need. */
export type TokenIssuer = Pick<Tokens, "issueToken" | "revoke">;

/** Faults of the token endpoint, and tokens that stop working. */
export class TokenFaults {
  readonly #issuer: TokenIssuer;
  readonly #issued = new Map<string, { token: object; expiresAtMs: number }>();

  constructor(issuer: TokenIssuer) {
    this.#issuer = issuer;
  }

  /** Applies a token fault; undefined for any other fault. */
  apply(
    { line }: TriggeredFault,
    body: string,
    authorization: string | undefined,
    nowMs: number,
    response: PlainResponse,
  ) {
    if (line.definition.group !== "tokens") return undefined;
    const name = line.definition.name;
    if (name === "revoke") {
      this.#issuer.revoke(authorization?.replace(/^Bearer /, "") ?? "");
      return plainErrorResponse(401, "the token has been revoked", nowMs);
    }
    // The other faults change a token that was issued; they do not turn an error into a token.
    const audience = readAudience(body);
    if (response.status !== 200 || audience === "") return undefined;
    const issue = (overrides: TokenOverrides) =>
      tokenResponse(this.#issuer.issueToken(audience, nowMs, overrides), nowMs);
    if (name === "token-life") return issue({ lifetimeSeconds: Math.round(line.numberOf("life") / 1000) });
    if (name === "odd-token") return issue({ hasUrlUnsafeCharacters: true });
    if (name === "scope-without") return issue({ withoutScope: line.textOf("scope") });
    if (name === "same-token") {
      const previous = this.#issued.get(audience);
      return (
        previous &&
        tokenResponse(
          { ...previous.token, expires_in: Math.floor((previous.expiresAtMs - nowMs) / 1000) },
          nowMs,
        )
      );
    }
    const token: Record<string, unknown> = JSON.parse(Buffer.from(response.body).toString());
    if (name === "scope-form") {
      const scope = line.textOf("is") === "upper" ? String(token.scope).toUpperCase() : "market-data:all";
      return tokenResponse({ ...token, scope }, nowMs);
    }
    const expiresIn = line.textOf("said");
    if (expiresIn === "missing") delete token.expires_in;
    else token.expires_in = expiresIn === "string" ? String(token.expires_in) : Number(expiresIn);
    return tokenResponse(token, nowMs);
  }

  recordResponse(body: string, nowMs: number, response: PlainResponse): void {
    if (response.status !== 200) return;
    const token = parseProperties(Buffer.from(response.body).toString());
    const seconds = Number(token.get("expires_in"));
    if (!token.has("access_token") || !Number.isFinite(seconds)) return;
    this.#issued.set(readAudience(body), {
      token: Object.fromEntries(token),
      expiresAtMs: nowMs + seconds * 1000,
    });
  }
}

export function readAudience(body: string): string {
  return parseProperties(body).get("audience") ?? "";
}

const tokenResponse = (token: object, nowMs: number) => plainJsonResponse(200, JSON.stringify(token), nowMs);

/** The properties of a JSON object as strings; empty when the text is not an object. */
function parseProperties(text: string): Map<string, string> {
  try {
    const json: unknown = JSON.parse(text);
    return new Map(Object.entries(json ?? {}).map(([name, value]) => [name, String(value)]));
  } catch {
    return new Map();
  }
}
