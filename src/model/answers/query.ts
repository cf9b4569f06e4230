import type { Failure } from "../failure.ts";

/** A value as JSON carries it: integers beyond a double as their digits, blobs in hex. */
export type ScreenValue = string | number | null;

/** The result of a query of one's own, for the screen. */
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

/** How many rows of a statement that still runs were read. */
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
