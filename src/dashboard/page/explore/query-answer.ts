// What the daemon answers to a statement: a line, or while it runs a line each second before it.

import type { ErrorAnswer, QueryAnswer, QueryProgress } from "../../../model/answers/query.ts";

/** The daemon refused a query. */
export class QueryError extends Error {
  readonly warnings: readonly string[];

  constructor({ error, remedy, warnings = [] }: ErrorAnswer) {
    // The messages of SQLite have a colon of their own.
    super(remedy ? `${error}; ${remedy}` : error);
    this.warnings = warnings;
  }
}

/** Of a response whose status is an error. */
export async function toError(response: Response): Promise<Error> {
  const text = await response.text();
  try {
    return new QueryError(JSON.parse(text) as ErrorAnswer);
  } catch {
    return new Error(text.trim() || `the daemon answered ${response.status}`);
  }
}

/** The answer, which is the last line; each line before it tells how many rows were read. Throws if the last line is an error. */
export async function readLines(
  response: Response,
  onProgress: (rows: number) => void,
): Promise<QueryAnswer> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let line = "";
  for (;;) {
    const { done = true, value = "" } = (await reader?.read()) ?? {};
    if (done) throw new Error("the answer was cut off");
    const [end = "", ...next] = value.split("\n");
    line += end;
    for (const begun of next) {
      const told = JSON.parse(line) as QueryAnswer | QueryProgress | ErrorAnswer;
      if ("error" in told) throw new QueryError(told);
      if ("columns" in told) return told;
      onProgress(told.read);
      line = begun;
    }
  }
}
