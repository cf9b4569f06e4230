import { exitCode, Failure } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { Random } from "../../runtime/backoff.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { HostGate } from "../http/circuit-breaker.ts";
import type { Observe } from "../http/events.ts";
import type { Answer, Transport } from "../http/transport.ts";

export interface TokenEndpointOptions {
  readonly transport: Transport;
  readonly gate: HostGate;
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
  readonly authUrl: URL;
  readonly clientId: string;
  readonly readSecret: () => Promise<string>;
  /** Told of every secret text before it is first used, so that it can be kept out of what is written. */
  readonly conceal: (text: string) => void;
}

const DEADLINE_MS = 30_000;
const PATIENCE_MS = 15 * 60_000;
/** Wrong credentials do not become right by asking often. */
const PROBE_REJECTED_MS = 300_000;

/** The one place where the client secret leaves the process. */
export function createTokenEndpoint(options: TokenEndpointOptions): (audience: string) => Promise<Grant> {
  const { transport, gate, clock, random, authUrl } = options;
  /** What was refused last, and until when the same secret is not shown again. */
  const refused = new Map<string, { secret: string; until: number; failure: Failure }>();

  async function readSecret(): Promise<string> {
    try {
      const secret = (await options.readSecret()).trim();
      if (secret !== "") {
        options.conceal(secret);
        return secret;
      }
    } catch (error) {
      if (error instanceof Failure) throw error;
    }
    throw new Failure("the client secret cannot be read, or is empty", {
      family: "operator",
      code: "secret_unreadable",
      remedy: "check the secret's file and its permissions, or the environment",
      exit: exitCode.credentials,
    });
  }

  async function ask(audience: string, secret: string): Promise<Answer> {
    return transport.send({
      method: "POST",
      origin: authUrl.origin,
      path: `${authUrl.pathname.replace(/\/+$/, "")}/v3/oauth/token`,
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({
        grant_type: "client_credentials",
        client_id: options.clientId,
        client_secret: secret,
        audience,
      }),
      deadlineMs: DEADLINE_MS,
    });
  }

  async function attempt(audience: string, secret: string): Promise<Grant> {
    const until = clock.monotonic() + PATIENCE_MS;
    let pass = gate.tryEnter();
    while (!pass) {
      if (!(await gate.passable(until, undefined))) throw unreachable();
      pass = gate.tryEnter();
    }
    const begun = clock.monotonic();
    let answer: Answer | undefined;
    let outcome = "ok";
    try {
      answer = await ask(audience, secret);
      const failure = failureOf(answer);
      if (failure) throw failure;
      const grant = readGrant(answer);
      options.conceal(grant.text);
      pass.succeeded();
      return grant;
    } catch (error) {
      outcome = error instanceof Failure ? error.code : "unexpected";
      if (error instanceof Failure && error.family === "retry") pass.failed(answer?.retryAfterMs ?? 0);
      else pass.succeeded();
      throw error;
    } finally {
      options.observe({
        kind: "request",
        endpoint: "/oauth/token",
        status: answer?.status,
        outcome,
        ms: clock.monotonic() - begun,
        bytes: answer?.body.bytes.byteLength ?? 0,
        attempt: 1,
        stale: false,
      });
    }
  }

  return async function grant(audience) {
    const secret = await readSecret();
    const before = refused.get(audience);
    if (before && before.secret === secret && clock.boottime() < before.until) throw before.failure;
    try {
      const granted = await attempt(audience, secret);
      refused.delete(audience);
      return granted;
    } catch (error) {
      if (!(error instanceof Failure) || error.family !== "operator") throw error;
      // The secret may have been rotated while the request was under way.
      const rotated = await readSecret();
      if (rotated !== secret && before?.secret !== rotated) return attempt(audience, rotated);
      const until = clock.boottime() + PROBE_REJECTED_MS * (1 + random() / 5);
      refused.set(audience, { secret, until, failure: error });
      throw error;
    }
  };
}

function failureOf({ status }: Answer): Failure | undefined {
  if (status === 200) return undefined;
  if (status >= 300 && status < 400) {
    return new Failure(
      `the token endpoint redirects (${status}), and a redirect would carry the secret away`,
      {
        family: "operator",
        code: "redirect_refused",
        remedy: "set service.authUrl to the address that really answers",
        exit: exitCode.credentials,
      },
    );
  }
  if (status === 429 || status >= 500 || status === 408 || status === 425 || status < 300) {
    return new Failure(`the token endpoint answered ${status}`, {
      family: "retry",
      code: "auth_unreachable",
    });
  }
  return credentialsRejected(status);
}

function unreachable(): Failure {
  return new Failure("the token endpoint has not answered for a long time", {
    family: "retry",
    code: "auth_unreachable",
    remedy: "check the network and service.authUrl",
  });
}

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
