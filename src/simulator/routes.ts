import { respondContract, respondContracts, respondTickers } from "./rest/derivatives.ts";
import { HttpError } from "./rest/errors.ts";
import {
  createJsonResponse,
  type Payload,
  type SimulatorRequest,
  type SimulatorResponse,
} from "./rest/http-types.ts";
import { isLookupResource, respondLookup } from "./rest/lookups.ts";
import { respondMarketCaps } from "./rest/market-caps.ts";
import type { Tokens } from "./rest/tokens.ts";
import type { World } from "./world.ts";

/** Routes a request to its endpoint. Only GET is allowed below /v3, except for the token endpoint. */
export function handleServiceRequest(
  world: World,
  tokens: Tokens,
  request: SimulatorRequest,
): SimulatorResponse {
  const { method, path, nowMs } = request;
  const segments = path.split("/").slice(1).map(decodeSegment);
  if (segments[0] !== "v3") throw new HttpError(404, `No path ${path}`);
  if (path === "/v3/oauth/token") {
    if (method !== "POST") throw new HttpError(405, "Use POST");
    return createJsonResponse(
      200,
      tokens.handleTokenRequest(request.headers["content-type"] ?? "", request.body, nowMs),
    );
  }
  const scopes = requireTokenScopes(tokens, request);
  if (method !== "GET") throw new HttpError(405, "Use GET");
  const content = routeRequest(world, segments.slice(1), request.query, scopes, nowMs);
  if (content === undefined) throw new HttpError(404, `No path ${path}`);
  return createJsonResponse(200, content);
}

function routeRequest(
  world: World,
  segments: readonly string[],
  query: URLSearchParams,
  scopes: ReadonlySet<string>,
  nowMs: number,
): string | Payload | undefined {
  const [resource = "", second, third, fourth] = segments;
  if (isLookupResource(resource) && segments.length <= 2)
    return respondLookup(world, resource, second, query);
  if (resource === "derivatives") {
    requireScope(scopes, "read:derivatives");
    if (second === "contract" && third && fourth && segments.length === 4)
      return respondContract(world, third, fourth, nowMs);
    if (segments.length !== 3 || !third) return undefined;
    if (second === "contract") return respondContracts(world, third, query, nowMs);
    return second === "ticker" ? respondTickers(world, third, query, nowMs) : undefined;
  }
  switch (segments.join("/")) {
    case "exchange-ticker":
      requireScope(scopes, "read:exchange-ticker");
      return world.exchangeTickers.respond(query, nowMs);
    case "index-ticker":
      return world.indexTicks.respond(query, scopes, nowMs);
    case "ohlcv":
      return world.dailyBars.respond(query, scopes, nowMs);
    case "market-cap":
      requireScope(scopes, "read:market-cap");
      return respondMarketCaps(world, query, nowMs);
    default:
      return undefined;
  }
}

function requireScope(scopes: ReadonlySet<string>, scope: string): void {
  if (!scopes.has(scope)) throw new HttpError(403, `The scope ${scope} is missing`);
}

function requireTokenScopes(tokens: Tokens, { headers, nowMs }: SimulatorRequest): ReadonlySet<string> {
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
  const scopes = token === undefined ? undefined : tokens.scopesOf(token, "rest", nowMs);
  if (!scopes) throw new HttpError(401, "No valid access token was given");
  return scopes;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new HttpError(400, "The path is not percent-encoded UTF-8");
  }
}
