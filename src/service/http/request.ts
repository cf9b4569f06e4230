import { streamOfEndpoint, streamTable } from "../../model/streams.ts";
import { formatToMillisecond, MICROS_PER_MS, parseTimestamp } from "../../model/time.ts";
import { SECOND_MS } from "../limits.ts";

/** The higher priority goes first: docs/decisions/snapshots-first.md. A cross-check says whether the others have a chance. */
export const requestPriority = { crossCheck: 4, snapshot: 3, head: 2, expiring: 1, history: 0 } as const;
export type RequestPriority = (typeof requestPriority)[keyof typeof requestPriority];

export type RequestQuery = Readonly<Record<string, string | number | boolean | undefined>>;

export interface ServiceRequest {
  /** Path template below /v3, for example `/asset/{id}`. Also the metric label, so it must not contain an id. */
  readonly endpoint: string;
  /** Values for the names in braces. */
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: RequestQuery;
  readonly priority?: RequestPriority;
  readonly signal?: AbortSignal | undefined;
  /** A 404 is an expected response, so it does not count as a sign that the path is gone. */
  readonly mayBeMissing?: boolean;
  /** Includes the first attempt. */
  readonly maxAttempts?: number;
}

/** Some services refuse a `timestamp` in the future: nobody asks beyond the service's present. */
export function clampToPresent(request: ServiceRequest, serviceNowMs: number): ServiceRequest {
  const timestamp = request.query?.timestamp;
  const present = Math.floor(serviceNowMs - SECOND_MS) * MICROS_PER_MS;
  const ts = typeof timestamp === "string" ? parseTimestamp(timestamp) : undefined;
  if (ts === undefined || ts <= present) return request;
  return { ...request, query: { ...request.query, timestamp: formatToMillisecond(present) } };
}

/** Identifiers may contain any character. `toWellFormed` replaces lone surrogates, on which encodeURIComponent throws. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Returns path and query string. Omits empty and undefined query parameters; keeps the caller's order. */
export function buildRequestPath(prefix: string, { endpoint, params = {}, query = {} }: ServiceRequest) {
  const path = endpoint.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined || value === "")
      throw new TypeError(`request to ${endpoint} lacks the path parameter ${name}`);
    return percentEncode(value);
  });
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => `${percentEncode(name)}=${percentEncode(String(value))}`);
  return `${prefix}/v3${path}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}

const LX_SCOPE = "read:LX";

/** The scope that the service documents for an endpoint. It documents none for the lookups. */
function endpointScope(endpoint: string): string | undefined {
  const stream = streamOfEndpoint(endpoint);
  return stream === undefined ? undefined : (streamTable[stream].scope ?? undefined);
}

/**
 * Returns the scope that a request needs; undefined if none is documented. `read:LX` grants ticks and bars of the liquid
 * indices; the spec does not say whether they need the endpoint's own scope too.
 */
export function requiredScope({ endpoint, query }: ServiceRequest): string | undefined {
  return query?.indexType === "LX" ? LX_SCOPE : endpointScope(endpoint);
}

/** Access is granted per scope and derivative type: a missing `read:LX` must not park the other indices. */
export function accessKey(request: ServiceRequest): string {
  return `${request.endpoint} ${requiredScope(request) ?? ""} ${request.params?.derivativeType ?? ""}`;
}

/** The path without ids, for messages. */
export function describePath({ endpoint, params }: ServiceRequest): string {
  return endpoint.replace("{derivativeType}", params?.derivativeType ?? "{derivativeType}");
}

/** Returns the scope that a 403 is most likely about: preferably one that the token does not list. */
export function guessMissingScope(request: ServiceRequest, tokenScopes: ReadonlySet<string> | undefined) {
  const candidates = [requiredScope(request), endpointScope(request.endpoint)].filter(
    (scope) => scope !== undefined,
  );
  return candidates
    .filter((scope) => !tokenScopes?.has(scope))
    .concat(candidates)
    .slice(0, 1);
}
