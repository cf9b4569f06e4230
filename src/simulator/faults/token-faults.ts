import type { PlainAnswer } from "../rest/http-types.ts";
import type { TokenExceptions, Tokens } from "../rest/tokens.ts";
import { errorAnswer, jsonAnswer } from "./body-faults.ts";
import type { Strike } from "./script.ts";

/** What the faults may ask of the place that issues tokens. */
export type TokenDesk = Pick<Tokens, "grant" | "revoke">;

/** Faults of the token endpoint, and tokens that stop working. */
export class TokenFaults {
  readonly #desk: TokenDesk;
  readonly #granted = new Map<string, { grant: object; endsAt: number }>();

  constructor(desk: TokenDesk) {
    this.#desk = desk;
  }

  /** The answer as this strike wants it, or undefined when its word concerns no token. */
  bend({ line }: Strike, body: string, authorization: string | undefined, now: number, answer: PlainAnswer) {
    if (line.word.group !== "tokens") return undefined;
    const word = line.word.word;
    if (word === "revoke") {
      this.#desk.revoke(authorization?.replace(/^Bearer /, "") ?? "");
      return errorAnswer(401, "the token has been revoked", now);
    }
    // Only a token that would have been granted can be a strange one.
    const audience = audienceOf(body);
    if (answer.status !== 200 || audience === "") return undefined;
    const issue = (but: TokenExceptions) => granted(this.#desk.grant(audience, now, but), now);
    if (word === "token-life") return issue({ lifeSeconds: Math.round(line.numberOf("life") / 1000) });
    if (word === "odd-token") return issue({ awkward: true });
    if (word === "scope-without") return issue({ withoutScope: line.textOf("scope") });
    if (word === "same-token") {
      const before = this.#granted.get(audience);
      return (
        before && granted({ ...before.grant, expires_in: Math.floor((before.endsAt - now) / 1000) }, now)
      );
    }
    const grant: Record<string, unknown> = JSON.parse(Buffer.from(answer.body).toString());
    const said = line.textOf("said");
    if (said === "missing") delete grant.expires_in;
    else grant.expires_in = said === "string" ? String(grant.expires_in) : Number(said);
    return granted(grant, now);
  }

  remember(body: string, now: number, answer: PlainAnswer): void {
    if (answer.status !== 200) return;
    const grant = parsed(Buffer.from(answer.body).toString());
    const seconds = Number(grant.get("expires_in"));
    if (!grant.has("access_token") || !Number.isFinite(seconds)) return;
    this.#granted.set(audienceOf(body), {
      grant: Object.fromEntries(grant),
      endsAt: now + seconds * 1000,
    });
  }
}

export function audienceOf(body: string): string {
  return parsed(body).get("audience") ?? "";
}

const granted = (grant: object, now: number) => jsonAnswer(200, JSON.stringify(grant), now);

/** A JSON object's properties as text; none when it is no object. */
function parsed(text: string): Map<string, string> {
  try {
    const json: unknown = JSON.parse(text);
    return new Map(Object.entries(json ?? {}).map(([name, value]) => [name, String(value)]));
  } catch {
    return new Map();
  }
}
