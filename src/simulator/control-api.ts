import type { StruckLine } from "./faults/script.ts";
import { Refusal } from "./rest/errors.ts";
import { type HttpAnswer, type HttpQuestion, json } from "./rest/http-types.ts";
import type { RequestLog } from "./rest/request-log.ts";
import type { PongSummary } from "./websocket/pong-log.ts";

/** What may be turned while the simulator runs. */
export interface Controls {
  readonly requests: RequestLog;
  readonly pongs: PongSummary;
  setFaults(script: string): void;
  readonly struck: readonly StruckLine[];
  grantScopes(scopes: readonly string[]): void;
  revokeTokens(): void;
  rotateSecret(secret: string): void;
}

export function isControl({ path }: HttpQuestion): boolean {
  return path.startsWith("/simulator/");
}

/**
 * The controls over HTTP, for a simulator in a process of its own; answered to this machine alone:
 * POST /simulator/faults (a fault script), GET /simulator/faults (how often each line struck), POST /simulator/scopes (one text, blanks between), POST /simulator/secret,
 * POST /simulator/revoke, GET /simulator/pongs (how quickly PINGs were answered), GET /simulator/requests (?since=N: from the Nth on), DELETE /simulator/requests.
 */
export function answerControl(controls: Controls, question: HttpQuestion, remoteAddress: string): HttpAnswer {
  if (!/^(::1|(::ffff:)?127\.)/.test(remoteAddress)) throw new Refusal(403, "Only from this machine");
  const { method, path, query, body } = question;
  switch (`${method} ${path}`) {
    case "POST /simulator/faults":
      return done(() => controls.setFaults(body));
    case "GET /simulator/faults":
      return json(200, JSON.stringify(controls.struck));
    case "POST /simulator/scopes":
      return done(() => controls.grantScopes(body.split(/\s+/).filter((scope) => scope !== "")));
    case "POST /simulator/secret":
      return done(() => controls.rotateSecret(body.trim()));
    case "POST /simulator/revoke":
      return done(() => controls.revokeTokens());
    case "GET /simulator/pongs":
      return json(200, JSON.stringify(controls.pongs));
    case "DELETE /simulator/requests":
      return done(() => controls.requests.clear());
    case "GET /simulator/requests": {
      const { requests } = controls;
      const list = requests.list.slice(Number(query.get("since") ?? 0));
      return json(
        200,
        JSON.stringify({ total: requests.total, counts: Object.fromEntries(requests.counts), list }),
      );
    }
  }
  throw new Refusal(404, `No control ${method} ${path}`);
}

function done(act: () => void): HttpAnswer {
  try {
    act();
  } catch (thrown) {
    throw new Refusal(400, thrown instanceof Error ? thrown.message : String(thrown));
  }
  return json(200, "{}");
}
