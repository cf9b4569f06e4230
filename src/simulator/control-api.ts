import type { FaultCount } from "./faults/script.ts";
import { HttpError } from "./rest/errors.ts";
import { createJsonResponse, type SimulatorRequest, type SimulatorResponse } from "./rest/http-types.ts";
import type { RequestLog } from "./rest/request-log.ts";
import type { PongSummary } from "./websocket/pong-log.ts";

/** The controls of a running simulator. */
interface Controls {
  readonly requests: RequestLog;
  readonly pongs: PongSummary;
  setFaults(script: string): void;
  readonly faultCounts: readonly FaultCount[];
  grantScopes(scopes: readonly string[]): void;
  revokeTokens(): void;
  rotateSecret(secret: string): void;
}

export function isControlRequest({ path }: SimulatorRequest): boolean {
  return path.startsWith("/simulator/");
}

/**
 * The controls over HTTP, for a simulator in its own process; only for clients on this machine.
 *
 *   POST   /simulator/faults     set a fault script
 *   GET    /simulator/faults     how often each line triggered
 *   POST   /simulator/scopes     grant scopes, separated by blanks
 *   POST   /simulator/secret     rotate the client secret
 *   POST   /simulator/revoke     revoke all tokens
 *   GET    /simulator/pongs      how quickly clients answered PINGs
 *   GET    /simulator/requests   the request log (?since=N: from the Nth request on)
 *   DELETE /simulator/requests   clear the request log
 */
export function handleControlRequest(
  controls: Controls,
  request: SimulatorRequest,
  remoteAddress: string,
): SimulatorResponse {
  if (!/^(::1|(::ffff:)?127\.)/.test(remoteAddress)) throw new HttpError(403, "Only from this machine");
  const { method, path, query, body } = request;
  switch (`${method} ${path}`) {
    case "POST /simulator/faults":
      return runControl(() => controls.setFaults(body));
    case "GET /simulator/faults":
      return createJsonResponse(200, JSON.stringify(controls.faultCounts));
    case "POST /simulator/scopes":
      return runControl(() => controls.grantScopes(body.split(/\s+/).filter((scope) => scope !== "")));
    case "POST /simulator/secret":
      return runControl(() => controls.rotateSecret(body.trim()));
    case "POST /simulator/revoke":
      return runControl(() => controls.revokeTokens());
    case "GET /simulator/pongs":
      return createJsonResponse(200, JSON.stringify(controls.pongs));
    case "DELETE /simulator/requests":
      return runControl(() => controls.requests.clear());
    case "GET /simulator/requests": {
      const { requests } = controls;
      const list = requests.list.slice(Number(query.get("since") ?? 0));
      return createJsonResponse(
        200,
        JSON.stringify({ total: requests.total, counts: Object.fromEntries(requests.counts), list }),
      );
    }
  }
  throw new HttpError(404, `No control ${method} ${path}`);
}

function runControl(action: () => void): SimulatorResponse {
  try {
    action();
  } catch (thrown) {
    throw new HttpError(400, thrown instanceof Error ? thrown.message : String(thrown));
  }
  return createJsonResponse(200, "{}");
}
