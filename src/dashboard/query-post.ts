import type { Readable } from "node:stream";
import type { ErrorAnswer } from "../model/answers/query.ts";
import { Failure } from "../model/failure.ts";
import { jsonResponse, type PostHandler } from "./dashboard-server.ts";

type QueryFormat = "rows" | "csv" | "json" | "parquet";

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
      const status = error.code === "bad_query" ? 400 : 503;
      const answer: ErrorAnswer = {
        error: error.message,
        remedy: error.remedy ?? null,
        warnings: "warnings" in error ? (error.warnings as readonly string[]) : [],
      };
      return jsonResponse(answer, status);
    }
  };
}
