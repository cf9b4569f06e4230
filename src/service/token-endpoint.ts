import { exitCode, Failure } from "../model/failure.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { HostGate } from "./host-gate.ts";
import type { Observe } from "./observation.ts";
import { credentialsRejected, type Grant, readGrant } from "./token-grant.ts";
import type { Answer, Transport } from "./transport.ts";

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
