import { Failure, failureCode } from "../../model/failure.ts";
import { noListFailure, type ReadBody, type ResponseBody } from "../../model/response-body.ts";
import { type HistoryEndpoint, isDaily, streamOfEndpoint } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../../model/time.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import type { RequestSender } from "../client/client.ts";
import type { ServiceRequest } from "../http/request.ts";
import { MAX_FRUITLESS_PAGES } from "../limits.ts";

/** The lowest anchor that includes this row, even if the service excludes the bound or compares a bar's end. */
export function anchorForRow(endpoint: HistoryEndpoint, rowTs: Micros): Micros {
  return ceilToMillisecond(rowTs + 1) + (isDaily(streamOfEndpoint(endpoint)) ? MICROS_PER_DAY : 0);
}

export function floorToMillisecond(ts: Micros): Micros {
  return Math.floor(ts / MICROS_PER_MS) * MICROS_PER_MS;
}

export function ceilToMillisecond(ts: Micros): Micros {
  return Math.ceil(ts / MICROS_PER_MS) * MICROS_PER_MS;
}

/** What the walk needs to know about a page. */
export interface PageSummary {
  readonly rows: number;
  /** Records of other series, not counted as rows. */
  readonly foreign?: number;
  /** Undefined if the service sent null, an empty text or nothing. */
  readonly nextId: string | undefined;
  /** Of the requested series only: a foreign row must not end the walk. */
  readonly oldest: Micros | undefined;
  readonly newest: Micros | undefined;
  /** Newest first, as the specification promises. */
  readonly isDescending: boolean;
  /** How far apart neighbouring rows are at most, apart from the two largest holes; undefined: too few rows. */
  readonly rowDistance?: Micros | undefined;
}

const anomalyReasons = { cycle: "the cursors form a cycle", empty_pages: "all pages are empty" };

/** Detects cursors that make no progress: they repeat, or lead to empty pages only. */
export class CursorTrail {
  readonly #followed = new Set<string>();
  #emptyPages = 0;

  has(cursor: string): boolean {
    return this.#followed.has(cursor);
  }

  /** Call it once per page, with its cursor to the next one. Undefined: the cursor may be followed. */
  check(nextId: string, rows: number): { event: keyof typeof anomalyReasons; reason: string } | undefined {
    this.#emptyPages = rows === 0 ? this.#emptyPages + 1 : 0;
    const event = this.has(nextId)
      ? "cycle"
      : this.#emptyPages > MAX_FRUITLESS_PAGES
        ? "empty_pages"
        : undefined;
    return event && { event, reason: anomalyReasons[event] };
  }

  follow(cursor: string): void {
    this.#followed.add(cursor);
  }

  /** The page is requested again and may return the same cursor: that is no cycle. */
  forget(cursor: string): void {
    this.#followed.delete(cursor);
  }

  forgetEmptyPages(): void {
    this.#emptyPages = 0;
  }
}

export function paginationCycleFailure(endpoint: string, why: string): Failure {
  return new Failure(`pagination of ${endpoint} makes no progress: ${why}`, {
    code: "pagination_cycle",
    remedy: "the gap stays open and is retried; if this persists, report it to the service's operator",
  });
}

/** A cursor is a record id: the service rejects it once that record left the window or was deleted. */
export function isDeadCursorError(error: unknown): boolean {
  return error instanceof Failure && (error.code === "rejected" || error.code === "not_found");
}

/**
 * Requests one page of a list. Null, or 204, in place of the list counts as an empty one if a second request gets the same
 * and another request of this kind has got records: else the service may be unable to send any. A list that may be missing
 * needs no other one.
 */
export async function requestPage<P extends { readonly rows: number }>(
  client: RequestSender,
  request: ServiceRequest,
  read: ReadBody<P>,
): Promise<P> {
  const { parking } = client;
  parking.assertListed(request);
  try {
    const page = await requestList(client, request, read);
    parking.recordList(request, page.rows);
    return page;
  } catch (error) {
    if (failureCode(error) === "no_list") parking.recordNoList(request);
    throw error;
  }
}

async function requestList<P>(client: RequestSender, request: ServiceRequest, read: ReadBody<P>) {
  for (let answers = 1; ; answers++) {
    const isLast = isSaidEnough("null list", answers);
    try {
      return await client.request(request, isLast ? readNullAsEmpty : read);
    } catch (error) {
      if (isLast || failureCode(error) !== "null_list") throw error;
    }
  }

  async function readNullAsEmpty(body: ResponseBody): Promise<P> {
    // Made first, because the reader may transfer the body to another thread.
    const emptyList = { ...body, bytes: new TextEncoder().encode('{"content":[]}') };
    try {
      return await read(body);
    } catch (error) {
      if (failureCode(error) !== "null_list") throw error;
      if (!request.mayBeMissing && !client.parking.hasListed(request))
        throw noListFailure("null, and no request of this kind has had records");
      return read(emptyList);
    }
  }
}
