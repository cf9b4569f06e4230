import type { Failure } from "../failure.ts";
import { type Micros, parseUserTime } from "../time.ts";

/** A value as JSON carries it: integers beyond a double as their digits, blobs in hex. */
export type ScreenValue = string | number | null;

/** The result of a user's query, for the screen. */
export interface QueryAnswer {
  readonly columns: readonly string[];
  readonly count: number;
  /** There are more rows; a download has all of them. */
  readonly is_cut: boolean;
  readonly ms: number;
  /** What the plan of the statement suggests; code is in backquotes. */
  readonly warnings: readonly string[];
  readonly rows: readonly (readonly ScreenValue[])[];
}

/** How many rows a running statement has read. */
export interface QueryProgress {
  readonly read: number;
}

/** Why an answer has no data. Only the answer to a query has more than `error`. */
export interface ErrorAnswer {
  readonly error: string;
  readonly remedy?: string | null;
  readonly warnings?: readonly string[];
}

export function toErrorAnswer(failure: Failure & Pick<ErrorAnswer, "warnings">): ErrorAnswer {
  const { message, remedy, warnings = [] } = failure;
  return { error: message, remedy: remedy ?? null, warnings };
}

/** What people write for a parameter: a number, `@TIME` as microseconds, or text. Undefined: after @ is no time. */
export function parseQueryValue(text: string, now: Micros): string | number | bigint | undefined {
  if (/^-?(0|[1-9]\d{0,17})$/.test(text)) return BigInt(text);
  if (/^-?(0|[1-9]\d*)\.\d+$/.test(text)) return Number(text);
  if (!text.startsWith("@")) return text;
  const ts = parseUserTime(text.slice(1), now);
  return ts === undefined ? undefined : BigInt(ts);
}
