import { createHash, randomBytes } from "node:crypto";
import { serviceScopes } from "../model/streams.ts";
import type { Clock } from "../runtime/clock.ts";
import { matchesSecretHash, readSecretHash, unmatchableHash } from "./client-secrets.ts";
import { FairQueue } from "./fair-queue.ts";
import { type ParamError, ServeError } from "./rest/serve-error.ts";

/** A client that may request tokens. */
export interface ServeClient {
  readonly id: string;
  readonly secretHashFile: string;
  readonly scopes: readonly string[];
}

export type Audience = "rest" | "websocket";

/** Who sent a request, and what it may read. */
export interface Caller {
  readonly clientId: string;
  readonly scopes: ReadonlySet<string>;
}

interface IssuedToken extends Caller {
  readonly audience: Audience;
  /** On the wall clock, in ms. */
  readonly expiresAt: number;
}

interface ServeTokensOptions {
  /** None: every request is allowed, with or without a token. */
  readonly clients: readonly ServeClient[];
  readonly clock: Pick<Clock, "now">;
  /** Which audience an address names; undefined: none of ours. */
  readonly findAudience: (address: string, host: string | undefined) => Audience | undefined;
}

const TOKEN_SECONDS = 86_400;
const MAX_TOKENS = 10_000;
/** Each check of a secret takes 50 ms of CPU: a flood of guesses must not occupy the machine. */
const MAX_CHECKS = 2;
const MAX_WAITING_CHECKS = 8;

const anonymous: Caller = { clientId: "", scopes: new Set<string>(serviceScopes) };

/** Issues and checks access tokens. They live in memory, as hashes: a restart ends them, and clients request new ones. */
export class ServeTokens {
  readonly #options: ServeTokensOptions;
  readonly #tokens = new Map<string, IssuedToken>();
  /** Compared if the client is unknown, so that the time of the answer does not tell. */
  readonly #unknownHash = unmatchableHash();
  readonly #checks = new FairQueue({ maxRunning: MAX_CHECKS, maxWaiting: MAX_WAITING_CHECKS });

  constructor(options: ServeTokensOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#options.clients.length === 0;
  }

  /** The body of the answer to a token request. Throws a ServeError. */
  async issue({ contentType, body, host, address }: TokenHttpRequest): Promise<string> {
    const { clock } = this.#options;
    const request = parseTokenRequest(contentType, body);
    const audience = this.#options.findAudience(request.audience, host);
    if (audience === undefined)
      throw new ServeError(400, "Validation error", {
        errors: [tokenError("audience", request.audience, "is neither the REST nor the websocket address")],
      });
    const caller = this.isOpen ? anonymous : await this.#authenticate(request, address);
    const token = randomBytes(32).toString("base64url");
    this.#store(token, { ...caller, audience, expiresAt: clock.now() + TOKEN_SECONDS * 1000 });
    const scope = serviceScopes.filter((name) => caller.scopes.has(name)).join(" ");
    return JSON.stringify({
      access_token: token,
      scope,
      expires_in: TOKEN_SECONDS,
      token_type: "Bearer",
    });
  }

  /** The caller that a token belongs to. Throws 401 if it is not valid for the audience. */
  identify(token: string | undefined, audience: Audience): Caller {
    if (this.isOpen) return anonymous;
    const issued = token === undefined ? undefined : this.#tokens.get(digest(token));
    if (!issued || issued.audience !== audience || issued.expiresAt <= this.#options.clock.now())
      throw new ServeError(401, "No valid access token was given");
    return issued;
  }

  async #authenticate(request: TokenRequest, address: string): Promise<Caller> {
    const client = this.#options.clients.find(({ id }) => id === request.clientId);
    const check = async () => {
      const hash = client ? await readSecretHash(client.secretHashFile) : this.#unknownHash;
      return matchesSecretHash(request.clientSecret, hash);
    };
    // Guesses at one client, or from one address, delay only themselves.
    const isRight = await this.#checks.run([address, client?.id ?? ""], check);
    if (isRight === undefined)
      throw new ServeError(429, "Too many token requests at once", { headers: { "retry-after": "1" } });
    if (!client || !isRight) throw new ServeError(401, "The client id or the client secret is wrong");
    return { clientId: client.id, scopes: new Set(client.scopes) };
  }

  #store(token: string, issued: IssuedToken): void {
    const now = this.#options.clock.now();
    if (this.#tokens.size >= MAX_TOKENS)
      for (const [key, { expiresAt }] of this.#tokens) if (expiresAt <= now) this.#tokens.delete(key);
    const [oldest] = this.#tokens.keys();
    if (this.#tokens.size >= MAX_TOKENS && oldest !== undefined) this.#tokens.delete(oldest);
    this.#tokens.set(digest(token), issued);
  }
}

function digest(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}

interface TokenHttpRequest {
  readonly contentType: string;
  readonly body: string;
  readonly host: string | undefined;
  readonly address: string;
}

interface TokenRequest {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly audience: string;
}

function tokenError(field: string, rejectedValue: string, message: string): ParamError {
  return { object: "token", field, rejectedValue, message };
}

function parseTokenRequest(contentType: string, body: string): TokenRequest {
  if (!/^application\/json\b/i.test(contentType)) throw new ServeError(400, "The body must be JSON");
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(body) as Record<string, unknown>;
  } catch {
    throw new ServeError(400, "The body is not JSON");
  }
  if (typeof fields !== "object" || fields === null) throw new ServeError(400, "The body is no JSON object");
  const errors: ParamError[] = [];
  const text = (field: string) => {
    const value = fields[field];
    if (typeof value === "string" && value !== "") return value;
    errors.push(tokenError(field, "", "must be a text"));
    return "";
  };
  const grantType = text("grant_type");
  if (grantType !== "" && grantType !== "client_credentials")
    errors.push(tokenError("grant_type", grantType, "must be client_credentials"));
  const request = {
    clientId: text("client_id"),
    clientSecret: text("client_secret"),
    audience: text("audience"),
  };
  if (errors.length > 0) throw new ServeError(400, "Validation error", { errors });
  return request;
}
