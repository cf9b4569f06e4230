import type { Body } from "../../model/response-body.ts";
import {
  DEFAULT_CADENCE,
  type HistoryEndpoint,
  MAX_PAGE_SIZE,
  streamOfEndpoint,
  streamTable,
} from "../../model/streams.ts";
import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { Requests } from "../client/client.ts";
import type { Priority, Query } from "../http/request.ts";
import { createDoubts } from "./cross-checks.ts";
import type { PageFacts } from "./page.ts";
import { formatMillisecond, isDeadCursor } from "./page.ts";
import { WalkTrail } from "./walk-state.ts";

/** What the walk knows about a page: enough to say what it proves. */
export interface PagePosition {
  /** From 1. */
  readonly number: number;
  /** `timestamp`: the walk's first page, or it began anew here; `cursor`: the page continues the one before. */
  readonly link: "timestamp" | "cursor";
  /** Exclusive. Below it, down to its own oldest row, the page has everything that the service serves. */
  readonly ceiling: Micros;
  /** `reached`: it goes below the walk's start; `served_out`: the service has nothing older; undefined: pages follow. */
  readonly end: "reached" | "served_out" | undefined;
}

export interface Walk {
  readonly endpoint: HistoryEndpoint;
  /** Sent with every page. */
  readonly filters: Query;
  /** The walk ends with the first page that goes below this moment. */
  readonly from: Micros;
  /** The walk starts here and goes back. Exclusive: whether the service includes it is not said. */
  readonly until: Micros;
  /** Nothing from here on will be claimed, so what the first page lacks above it is no matter; `until` unless told. */
  readonly claimedTo?: Micros;
  /** How far apart rows usually are; 30 seconds, or a day for OHLCV, unless told. */
  readonly cadence?: Micros;
  readonly size?: number;
  readonly priority?: Priority;
  readonly signal?: AbortSignal;
}

/**
 * Pages of one series from `until` back to `from`, each as soon as it has been read. What `read` was given need not
 * come out: a page that contradicts the service's other answers is asked for again instead.
 */
export async function* walkBackwards<P extends PageFacts>(
  client: Requests,
  walk: Walk,
  read: (body: Body) => Promise<P>,
): AsyncGenerator<{ readonly page: P; readonly position: PagePosition }, void, void> {
  const { endpoint, filters, from, until, size = MAX_PAGE_SIZE } = walk;
  const cadence = walk.cadence ?? streamTable[streamOfEndpoint(endpoint)].cadence ?? DEFAULT_CADENCE;
  const claimedTo = Math.min(walk.claimedTo ?? until, until);
  const isOneIndex = filters.indexId !== undefined;
  // One index has one row at a time, so an end less than a period above the start cannot hide another.
  const edge = isOneIndex ? cadence : 0;
  let number = 0;
  let servedAt: Micros | undefined;

  /** `size` counts only beside a timestamp, and beside a cursor the timestamp does not move the position: both, always. */
  function ask(moment: Micros, startAfter: string | undefined, most: number): Promise<P> {
    const query = { ...filters, timestamp: formatMillisecond(moment), size: most, startAfter };
    return client.request({ endpoint, query, priority: walk.priority ?? 0, signal: walk.signal }, (body) => {
      if (body.asOf !== undefined) servedAt = body.asOf * MICROS_PER_MS;
      return read(body);
    });
  }

  const doubts = createDoubts({
    endpoint,
    isOneIndex,
    cadence,
    claimedTo,
    probe: (moment, most) => ask(moment, undefined, most),
    servedAt: () => servedAt,
  });
  const trail = new WalkTrail({
    endpoint,
    until,
    size,
    isOneIndex,
    note: (event) => client.observe({ kind: "walk", endpoint, event }),
  });

  /** Whether the walk may end here: the service has nothing older. */
  async function isServedOut(): Promise<boolean> {
    if (trail.lowest !== undefined && trail.lowest - from < edge) return true;
    // Where rows tie, others of the oldest moment may be missing: it must have been asked for by its timestamp first.
    const mayMissTies = !isOneIndex && trail.canBeginAnew;
    return !mayMissTies && (await doubts.isServedOut(trail));
  }

  for (;;) {
    const { link } = trail;
    const ceiling = trail.lowest === undefined ? claimedTo : trail.lowest + 1;
    let page: P;
    try {
      page = await ask(trail.anchor, trail.cursor, size);
    } catch (error) {
      if (link === "timestamp" || !isDeadCursor(error)) throw error;
      trail.loseCursor();
      continue;
    }
    if (!trail.bearsOrderOf(page)) continue;
    if (trail.goesBackUp(page) || (await doubts.leavesOutRows(page, trail))) {
      trail.contradict();
      continue;
    }
    if (trail.mistrustsBlank(page)) continue;

    const isOlder = trail.take(page);
    const { rows, nextId, oldest, newest, descending } = page;
    const at = (end: PagePosition["end"]) => {
      number++;
      return { page, position: { number, link, ceiling, end } as const };
    };
    // In a disordered page one stray old row proves nothing about the others.
    const lowerBound = descending ? oldest : newest;
    if (lowerBound !== undefined && lowerBound < from) return yield at("reached");

    // A cursor that includes its own row leads back to the last one for ever: an end as good as any, if it is one.
    const mayBeEnd =
      nextId === undefined || (trail.lowest !== undefined && !isOlder && trail.goesRound(nextId));
    if (mayBeEnd && (await isServedOut())) return yield at("served_out");
    if (nextId === undefined) {
      if (rows > 0 && trail.lowest !== undefined) yield at(undefined);
      trail.doubtEnd(rows);
    } else {
      yield at(undefined);
      trail.follow(nextId, rows);
    }
  }
}
