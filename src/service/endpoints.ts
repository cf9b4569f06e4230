/** Higher goes first: the head heals, then what is about to leave the window, then history. */
export const priority = { head: 2, expiring: 1, history: 0 } as const;
export type Priority = (typeof priority)[keyof typeof priority];

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** One thing to ask the service for. */
export interface Ask {
  /** The path below /v3 as a template, `/asset/{id}`: what metrics call it, without any id. */
  readonly endpoint: string;
  /** What stands for the names in braces. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Query;
  readonly priority?: Priority;
  readonly signal?: AbortSignal | undefined;
  /** A 404 is one of the answers that are expected: however many say nothing about the path. */
  readonly mayBeMissing?: boolean;
  /** How often it may be tried in all. */
  readonly attempts?: number;
  /** How long it waits, once begun, for a service that does not answer. */
  readonly patienceMs?: number;
}

/** Identifiers are opaque: any character, any length. A lone surrogate, which UTF-8 cannot carry, must not throw. */
export function encodeOpaque(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** The request path, query included. Empty and missing parameters are left out; the order is the caller's. */
export function pathOf(prefix: string, { endpoint, params = {}, query = {} }: Ask): string {
  const path = endpoint.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined || value === "") throw new TypeError(`${endpoint} is asked without its ${name}`);
    return encodeOpaque(value);
  });
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${encodeOpaque(name)}=${encodeOpaque(String(value))}`);
  return `${prefix}/v3${path}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}

/** The scopes that a request needs. The lookups' are not known: a 403 will tell. */
export function scopesOf({ endpoint, query }: Ask): readonly string[] {
  const liquid = query?.indexType === "LX" ? ["read:LX"] : [];
  if (endpoint === "/exchange-ticker") return ["read:exchange-ticker"];
  if (endpoint === "/index-ticker") return ["read:index-ticker", ...liquid];
  if (endpoint === "/ohlcv") return ["read:ohlcv", ...liquid];
  if (endpoint === "/market-cap") return ["read:market-cap"];
  if (endpoint.startsWith("/derivatives/")) return ["read:derivatives"];
  return [];
}
