import type { HistoryPages } from "./history-pages.ts";
import { type HttpAnswer, type HttpQuestion, json, type Payload } from "./http-answer.ts";
import type { Lookups } from "./lookups.ts";
import { Refusal } from "./refusal.ts";
import type { Tokens } from "./tokens.ts";

export interface Desks {
  readonly tokens: Tokens;
  readonly lookups: Lookups;
  readonly indexTicks: HistoryPages;
  readonly dailyBars: HistoryPages;
}

/** Which part of the service answers which path. Only GET is served below /v3, but for the token. */
export function answerService(desks: Desks, question: HttpQuestion): HttpAnswer {
  const { method, path, at } = question;
  const segments = path.split("/").slice(1).map(decoded);
  if (segments[0] !== "v3") throw new Refusal(404, `No path ${path}`);
  if (path === "/v3/oauth/token") {
    if (method !== "POST") throw new Refusal(405, "Use POST");
    return json(200, desks.tokens.issue(question.headers["content-type"] ?? "", question.body, at));
  }
  const scopes = bearerScopes(desks.tokens, question);
  if (method !== "GET") throw new Refusal(405, "Use GET");
  const content = answerPath(desks, segments.slice(1), question.query, scopes, at);
  if (content === undefined) throw new Refusal(404, `No path ${path}`);
  return json(200, content);
}

function answerPath(
  desks: Desks,
  segments: readonly string[],
  query: URLSearchParams,
  scopes: ReadonlySet<string>,
  nowMs: number,
): string | Payload | undefined {
  const [resource, id] = segments;
  if (segments.length === 2 && id) {
    switch (resource) {
      case "asset":
        return desks.lookups.asset(id);
      case "market":
        return desks.lookups.market(id);
      case "exchange":
        return desks.lookups.exchange(id);
    }
  }
  if (segments.length !== 1) return undefined;
  switch (resource) {
    case "asset":
      return desks.lookups.assets(query);
    case "market":
      return desks.lookups.markets(query);
    case "exchange":
      return desks.lookups.exchanges(query);
    case "index-ticker":
      return desks.indexTicks.answer(query, scopes, nowMs);
    case "ohlcv":
      return desks.dailyBars.answer(query, scopes, nowMs);
  }
  return undefined;
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
