// What the daemon answers to a statement: a line, or while it runs a line each second before it.

import type { ErrorAnswer, QueryAnswer, QueryProgress } from "../../../model/answers/query.ts";
import { RequestError } from "../shared/page-base.ts";

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
      if ("error" in told) throw new RequestError(told);
      if ("columns" in told) return told;
      onProgress(told.read);
      line = begun;
    }
  }
}
