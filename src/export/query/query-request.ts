import { parseQueryValue } from "../../model/answers/query.ts";
import { Failure } from "../../model/failure.ts";
import { type Micros, USER_TIME_FORMS } from "../../model/time.ts";
import type { QueryParameters } from "../../warehouse/query/query.ts";
import { readSqlTokens } from "../../warehouse/query/sql-tokens.ts";

export const RESULT_FORMATS = ["rows", "csv", "json", "parquet"] as const;
/** `rows`: for the screen, at most MAX_SCREEN_ROWS; the others are complete results for a file. */
export type ResultFormat = (typeof RESULT_FORMATS)[number];

export interface QueryRequest {
  readonly sql: string;
  readonly parameters: QueryParameters;
  readonly format: ResultFormat;
}

const MAX_SQL_LENGTH = 50_000;
const MAX_PARAMETERS = 50;

/** Parses the JSON that the page sends: `{"sql": …, "params": {"from": "@-7d"}, "format": "rows"}`. */
export function parseQueryRequest(body: string, now: Micros): QueryRequest {
  const { sql, params = {}, format = "rows" } = parseObject(body);
  if (typeof sql !== "string" || sql.trim() === "") throw badRequest("there is no SQL", "write a SELECT");
  if (sql.length > MAX_SQL_LENGTH)
    throw badRequest(`the SQL has ${sql.length} characters`, `use at most ${MAX_SQL_LENGTH}`);
  // A pragma could change the connection; anything else that is not a read fails at the next check.
  const [first] = readSqlTokens(sql);
  if (first === undefined || !["select", "with", "values", "explain"].includes(first.text))
    throw badRequest("only statements that read are allowed", "begin with SELECT, WITH, VALUES or EXPLAIN");
  const known = RESULT_FORMATS.find((each) => each === format);
  if (known === undefined) throw badRequest("this format is unknown", `use ${RESULT_FORMATS.join(", ")}`);
  if (typeof params !== "object" || params === null || Object.keys(params).length > MAX_PARAMETERS)
    throw badRequest("params is not an object of parameters", "send {name: value}");
  const parameters = Object.entries(params).map(([name, value]) => [name, parseValue(name, value, now)]);
  return { sql, parameters: Object.fromEntries(parameters), format: known };
}

function parseValue(name: string, value: unknown, now: Micros): string | number | bigint | null {
  if (value === null) return null;
  const text = String(value).trim();
  const parsed = parseQueryValue(text, now);
  if (parsed === undefined) throw badRequest(`:${name} cannot be ${text}`, `after @ give ${USER_TIME_FORMS}`);
  return parsed;
}

function parseObject(body: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Reported below, like any other JSON that is not an object.
  }
  throw badRequest("the request is not a JSON object", 'send {"sql": "SELECT …"}');
}

/** A process reads its modules when it starts, not when the daemon did. */
export function replacedFailure(): Failure {
  return new Failure("the query cannot be started: files of mds-sync are missing, or are being replaced", {
    code: "not_readable",
    remedy: "run it again in a moment; after an upgrade, restart the daemon",
  });
}

function badRequest(message: string, remedy: string): Failure {
  return new Failure(message, { code: "bad_query", remedy });
}
