import { exitCode, Failure } from "../../model/failure.ts";
import type { ServiceRequest } from "../http/request.ts";

/** When this many different paths answer 404 and none succeeds, the service is at fault, not the records. */
const MISSING_PATHS_FOR_ALARM = 3;
/** The same holds for more than this many different records of one path. */
const MISSING_RECORDS_FOR_ALARM = 100;
/** These parameters select a page, not a record. */
const pagingParams: ReadonlySet<string> = new Set(["timestamp", "size", "startAfter"]);

/**
 * Decides whether a 404 means a missing record (`not_found`) or a missing path (`upstream_version`): a broken path or a
 * withdrawn API version must not make the sync mark every record as missing.
 */
export class NotFoundJudge {
  /** Endpoints that answered 404 since the last success of any endpoint. */
  readonly #missingEndpoints = new Set<string>();
  /** Records per endpoint that answered 404 since the last success of that endpoint. */
  readonly #missingRecords = new Map<string, Set<string>>();

  recordSuccess(endpoint: string): void {
    this.#missingEndpoints.clear();
    this.#missingRecords.delete(endpoint);
  }

  /** Returns the failure to throw. `isPathFound` repeats a request of the path that succeeded before. */
  async judge(
    { endpoint, params = {}, query = {} }: ServiceRequest,
    failure: Failure,
    isPathFound: () => Promise<boolean>,
  ): Promise<Failure> {
    this.#missingEndpoints.add(endpoint);
    const records = this.#missingRecords.get(endpoint) ?? new Set();
    this.#missingRecords.set(endpoint, records);
    // The set is bounded: more records would not change the decision.
    if (records.size <= MISSING_RECORDS_FOR_ALARM) {
      const recordParams = Object.entries({ ...params, ...query }).filter(
        ([name]) => !pagingParams.has(name),
      );
      records.add(JSON.stringify(recordParams));
    }
    const isSuspicious =
      this.#missingEndpoints.size >= MISSING_PATHS_FOR_ALARM || records.size > MISSING_RECORDS_FOR_ALARM;
    if (!isSuspicious) return failure;
    if (await isPathFound()) {
      this.recordSuccess(endpoint);
      return failure;
    }
    return new Failure(`${endpoint} answers every request with 404`, {
      code: "upstream_version",
      remedy: "check service.baseUrl; the service may have withdrawn version 3 of its API",
      exit: exitCode.incomplete,
      cause: failure,
    });
  }
}
