import type { Body } from "../model/body.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, MICROS_PER_SECOND, type Micros } from "../model/instant.ts";
import type { Priority, Query } from "./endpoints.ts";
import type { WalkTrouble } from "./observation.ts";
import type { PageFacts } from "./page-facts.ts";
import { EMPTY_PAGES_FOLLOWED, isDeadCursor, paginationCycle } from "./pagination-trouble.ts";
import type { Requests } from "./service-client.ts";
import { createDoubts } from "./walk-doubts.ts";
import { formatMillisecond, momentThatFinds, upToMillisecond, type WalkedEndpoint } from "./walk-moments.ts";

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
  readonly endpoint: WalkedEndpoint;
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

const LARGEST_SIZE = 2000;
/** The same page is asked for again so often while the service sends another. */
const CONTRADICTIONS_BORNE = 3;
/** A first page without a row, but with a next one, is asked for so often before its cursor is followed. */
const BLANK_STARTS = 3;
/** Pages in a row that bring nothing older, of one index. */
const STALLS_BORNE = 5;
/** The same where rows tie: thousands may share a moment, and ten may be on a page. */
const TIED_STALLS_BORNE = 1000;
const usualCadence = { "/index-ticker": 30 * MICROS_PER_SECOND, "/ohlcv": MICROS_PER_DAY };

/**
 * Pages of one series from `until` back to `from`, each as soon as it has been read. What `read` was given need not
 * come out: a page that contradicts the service's other answers is asked for again instead.
 */
export async function* walkBackwards<P extends PageFacts>(
  client: Requests,
  walk: Walk,
  read: (body: Body) => Promise<P>,
): AsyncGenerator<{ readonly page: P; readonly position: PagePosition }, void, void> {
  const { endpoint, filters, from, until, size = LARGEST_SIZE, cadence = usualCadence[endpoint] } = walk;
  const claimedTo = Math.min(walk.claimedTo ?? until, until);
  const isOneIndex = filters.indexId !== undefined;
  // One index has one row at a time, so an end less than a period above the start cannot hide another.
  const edge = isOneIndex ? cadence : 0;
  const stallsBorne = isOneIndex ? STALLS_BORNE : TIED_STALLS_BORNE;
  const cursorsSeen = new Set<string>();
  let anchor = upToMillisecond(until);
  let lowest: Micros | undefined;
  let cursor: string | undefined;
  let number = 0;
  let emptyPages = 0;
  let blankStarts = 0;
  /** Accepted pages since the last that brought an older row. */
  let stalls = 0;
  let contradictions = 0;
  /** The service has shown that disorder is its way, so the same page need not be asked for again. */
  let disorderBorne = false;
  let previousRows = size;
  let sizeIgnored = false;
  let servedAt: Micros | undefined;

  const note = (event: WalkTrouble) => client.observe({ kind: "walk", endpoint, event });

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

  /** Whether going on from the oldest row's timestamp would ask something that was not asked before. */
  const canBeginAnew = () => lowest !== undefined && momentThatFinds(endpoint, lowest) < anchor;

  function beginAnew(event: WalkTrouble, why: string): void {
    note(event);
    if (lowest === undefined || !canBeginAnew()) throw paginationCycle(endpoint, why);
    // Inclusive of the oldest row, whose ties may not have come yet.
    anchor = momentThatFinds(endpoint, lowest);
    cursor = undefined;
    emptyPages = 0;
    stalls = 0;
  }

  function contradicted(): void {
    const why = "its pages contradict each other";
    if (++contradictions > CONTRADICTIONS_BORNE) throw paginationCycle(endpoint, why);
    if (canBeginAnew()) return void beginAnew("contradiction", why);
    note("contradiction");
    // Back to where the walk last stood firm. The cursor led nowhere, so to be named again makes no circle.
    if (cursor !== undefined) cursorsSeen.delete(cursor);
    cursor = undefined;
  }

  for (;;) {
    const link = cursor === undefined ? "timestamp" : "cursor";
    const ceiling = lowest === undefined ? claimedTo : lowest + 1;
    let page: P;
    try {
      page = await ask(anchor, cursor, size);
    } catch (error) {
      if (cursor === undefined || !isDeadCursor(error)) throw error;
      if (canBeginAnew()) beginAnew("dead_cursor", "its cursor is dead");
      else contradicted();
      continue;
    }
    const { rows, nextId, oldest, newest, descending } = page;

    if (!descending && !disorderBorne) {
      note("unordered");
      disorderBorne = ++contradictions > CONTRADICTIONS_BORNE;
      if (!disorderBorne) continue;
    }
    // What follows a cursor is never newer than what came before it, and leaves out nothing that the service has.
    const repeats = link === "cursor" && newest !== undefined && lowest !== undefined && newest > lowest;
    if (repeats || (await doubts.leavesOutRows(page, { link, anchor, lowest }))) {
      contradicted();
      continue;
    }
    // Its cursor may well be right, but what was left off the page would never be missed.
    const isBlankStart = lowest === undefined && link === "timestamp" && oldest === undefined;
    if (isBlankStart && nextId !== undefined && ++blankStarts < BLANK_STARTS) {
      note("empty_pages");
      continue;
    }

    const isOlder = oldest !== undefined && (lowest === undefined || oldest < lowest);
    if (isOlder) {
      lowest = oldest;
      contradictions = 0;
      stalls = 0;
    } else stalls++;
    if (!sizeIgnored && link === "cursor" && rows > 0 && previousRows < size) {
      sizeIgnored = true;
      note("size_ignored");
    }
    if (rows > 0) previousRows = rows;
    const at = (end: PagePosition["end"]) => {
      number++;
      return { page, position: { number, link, ceiling, end } as const };
    };

    // In a disordered page one stray old row proves nothing about the others.
    const lowerBound = descending ? oldest : newest;
    if (lowerBound !== undefined && lowerBound < from) return yield at("reached");

    const isCycle = nextId !== undefined && cursorsSeen.has(nextId);
    const isStalled = stalls > stallsBorne;
    // A cursor that includes its own row leads back to the last one for ever: an end as good as any, if it is one.
    if (nextId === undefined || (lowest !== undefined && !isOlder && (isCycle || isStalled))) {
      const isTooNear = lowest !== undefined && lowest - from < edge;
      // Where rows tie, others of the oldest moment may be missing: it must have been asked for by its timestamp first.
      const mayMissTies = !isOneIndex && canBeginAnew();
      if (isTooNear || (!mayMissTies && (await doubts.isServedOut({ link, anchor, lowest })))) {
        return yield at("served_out");
      }
    }

    if (nextId === undefined) {
      if (rows > 0 && lowest !== undefined) yield at(undefined);
      if (canBeginAnew()) beginAnew(rows === 0 ? "dead_cursor" : "contradiction", "it ends before its end");
      else contradicted();
      continue;
    }
    yield at(undefined);
    emptyPages = rows === 0 ? emptyPages + 1 : 0;
    if (isCycle) beginAnew("cycle", "its cursors go round in a circle");
    else if (emptyPages > EMPTY_PAGES_FOLLOWED) beginAnew("empty_pages", "only empty pages follow");
    else if (isStalled) beginAnew("no_progress", "they bring nothing older");
    else {
      cursorsSeen.add(nextId);
      cursor = nextId;
    }
  }
}
