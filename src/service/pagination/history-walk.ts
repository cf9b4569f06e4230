import type { ResponseBody } from "../../model/response-body.ts";
import {
  DEFAULT_CADENCE,
  type HistoryEndpoint,
  MAX_PAGE_SIZE,
  streamOfEndpoint,
  streamTable,
} from "../../model/streams.ts";
import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { RequestSender } from "../client/client.ts";
import type { RequestPriority, RequestQuery } from "../http/request.ts";
import { createCrossChecks } from "./cross-checks.ts";
import type { PageSummary } from "./page.ts";
import { formatToMillisecond, isDeadCursorError } from "./page.ts";
import { requestPage } from "./request-page.ts";
import { WalkState } from "./walk-state.ts";

/** The position of a page in its walk. The ingest thread derives the proven range from it. */
export interface PagePosition {
  /** From 1. */
  readonly number: number;
  /** `timestamp`: the walk starts or restarts with this page; `cursor`: the page continues the one before. */
  readonly link: "timestamp" | "cursor";
  /** The earlier pages have every row at or above this timestamp; this page continues below it. */
  readonly provenFrom: Micros;
  /**
   * `reached`: the page goes below `from`; `exhausted`: the service has nothing older; undefined: pages
   * follow.
   */
  readonly end: "reached" | "exhausted" | undefined;
  /** A second response confirmed that there is no row between this page's newest one and the end of the coverage. */
  readonly isSilenceConfirmed: boolean;
}

export interface HistoryWalkOptions {
  readonly endpoint: HistoryEndpoint;
  /** Sent with every page. */
  readonly filters: RequestQuery;
  /** The walk ends with the first page that goes below it. */
  readonly from: Micros;
  /**
   * The walk starts here and goes back. Exclusive: the specification leaves open whether the service includes
   * a row with this timestamp.
   */
  readonly until: Micros;
  /** The caller claims no coverage from this timestamp on: rows may be missing there. Default: `until`. */
  readonly coverageEnd?: Micros;
  /** The usual time between two rows. Default: 30 seconds, a day for OHLCV. */
  readonly cadence?: Micros;
  readonly size?: number;
  readonly priority?: RequestPriority;
  readonly signal?: AbortSignal;
}

/**
 * Yields the pages of one series from `until` back to `from`. Not every page that `read` parsed is yielded: a
 * page that contradicts other responses is requested again.
 */
export async function* walkHistoryPages<P extends PageSummary>(
  client: RequestSender,
  options: HistoryWalkOptions,
  read: (body: ResponseBody) => Promise<P>,
): AsyncGenerator<{ readonly page: P; readonly position: PagePosition }, void, void> {
  const { endpoint, filters, from, until, size = MAX_PAGE_SIZE } = options;
  const cadence = options.cadence ?? streamTable[streamOfEndpoint(endpoint)].cadence ?? DEFAULT_CADENCE;
  const coverageEnd = Math.min(options.coverageEnd ?? until, until);
  const isOneIndex = filters.indexId !== undefined;
  // Rows of one index are one cadence apart: no older row fits if the oldest row is closer to `from` than
  // that.
  const maxEndDistance = isOneIndex ? cadence : 0;
  let number = 0;
  let responseTime: Micros | undefined;

  /** Always sends the timestamp: `size` needs one, and the service ignores it if there is a cursor. */
  function requestRows(ts: Micros, startAfter: string | undefined, pageSize: number): Promise<P> {
    const query = { ...filters, timestamp: formatToMillisecond(ts), size: pageSize, startAfter };
    return requestPage(
      client,
      { endpoint, query, priority: options.priority ?? 0, signal: options.signal },
      (body) => {
        if (body.asOf !== undefined) responseTime = body.asOf * MICROS_PER_MS;
        return read(body);
      },
    );
  }

  const crossChecks = createCrossChecks({
    endpoint,
    isOneIndex,
    cadence,
    coverageEnd,
    probe: (ts, pageSize) => requestRows(ts, undefined, pageSize),
    responseTime: () => responseTime,
  });
  const state = new WalkState({
    endpoint,
    until,
    size,
    isOneIndex,
    onAnomaly: (event) => client.onEvent({ kind: "walk", endpoint, event }),
  });

  /** Whether the service has nothing older. */
  async function isExhausted(): Promise<boolean> {
    if (state.oldestTs !== undefined && state.oldestTs - from < maxEndDistance) return true;
    // Other rows with the oldest timestamp may be missing until a page was requested at that timestamp.
    const mayMissTies = !isOneIndex && state.canRestart;
    return !mayMissTies && (await crossChecks.isEndOfHistory(state));
  }

  for (;;) {
    const { link } = state;
    const provenFrom = state.oldestTs === undefined ? coverageEnd : state.oldestTs + 1;
    let page: P;
    try {
      page = await requestRows(state.anchor, state.cursor, size);
    } catch (error) {
      if (link === "timestamp" || !isDeadCursorError(error)) throw error;
      state.handleDeadCursor();
      continue;
    }
    if (!state.acceptsOrder(page)) continue;
    const isSilent = crossChecks.needsProbe(page, state);
    if (state.movesForward(page) || (await crossChecks.hasMissingRows(page, state))) {
      state.handleContradiction();
      continue;
    }
    if (state.shouldRetryBlankPage(page)) continue;

    const isOlder = state.accept(page);
    const { rows, nextId, oldest, newest, isDescending } = page;
    const toResult = (end: PagePosition["end"]) => {
      number++;
      const isSilenceConfirmed = isSilent || (rows === 0 && end === "exhausted");
      return { page, position: { number, link, provenFrom, end, isSilenceConfirmed } as const };
    };
    // An unordered page has reached `from` only if all its rows are below it.
    const lowerBound = isDescending ? oldest : newest;
    if (lowerBound !== undefined && lowerBound < from) return yield toResult("reached");

    // If cursors are inclusive, the last row's cursor returns that row again and again: this may be the end.
    const mayBeEnd =
      nextId === undefined || (state.oldestTs !== undefined && !isOlder && state.isRepeating(nextId));
    if (mayBeEnd && (await isExhausted())) return yield toResult("exhausted");
    if (nextId === undefined) {
      if (rows > 0 && state.oldestTs !== undefined) yield toResult(undefined);
      state.handleFalseEnd(rows);
    } else {
      yield toResult(undefined);
      state.followCursor(nextId, rows);
    }
  }
}
