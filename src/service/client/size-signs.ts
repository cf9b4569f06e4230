import { Failure, type FailureCode } from "../../model/failure.ts";
import { RejectedFailure, ServerFailure } from "../http/status-errors.ts";

/** Gateways answer so when the page behind them is too large or takes too long, and also in an outage. */
const GATEWAY_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
const MAX_GATEWAY_FAILURES = 3;
/** Bodies that end too early: a broken connection, or a limit of the service or a proxy. */
const MAX_CUT_BODIES = 2;
const cutBodies: ReadonlySet<FailureCode> = new Set<FailureCode>(["answer_cut", "malformed_body"]);

/** After so many failures of this kind in a row a smaller page is requested; undefined: its size is not the cause. */
export function failuresUntilSmaller(error: unknown): number | undefined {
  if (error instanceof RejectedFailure)
    return error.isTooLarge || error.fields.size === 0 || error.fields.has("size") ? 1 : undefined;
  if (error instanceof ServerFailure)
    return GATEWAY_STATUSES.has(error.status) ? MAX_GATEWAY_FAILURES : undefined;
  return error instanceof Failure && cutBodies.has(error.code) ? MAX_CUT_BODIES : undefined;
}
