import type { Body } from "../../model/response-body.ts";
import { MAX_PAGE_SIZE } from "../../model/streams.ts";
import type { Requests } from "../client/client.ts";
import type { Priority, Query } from "../http/request.ts";
import { EMPTY_PAGES_FOLLOWED, isDeadCursor, paginationCycle } from "./page.ts";

export interface ListFacts {
  readonly rows: number;
  readonly nextId: string | undefined;
}

export interface ListPosition {
  /** From 1. */
  readonly number: number;
  readonly last: boolean;
  /** The list was begun again: rows of earlier pages come a second time. */
  readonly restarted: boolean;
}

export interface List {
  readonly endpoint: string;
  readonly params?: Readonly<Record<string, string>>;
  /** Sent with every page. */
  readonly filters?: Query;
  readonly priority?: Priority;
  readonly mayBeMissing?: boolean;
  readonly signal?: AbortSignal;
}

/** More than any list has: thirty thousand records, should the service give ten a page. */
const MOST_PAGES = 3000;

const reasons = {
  cycle: "its cursors go round in a circle",
  empty_pages: "only empty pages follow",
  no_progress: "they do not end",
};

/** Every page of a list that has no history: most have one, but `nextId` is followed wherever it appears. */
export async function* followList<P extends ListFacts>(
  client: Requests,
  list: List,
  read: (body: Body) => Promise<P>,
): AsyncGenerator<{ readonly page: P; readonly position: ListPosition }, void, void> {
  const { endpoint, params = {}, filters = {}, priority = 0, mayBeMissing = false, signal } = list;
  const cursorsSeen = new Set<string>();
  let cursor: string | undefined;
  let number = 0;
  let emptyPages = 0;
  let restarted = false;

  for (;;) {
    const paging = cursor === undefined ? {} : { startAfter: cursor, size: MAX_PAGE_SIZE };
    let page: P;
    try {
      page = await client.request(
        { endpoint, params, query: { ...filters, ...paging }, priority, mayBeMissing, signal },
        read,
      );
    } catch (error) {
      // The record that the cursor names went away between two pages. There is no timestamp to go on from.
      if (cursor === undefined || !isDeadCursor(error)) throw error;
      client.observe({ kind: "walk", endpoint, event: "restarted" });
      if (restarted) throw paginationCycle(endpoint, "its cursor died twice");
      restarted = true;
      cursor = undefined;
      cursorsSeen.clear();
      continue;
    }
    number++;
    const { rows, nextId } = page;
    // A cursor that includes its own record shows the last one for ever.
    const onlyItself = nextId === cursor && rows <= 1;
    if (nextId === undefined || onlyItself)
      return yield { page, position: { number, last: true, restarted } };
    yield { page, position: { number, last: false, restarted } };
    emptyPages = rows === 0 ? emptyPages + 1 : 0;
    const trouble = cursorsSeen.has(nextId)
      ? "cycle"
      : emptyPages > EMPTY_PAGES_FOLLOWED
        ? "empty_pages"
        : number >= MOST_PAGES
          ? "no_progress"
          : undefined;
    if (trouble) {
      client.observe({ kind: "walk", endpoint, event: trouble });
      throw paginationCycle(endpoint, reasons[trouble]);
    }
    cursorsSeen.add(nextId);
    cursor = nextId;
  }
}
