import { streamOfEndpoint, streamTable } from "../../model/streams.ts";
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

/** The scope that the service names for an endpoint. The lookups' are not known. */
function ownScope(endpoint: string): string | undefined {
  const stream = streamOfEndpoint(endpoint);
  return stream === undefined ? undefined : (streamTable[stream].scope ?? undefined);
}

/**
 * The scope without which a request is not worth sending; undefined where a 403 has to tell. `read:LX` grants ticks and bars of
 * the liquid indices: whether the endpoint's own scope is wanted beside it is not said.
 */
export function scopeOf({ endpoint, query }: Ask): string | undefined {
  return query?.indexType === "LX" ? "read:LX" : ownScope(endpoint);
}

/** Which scope a 403 is likely to be about, given those that the token is said to carry. */
export function scopeToBlame(ask: Ask, carried: ReadonlySet<string> | undefined): readonly string[] {
  const likely = [scopeOf(ask), ownScope(ask.endpoint)].filter((scope) => scope !== undefined);
  return likely
    .filter((scope) => !carried?.has(scope))
    .concat(likely)
    .slice(0, 1);
}
