import type { ReadBody } from "../../model/response-body.ts";
import {
  DEFAULT_CADENCE,
  type HistoryEndpoint,
  MAX_PAGE_SIZE,
  streamOfEndpoint,
  streamTable,
} from "../../model/streams.ts";
import { formatToMillisecond, MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { RequestSender } from "../client/client.ts";
import type { RequestPriority, RequestQuery } from "../http/request.ts";
import { createMissingRowChecks, type RowSpacing } from "./missing-row-checks.ts";
import { isDeadCursorError, type PageSummary, requestPage } from "./request-page.ts";
import { WalkState } from "./walk-state.ts";

/** The position of a page in its walk. The ingest thread derives the proven range from it. */
export interface PagePosition {
  /** From 1. */
  readonly number: number;
  /** `timestamp`: the walk starts or restarts with this page; `cursor`: the page continues the one before. */
  readonly link: "timestamp" | "cursor";
  /** The earlier pages have every row at or above this timestamp; this page continues below it. */
  readonly provenFrom: Micros;
  /** An earlier page has the row just below `provenFrom`. */
  readonly isContinued: boolean;
  /** When the service made the earliest response so far; undefined: it did not say. */
  readonly madeAt: Micros | undefined;
  /** `reached`: it goes below `from`; `exhausted`: the service has nothing older; undefined: pages follow. */
  readonly end: "reached" | "exhausted" | undefined;
  /** A second response confirmed that there is no row between this page's newest one and the end of the coverage. */
  readonly isSilenceConfirmed: boolean;
  /** Equal pages have shown that the service always sends records of other series. */
  readonly acceptsForeign: boolean;
  /** The `from` of the walk when it judged this page. */
  readonly from: Micros;
  /** How many rows were requested. */
  readonly size: number;
}

export interface HistoryWalkOptions {
  readonly endpoint: HistoryEndpoint;
  /** Sent with every page. */
  readonly filters: RequestQuery & { readonly indexId: string };
  /** The walk ends with the first page that goes below it. May change during the walk: it is read for each page. */
  readonly from: Micros;
  /** Called when the walk has everything down to `lowerBound`: it goes on if `from` is lower than that afterwards. */
  readonly extend?: (lowerBound: Micros) => void;
  /** Ends without a page, and without confirmation, if the service has nothing at or before `until`. */
  readonly isExploring?: boolean;
  /**
   * The walk starts here and goes back. Exclusive: the specification leaves open whether the service includes
   * a row with this timestamp.
   */
  readonly until: Micros;
  /** The caller claims no coverage from this timestamp on: rows may be missing there. Default: `until`. */
  readonly coverageEnd?: Micros;
  /** A second response confirms a longer silence below `coverageEnd`, however far apart the rows are. Default: no limit. */
  readonly maxSilence?: Micros | undefined;
  /** The usual time between two rows. Default: 30 seconds, a day for OHLCV. */
  readonly cadence?: Micros;
  /** What other walks of the series have learnt. */
  readonly spacing?: RowSpacing;
  /** An earlier walk ended with this row: a last page that says the same counts alone. */
  readonly knownEnd?: Micros | undefined;
  /** Read for each page, like `from`. */
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
  read: ReadBody<P>,
): AsyncGenerator<{ readonly page: P; readonly position: PagePosition }, void, void> {
  const { endpoint, filters, until } = options;
  const cadence = options.cadence ?? streamTable[streamOfEndpoint(endpoint)].cadence ?? DEFAULT_CADENCE;
  const coverageEnd = Math.min(options.coverageEnd ?? until, until);
  let number = 0;
  let responseTime: Micros | undefined;
  let madeAt: Micros | undefined;

  /** Always sends the timestamp: `size` needs one, and the service ignores it if there is a cursor. */
  function requestRows(ts: Micros, pageSize: number, startAfter?: string): Promise<P> {
    const query = { ...filters, timestamp: formatToMillisecond(ts), size: pageSize, startAfter };
    return requestPage(
      client,
      { endpoint, query, priority: options.priority ?? 0, signal: options.signal },
      (body) => {
        if (body.asOf !== undefined) {
          responseTime = body.asOf * MICROS_PER_MS;
          madeAt = Math.min(madeAt ?? responseTime, responseTime);
        }
        return read(body);
      },
    );
  }

  const missingRows = createMissingRowChecks({
    endpoint,
    spacing: options.spacing ?? { maxDistance: cadence },
    coverageEnd,
    maxSilence: options.maxSilence ?? Number.POSITIVE_INFINITY,
    probe: (ts, pageSize) => requestRows(ts, pageSize),
    responseTime: () => responseTime,
  });
  const state = new WalkState({
    endpoint,
    until,
    onAnomaly: (event) => client.onEvent({ kind: "walk", endpoint, event }),
  });

  /** Whether the service has nothing older than the oldest row, after a page that may be the last. */
  function isEndOfHistory(oldestTs: Micros, { rows, nextId }: P): boolean {
    options.extend?.(oldestTs - cadence);
    if (state.isOldestRepeated || oldestTs === options.knownEnd) return true;
    // Rows are one cadence apart: no older row fits if the oldest row is closer to `from` than that.
    const isCloseToFrom = oldestTs - options.from < cadence;
    const isEmptyAtOldest = state.isAtOldest && rows === 0 && nextId === undefined;
    return (isCloseToFrom || isEmptyAtOldest) && missingRows.hasLeftWindow(oldestTs);
  }

  for (;;) {
    // Another walk took over what is left below.
    if (state.lowerBound < options.from) return;
    const { link } = state;
    const { size = MAX_PAGE_SIZE } = options;
    const isContinued = state.oldestTs !== undefined;
    const provenFrom = state.oldestTs === undefined ? coverageEnd : state.oldestTs + 1;
    const begin = { link, provenFrom, isContinued, size };
    let page: P;
    try {
      page = await requestRows(state.anchor, size, state.cursor);
    } catch (error) {
      if (link === "timestamp" || !isDeadCursorError(error)) throw error;
      state.handleDeadCursor();
      continue;
    }
    if (!state.acceptsForeign(page) || !state.acceptsOrder(page)) continue;
    const silence = state.movesForward(page) ? "missing" : await missingRows.checkSilence(page, state);
    if (silence === "missing") {
      state.handleContradiction();
      continue;
    }
    if (state.shouldRetryBlankPage(page)) continue;

    const isOlder = state.accept(page, size);
    const { rows, nextId } = page;
    if (options.isExploring && number === 0 && rows === 0 && nextId === undefined) return;
    const toResult = (end: PagePosition["end"]) => {
      const isSilenceConfirmed = silence === "confirmed" || (rows === 0 && end === "exhausted");
      const acceptsForeign = state.isForeignAccepted(page);
      const judged = { number: ++number, madeAt, end, isSilenceConfirmed, acceptsForeign };
      return { page, position: { ...begin, ...judged, from: options.from } };
    };
    const { lowerBound } = state;
    if (lowerBound < options.from) options.extend?.(lowerBound);
    if (lowerBound < options.from) return yield toResult("reached");

    // If cursors are inclusive, the last row's cursor returns that row again and again: this may be the end.
    const mayBeEnd =
      nextId === undefined || (state.oldestTs !== undefined && !isOlder && state.isRepeating(nextId));
    if (mayBeEnd) {
      const { oldestTs } = state;
      const isEnd =
        oldestTs === undefined
          ? rows === 0 && (await missingRows.isEmptyHistory(state.anchor))
          : isEndOfHistory(oldestTs, page);
      if (isEnd) return yield toResult("exhausted");
      if (oldestTs !== undefined && !state.isAtOldest) {
        if (rows > 0) yield toResult(undefined);
        state.restartAtEnd(isOlder);
        continue;
      }
    }
    if (nextId === undefined || (mayBeEnd && rows === 0)) {
      if (rows > 0 && state.oldestTs !== undefined) yield toResult(undefined);
      state.handleFalseEnd(rows);
    } else {
      yield toResult(undefined);
      state.followCursor(nextId, rows);
    }
  }
}
