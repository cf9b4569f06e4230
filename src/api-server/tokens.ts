import { createHash } from "node:crypto";
import { serviceScopes } from "../model/streams.ts";
import { ApiError, type FieldError } from "./api-error.ts";

export type TokenAudience = "rest" | "websocket";

/** Who sent a request, and what it may read. */
export interface Caller {
  readonly clientId: string;
  readonly scopes: ReadonlySet<string>;
}

/** Who may have tokens. */
export interface Access {
  /** There are no clients: every request is allowed, with or without a token. */
  readonly isOpen: boolean;
  /** False also for an unknown client. `address`: where the request comes from. May throw an ApiError. */
  isSecretOf(clientId: string, secret: string, address: string): boolean | Promise<boolean>;
  /** What a client with the right secret gets. */
  grantOf(clientId: string): { readonly scopes: readonly string[]; readonly seconds: number };
  createToken(audience: TokenAudience): string;
}

/** A token request whose secret was right. */
interface VerifiedRequest {
  readonly clientId: string;
  readonly audience: TokenAudience;
}

interface IssuedToken extends Caller {
  readonly audience: TokenAudience;
  /** On the wall clock, in ms. */
  readonly expiresAt: number;
}

interface TokenHttpRequest {
  readonly contentType: string;
  readonly body: string;
  readonly address: string;
  /** Which audience an address names; undefined: none of ours. */
  readonly findAudience: (address: string) => TokenAudience | undefined;
}

/** Beyond this, a client loses its oldest one. */
const MAX_TOKENS_PER_CLIENT = 1_000;

const anonymous: Caller = { clientId: "", scopes: new Set<string>(serviceScopes) };

/** Issues and checks access tokens. They live in memory, as hashes: a restart ends them, and clients request new ones. */
export class Tokens {
  readonly #access: Access;
  readonly #tokens = new Map<string, IssuedToken>();

  constructor(access: Access) {
    this.#access = access;
  }

  get isOpen(): boolean {
    return this.#access.isOpen;
  }

  /** Checks a token request. Throws an ApiError. */
  async verify(request: TokenHttpRequest): Promise<VerifiedRequest> {
    const { clientId, clientSecret, audience: address } = parseTokenRequest(request);
    const audience = request.findAudience(address);
    if (audience === undefined)
      throw invalid([
        tokenError("audience", address, "is neither the REST address nor that of the websocket"),
      ]);
    const isRight = this.isOpen || (await this.#access.isSecretOf(clientId, clientSecret, request.address));
    if (!isRight) throw new ApiError(401, "The client id or the client secret is wrong");
    return { clientId, audience };
  }

  /** The body of the answer to a token request. */
  issue({ clientId, audience }: VerifiedRequest, nowMs: number): string {
    const { scopes, seconds } = this.#access.grantOf(clientId);
    const token = this.#access.createToken(audience);
    const issued = { clientId, scopes: new Set(scopes), audience, expiresAt: nowMs + seconds * 1000 };
    if (!this.isOpen) this.#store(token, issued, nowMs);
    return JSON.stringify({
      access_token: token,
      scope: scopes.join(" "),
      expires_in: seconds,
      token_type: "Bearer",
    });
  }

  /** The caller that a token belongs to. Throws 401 if it is not valid for the audience. */
  identify(token: string | undefined, audience: TokenAudience, nowMs: number): Caller {
    if (this.isOpen) return anonymous;
    const issued = token === undefined ? undefined : this.#tokens.get(digest(token));
    if (!issued || issued.audience !== audience || issued.expiresAt <= nowMs)
      throw new ApiError(401, "No valid access token was given");
    return issued;
  }

  revoke(token: string): void {
    this.#tokens.delete(digest(token));
  }

  revokeAll(): void {
    this.#tokens.clear();
  }

  #store(token: string, issued: IssuedToken, nowMs: number): void {
    const own: string[] = [];
    for (const [key, { clientId, expiresAt }] of this.#tokens)
      if (expiresAt <= nowMs) this.#tokens.delete(key);
      else if (clientId === issued.clientId) own.push(key);
    for (const key of own.slice(0, -MAX_TOKENS_PER_CLIENT + 1)) this.#tokens.delete(key);
    this.#tokens.set(digest(token), issued);
  }
}

function digest(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}

function tokenError(field: string, rejectedValue: string, message: string): FieldError {
  return { object: "token", field, rejectedValue, message };
}

const invalid = (errors: readonly FieldError[]) => new ApiError(400, "Validation error", { errors });

function parseTokenRequest({ contentType, body }: TokenHttpRequest) {
  if (!/^application\/json\b/i.test(contentType)) throw new ApiError(400, "The body must be JSON");
  const fields = parseJsonObject(body);
  if (!fields) throw new ApiError(400, "The body is no JSON object");
  const errors: FieldError[] = [];
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
  if (errors.length > 0) throw invalid(errors);
  return request;
}

/** Undefined when the text is no JSON object. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
    return isObject ? (parsed as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
