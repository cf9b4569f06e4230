import { HttpError } from "./rest/errors.ts";
import { createJsonResponse, type SimulatorRequest, type SimulatorResponse } from "./rest/http-types.ts";
import type { RequestLog } from "./rest/request-log.ts";
import type { PongSummary } from "./websocket/pong-log.ts";

/** The controls of a running simulator. */
interface Controls {
  readonly requests: RequestLog;
  readonly pongs: PongSummary;
  setFaults(script: string): void;
  revokeTokens(): void;
}

export function isControlRequest({ path }: SimulatorRequest): boolean {
  return path.startsWith("/simulator/");
}

/**
 * The controls over HTTP, for a simulator in its own process; only for clients on this machine.
 *
 *   POST /simulator/faults     set a fault script
 *   POST /simulator/revoke     revoke all tokens
 *   GET  /simulator/pongs      how quickly clients answered PINGs
 *   GET  /simulator/requests   the request log
 */
export function handleControlRequest(
  controls: Controls,
  request: SimulatorRequest,
  remoteAddress: string,
): SimulatorResponse {
  if (!/^(::1|(::ffff:)?127\.)/.test(remoteAddress)) throw new HttpError(403, "Only from this machine");
  const { method, path, body } = request;
  switch (`${method} ${path}`) {
    case "POST /simulator/faults":
      return runControl(() => controls.setFaults(body));
    case "POST /simulator/revoke":
      return runControl(() => controls.revokeTokens());
    case "GET /simulator/pongs":
      return createJsonResponse(200, JSON.stringify(controls.pongs));
    case "GET /simulator/requests":
      return createJsonResponse(200, JSON.stringify({ list: controls.requests.list }));
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
