import { type ClientSettings, type Conditions, type Fault, type HttpStrike, httpFault } from "../fault.ts";
import { readAudience, TOKEN_PATH } from "./page.ts";
import { errorResponse, jsonResponse } from "./responses.ts";

/** Revokes the token of the request: 401 now and later. */
export function revoke(conditions: Conditions = {}): Fault {
  return httpFault("revoke", conditions, {
    request(_, { service, authorization, nowMs }) {
      service.server.tokens.revoke(authorization.replace(/^Bearer /, ""));
      return errorResponse(401, "the token has been revoked", nowMs);
    },
  });
}

/** Changes a token that was issued; does not turn an error into a token. */
function tokenFault(
  name: string,
  conditions: Conditions,
  change: (token: Record<string, unknown>, strike: HttpStrike) => object | undefined,
): Fault {
  return httpFault(
    name,
    { on: TOKEN_PATH, ...conditions },
    {
      request(response, strike) {
        if (response.status !== 200) return undefined;
        const token = change(JSON.parse(Buffer.from(response.body).toString()), strike);
        return token && jsonResponse(200, JSON.stringify(token), strike.nowMs);
      },
    },
  );
}

/** Issues another token while the settings are different. */
function reissue({ service, query, fetch }: HttpStrike, changed: Partial<ClientSettings>): object {
  const { settings } = service;
  const usual = { ...settings };
  Object.assign(settings, changed);
  const { body } = fetch(query);
  Object.assign(settings, usual);
  return JSON.parse(Buffer.from(body).toString());
}

/** Sends this `expires_in`; the real lifetime is unchanged. */
export function expiresIn(said: number | "string" | "missing", conditions: Conditions = {}): Fault {
  return tokenFault(`expiresIn ${said}`, conditions, ({ expires_in, ...token }) => {
    if (said === "missing") return token;
    return { ...token, expires_in: said === "string" ? String(expires_in) : said };
  });
}

/** Issues a token with this lifetime. */
export function tokenLife(seconds: number, conditions: Conditions = {}): Fault {
  return tokenFault("tokenLife", conditions, (_, strike) => reissue(strike, { tokenSeconds: seconds }));
}

/** Returns the previous token of this audience, with its remaining seconds. */
export function sameToken(conditions: Conditions = {}): Fault {
  return tokenFault("sameToken", conditions, (_, { body, memory, nowMs }) => {
    const previous = memory.issuedTokens.get(readAudience(body));
    return previous && { ...previous.token, expires_in: Math.floor((previous.expiresAtMs - nowMs) / 1000) };
  });
}

/** Issues a token that lacks this scope. */
export function scopeWithout(scope: string, conditions: Conditions = {}): Fault {
  return tokenFault(`scopeWithout ${scope}`, conditions, (_, strike) => {
    const scopes = strike.service.settings.scopes.filter((each) => each !== scope);
    return reissue(strike, { scopes });
  });
}

/** States the scopes in upper case or by unknown names; the token has them all the same. */
export function scopeForm(form: "upper" | "unknown", conditions: Conditions = {}): Fault {
  return tokenFault(`scopeForm ${form}`, conditions, (token) => ({
    ...token,
    scope: form === "upper" ? String(token.scope).toUpperCase() : "market-data:all",
  }));
}
