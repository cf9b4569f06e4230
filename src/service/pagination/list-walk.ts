import type { ReadBody } from "../../model/response-body.ts";
import { MAX_PAGE_SIZE } from "../../model/streams.ts";
import type { RequestSender } from "../client/client.ts";
import type { ServiceRequest } from "../http/request.ts";
import { MAX_LIST_PAGES } from "../limits.ts";
import {
  CursorTrail,
  isDeadCursorError,
  type PageSummary,
  paginationCycleFailure,
  requestPage,
} from "./request-page.ts";

/**
 * Yields the pages of a list, those of a walk that begins again too. Most lists have one page, but the walk follows `nextId` wherever it
 * appears. The query of the request is sent with each.
 */
export async function* walkListPages<P extends Pick<PageSummary, "rows" | "nextId">>(
  client: RequestSender,
  request: ServiceRequest,
  read: ReadBody<P>,
): AsyncGenerator<P, void, void> {
  const { endpoint } = request;
  let cursors = new CursorTrail();
  let cursor: string | undefined;
  let number = 0;
  let isRestarted = false;

  for (;;) {
    const paging = cursor === undefined ? {} : { startAfter: cursor, size: MAX_PAGE_SIZE };
    let page: P;
    try {
      page = await requestPage(client, { ...request, query: { ...request.query, ...paging } }, read);
    } catch (error) {
      // The service deleted the cursor's record between two pages. Lists have no timestamp to restart from.
      if (cursor === undefined || !isDeadCursorError(error)) throw error;
      client.onEvent({ kind: "walk", endpoint, event: "restarted" });
      if (isRestarted) throw paginationCycleFailure(endpoint, "the service rejected its cursor twice");
      isRestarted = true;
      cursor = undefined;
      cursors = new CursorTrail();
      continue;
    }
    number++;
    const { rows, nextId } = page;
    // An inclusive cursor of the last record returns that record again and again.
    const isLastRecordAgain = nextId === cursor && rows <= 1;
    yield page;
    if (nextId === undefined || isLastRecordAgain) return;
    const endless = { event: "no_progress", reason: "the pages do not end" } as const;
    const anomaly = cursors.check(nextId, rows) ?? (number >= MAX_LIST_PAGES ? endless : undefined);
    if (anomaly) {
      client.onEvent({ kind: "walk", endpoint, event: anomaly.event });
      throw paginationCycleFailure(endpoint, anomaly.reason);
    }
    cursors.follow(nextId);
    cursor = nextId;
  }
}
