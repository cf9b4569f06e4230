import type { Readable } from "node:stream";
import { toErrorAnswer } from "../model/answers/query.ts";
import { Failure } from "../model/failure.ts";
import { jsonResponse, type PostHandler } from "./dashboard-server.ts";

/** `lines`: of a slow statement, the rows read so far and at last `rows` or an error, a line each. */
type QueryFormat = "rows" | "lines" | "csv" | "json" | "parquet";

/** Runs SQL that people write; the daemon provides it. */
export interface QueryService {
  /** `body` is the JSON that the page sent. */
  answer(
    body: string,
    signal: AbortSignal,
  ): Promise<{ readonly format: QueryFormat; readonly result: Readable }>;
}

const contentTypes: Readonly<Record<QueryFormat, string>> = {
  rows: "application/json",
  lines: "application/x-ndjson",
  json: "application/json",
  csv: "text/csv",
  parquet: "application/vnd.apache.parquet",
};

/** Answers with the result of a query, or with what is wrong with it. */
export function createQueryPost(service: QueryService): PostHandler {
  return async (body, signal) => {
    try {
      const { format, result } = await service.answer(body, signal);
      return { type: contentTypes[format], body: result };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      return jsonResponse(toErrorAnswer(error), error.code === "bad_query" ? 400 : 503);
    }
  };
}
