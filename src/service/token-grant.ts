import { decodeBody } from "../model/body.ts";
import { exitCode, Failure } from "../model/failure.ts";
import type { Random } from "../runtime/random.ts";
import type { Answer } from "./transport.ts";

/** Shorter lives are taken for this long: a service that says 0 must not be asked for a token per request. */
export const SHORTEST_LIFE_MS = 30_000;
/** No token is used longer than this after it was first seen, whatever its answer says. */
export const LONGEST_LIFE_MS = 86_400_000;
/** Where the answer does not say how long: long enough to work with, and a 401 ends it anyway. */
const UNSAID_LIFE_MS = 3_600_000;

export interface Grant {
  readonly text: string;
  readonly scopes: ReadonlySet<string> | undefined;
  readonly lifeMs: number;
}

/** `expires_in` as the time that remains: a number or a text with one; anything else is as if it were not there. */
function lifeOf(expiresIn: unknown): number {
  const seconds =
    typeof expiresIn === "string" && expiresIn.trim() !== "" ? Number(expiresIn) : (expiresIn as number);
  if (typeof seconds !== "number" || Number.isNaN(seconds)) return UNSAID_LIFE_MS;
  return Math.min(LONGEST_LIFE_MS, Math.max(SHORTEST_LIFE_MS, seconds * 1000));
}

/** A token goes into a header and a URL: visible ASCII, or it is none. */
const visible = /^[\x21-\x7e]+$/;

/** Reads a 200 of the token endpoint. The body is never quoted: it holds, or should hold, a secret. */
export function readGrant(answer: Answer): Grant {
  let fields: Record<string, unknown> = {};
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(decodeBody(answer.body, 1024 * 1024)));
    if (typeof parsed === "object" && parsed !== null) fields = parsed as Record<string, unknown>;
  } catch {
    // JSON.parse quotes what it could not read, so its error goes no further.
    throw authMalformed("is not JSON");
  }
  const { access_token: text, scope, expires_in: expiresIn } = fields;
  if (typeof text !== "string" || !visible.test(text)) throw authMalformed("has no access_token");
  const scopes = typeof scope === "string" ? scope.split(/[\s,]+/).filter((each) => each !== "") : [];
  return { text, scopes: scopes.length > 0 ? new Set(scopes) : undefined, lifeMs: lifeOf(expiresIn) };
}

const PROBE = { baseMs: 60_000, capMs: 1_800_000 };

/** How long whoever refuses a token is left alone: at least a minute, doubling to half an hour, and never the same for two. */
export function probeDelay(probes: number, random: Random): number {
  const doubled = Math.min(PROBE.capMs, PROBE.baseMs * 2 ** Math.max(0, probes));
  return doubled * (1 + random() / 5);
}

export function authMalformed(why: string): Failure {
  return new Failure(`the token endpoint's answer ${why}`, {
    family: "retry",
    code: "auth_malformed",
    remedy: "check service.authUrl, and whether a proxy or portal answers in its place",
    exit: exitCode.tryLater,
  });
}

export function credentialsRejected(status: number): Failure {
  return new Failure(`the token endpoint refused the credentials (${status})`, {
    family: "operator",
    code: "credentials_rejected",
    remedy: "check the client id and the secret; a changed secret file is picked up without a restart",
    exit: exitCode.credentials,
  });
}

export function authFailed(): Failure {
  return new Failure("the service refuses the tokens that its token endpoint issues", {
    family: "operator",
    code: "auth_failed",
    remedy: "check that the addresses (the token's audience) and the client belong together",
    exit: exitCode.credentials,
  });
}
