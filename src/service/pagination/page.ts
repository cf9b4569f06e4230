import { exitCode, Failure } from "../../model/failure.ts";
import { type HistoryEndpoint, isDaily, streamOfEndpoint } from "../../model/streams.ts";
import { formatInstant, MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../../model/time.ts";

/**
 * The earliest timestamp that surely finds the row of this moment: even if the service takes the bound as exclusive,
 * and even if it compares it with the end of a bar.
 */
export function momentThatFinds(endpoint: HistoryEndpoint, row: Micros): Micros {
  return upToMillisecond(row + 1) + (isDaily(streamOfEndpoint(endpoint)) ? MICROS_PER_DAY : 0);
}

export function downToMillisecond(moment: Micros): Micros {
  return Math.floor(moment / MICROS_PER_MS) * MICROS_PER_MS;
}

export function upToMillisecond(moment: Micros): Micros {
  return Math.ceil(moment / MICROS_PER_MS) * MICROS_PER_MS;
}

/** Three digits of a second, which every reader of ISO 8601 takes. */
export function formatMillisecond(moment: Micros): string {
  return `${formatInstant(moment).slice(0, 23)}Z`;
}

/** What the reader of a page tells the walk. */
export interface PageFacts {
  readonly rows: number;
  /** Null, empty and absent are all undefined here. */
  readonly nextId: string | undefined;
  /** Of the asked series' own rows; a foreign row must not end the walk. */
  readonly oldest: Micros | undefined;
  readonly newest: Micros | undefined;
  /** Newest to oldest, as promised. */
  readonly descending: boolean;
}

/** Cursors that lead to empty pages are followed so many times in a row. */
export const EMPTY_PAGES_FOLLOWED = 5;

export function paginationCycle(endpoint: string, why: string): Failure {
  return new Failure(`the pages of ${endpoint} lead nowhere (${why})`, {
    family: "retry",
    code: "pagination_cycle",
    remedy: "the range stays open and is asked again later; if it lasts, tell the service's operator",
    exit: exitCode.incomplete,
  });
}

/** A cursor names a record; a record that has left the window or was deleted is refused in one of these ways. */
export function isDeadCursor(error: unknown): boolean {
  return error instanceof Failure && (error.code === "rejected" || error.code === "not_found");
}
