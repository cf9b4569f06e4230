import type { PlainResponse } from "../rest/http-types.ts";
import type { TokenOverrides, Tokens } from "../rest/tokens.ts";
import { plainErrorResponse, plainJsonResponse } from "./body-faults.ts";
import type { TriggeredFault } from "./script.ts";

/** What the faults may ask of the place that issues tokens. */
export type TokenIssuer = Pick<Tokens, "issueToken" | "revoke">;

/** Faults of the token endpoint, and tokens that stop working. */
export class TokenFaults {
  readonly #issuer: TokenIssuer;
  readonly #issued = new Map<string, { grant: object; endsAt: number }>();

  constructor(desk: TokenIssuer) {
    this.#issuer = desk;
  }

  /** The answer as this strike wants it, or undefined when its word concerns no token. */
  apply(
    { line }: TriggeredFault,
    body: string,
    authorization: string | undefined,
    now: number,
    answer: PlainResponse,
  ) {
    if (line.definition.group !== "tokens") return undefined;
    const word = line.definition.name;
    if (word === "revoke") {
      this.#issuer.revoke(authorization?.replace(/^Bearer /, "") ?? "");
      return plainErrorResponse(401, "the token has been revoked", now);
    }
    // Only a token that would have been granted can be a strange one.
    const audience = readAudience(body);
    if (answer.status !== 200 || audience === "") return undefined;
    const issue = (but: TokenOverrides) => tokenResponse(this.#issuer.issueToken(audience, now, but), now);
    if (word === "token-life") return issue({ lifetimeSeconds: Math.round(line.numberOf("life") / 1000) });
    if (word === "odd-token") return issue({ hasUrlUnsafeCharacters: true });
    if (word === "scope-without") return issue({ withoutScope: line.textOf("scope") });
    if (word === "same-token") {
      const before = this.#issued.get(audience);
      return (
        before &&
        tokenResponse({ ...before.grant, expires_in: Math.floor((before.endsAt - now) / 1000) }, now)
      );
    }
    const grant: Record<string, unknown> = JSON.parse(Buffer.from(answer.body).toString());
    const said = line.textOf("said");
    if (said === "missing") delete grant.expires_in;
    else grant.expires_in = said === "string" ? String(grant.expires_in) : Number(said);
    return tokenResponse(grant, now);
  }

  recordResponse(body: string, now: number, answer: PlainResponse): void {
    if (answer.status !== 200) return;
    const grant = parseProperties(Buffer.from(answer.body).toString());
    const seconds = Number(grant.get("expires_in"));
    if (!grant.has("access_token") || !Number.isFinite(seconds)) return;
    this.#issued.set(readAudience(body), {
      grant: Object.fromEntries(grant),
      endsAt: now + seconds * 1000,
    });
  }
}

export function readAudience(body: string): string {
  return parseProperties(body).get("audience") ?? "";
}

const tokenResponse = (grant: object, now: number) => plainJsonResponse(200, JSON.stringify(grant), now);

/** A JSON object's properties as text; none when it is no object. */
function parseProperties(text: string): Map<string, string> {
  try {
    const json: unknown = JSON.parse(text);
    return new Map(Object.entries(json ?? {}).map(([name, value]) => [name, String(value)]));
  } catch {
    return new Map();
  }
}
