import { exitCode, Failure } from "../model/failure.ts";

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
