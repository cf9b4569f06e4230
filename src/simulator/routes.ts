import { Refusal } from "./rest/errors.ts";
import { type HttpAnswer, type HttpQuestion, json, type Payload } from "./rest/http-types.ts";
import type { Tokens } from "./rest/tokens.ts";
import type { World } from "./world.ts";

/** Which part of the service answers which path. Only GET is served below /v3, but for the token. */
export function answerService(world: World, tokens: Tokens, question: HttpQuestion): HttpAnswer {
  const { method, path, at } = question;
  const segments = path.split("/").slice(1).map(decoded);
  if (segments[0] !== "v3") throw new Refusal(404, `No path ${path}`);
  if (path === "/v3/oauth/token") {
    if (method !== "POST") throw new Refusal(405, "Use POST");
    return json(200, tokens.issue(question.headers["content-type"] ?? "", question.body, at));
  }
  const scopes = bearerScopes(tokens, question);
  if (method !== "GET") throw new Refusal(405, "Use GET");
  const content = answerPath(world, segments.slice(1), question.query, scopes, at);
  if (content === undefined) throw new Refusal(404, `No path ${path}`);
  return json(200, content);
}

function answerPath(
  world: World,
  segments: readonly string[],
  query: URLSearchParams,
  scopes: ReadonlySet<string>,
  nowMs: number,
): string | Payload | undefined {
  const [resource, second, third, fourth] = segments;
  const pattern = segments.map((_, at) => (at === 0 || resource === "derivatives" ? "" : "/:id")).join("");
  switch (`${resource}${pattern}`) {
    case "asset":
      return world.lookups.assets(query);
    case "asset/:id":
      return world.lookups.asset(second ?? "");
    case "market":
      return world.lookups.markets(query);
    case "market/:id":
      return world.lookups.market(second ?? "");
    case "exchange":
      return world.lookups.exchanges(query);
    case "exchange/:id":
      return world.lookups.exchange(second ?? "");
    case "exchange-ticker":
      need(scopes, "read:exchange-ticker");
      return world.exchangeTickers.answer(query, nowMs);
    case "index-ticker":
      return world.indexTicks.answer(query, scopes, nowMs);
    case "ohlcv":
      return world.dailyBars.answer(query, scopes, nowMs);
    case "market-cap":
      need(scopes, "read:market-cap");
      return world.marketCaps.answer(query, nowMs);
    case "derivatives":
      need(scopes, "read:derivatives");
      if (second === "contract" && third && fourth && segments.length === 4)
        return world.derivatives.contract(third, fourth, nowMs);
      if (segments.length !== 3 || !third) return undefined;
      if (second === "contract") return world.derivatives.contracts(third, query, nowMs);
      if (second === "ticker") return world.derivatives.tickers(third, query, nowMs);
  }
  return undefined;
}

function need(scopes: ReadonlySet<string>, scope: string): void {
  if (!scopes.has(scope)) throw new Refusal(403, `The scope ${scope} is missing`);
}

function bearerScopes(tokens: Tokens, { headers, at }: HttpQuestion): ReadonlySet<string> {
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
  const scopes = token === undefined ? undefined : tokens.scopesOf(token, "rest", at);
  if (!scopes) throw new Refusal(401, "No valid access token was given");
  return scopes;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new Refusal(400, "The path is not percent-encoded UTF-8");
  }
}
