import type { Body } from "../model/body.ts";
import {
  formatInstant,
  MICROS_PER_DAY,
  MICROS_PER_MS,
  MICROS_PER_SECOND,
  type Micros,
} from "../model/instant.ts";
import type { Priority, Query } from "./endpoints.ts";
import type { WalkTrouble } from "./observation.ts";
import { EMPTY_PAGES_FOLLOWED, isDeadCursor, paginationCycle } from "./pagination-trouble.ts";
import type { Requests } from "./service-client.ts";

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
  readonly endpoint: "/index-ticker" | "/ohlcv";
  /** Sent with every page. */
  readonly filters: Query;
  /** The walk ends with the first page that goes below this moment. */
  readonly from: Micros;
  /** The walk starts here and goes back. Exclusive: whether the service includes it is not said. */
  readonly until: Micros;
  /** How far apart rows usually are; 30 seconds, or a day for OHLCV, unless told. */
  readonly cadence?: Micros;
  readonly size?: number;
  readonly priority?: Priority;
  readonly signal?: AbortSignal;
}

const LARGEST_SIZE = 2000;
/** What a service that ignores `size` would give: fewer rows than this were not cut off by any page size. */
const DEFAULT_SIZE = 10;
/** The same page is asked for again so often while the service sends another. */
const CONTRADICTIONS_BORNE = 3;
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
  // One index has one row at a time, so an end less than a period above the start cannot hide another.
  const edge = filters.indexId === undefined ? 0 : cadence;
  const cursorsSeen = new Set<string>();
  let anchor = upToMillisecond(until);
  let lowest: Micros | undefined;
  let cursor: string | undefined;
  let number = 0;
  let emptyPages = 0;
  let beganAnew = false;
  let contradictions = 0;
  /** The service has shown that disorder is its way, so the same page need not be asked for again. */
  let disorderBorne = false;
  let previousRows = size;
  let sizeIgnored = false;

  const note = (event: WalkTrouble) => client.observe({ kind: "walk", endpoint, event });

  /** Whether going on from the oldest row's timestamp would ask something that was not asked before. */
  const canBeginAnew = () => lowest !== undefined && upToMillisecond(lowest + 1) < anchor;

  /** `size` counts only beside a timestamp, and beside a cursor the timestamp does not move the position: both, always. */
  function ask(moment: Micros, startAfter: string | undefined, most: number): Promise<P> {
    const query = { ...filters, timestamp: formatMillisecond(moment), size: most, startAfter };
    return client.request({ endpoint, query, priority: walk.priority ?? 0, signal: walk.signal }, read);
  }

  /** Pages may have been swapped. Where the distance to what came before is suspicious, a small question tells. */
  async function leavesOutRows(newest: Micros | undefined): Promise<boolean> {
    const [above, most] = lowest === undefined ? [until, cadence * (size / 2)] : [lowest, cadence * 1.5];
    if (newest === undefined || above - newest <= most) return false;
    const answered = (await ask(downToMillisecond(above - 1), undefined, 1)).newest;
    return answered !== undefined && answered > newest;
  }

  function beginAnew(event: WalkTrouble, why: string): void {
    note(event);
    if (lowest === undefined || !canBeginAnew()) throw paginationCycle(endpoint, why);
    // Inclusive of the oldest row, whose ties may not have come yet, even if the service takes the bound as exclusive.
    anchor = upToMillisecond(lowest + 1);
    cursor = undefined;
    emptyPages = 0;
    beganAnew = true;
  }

  for (;;) {
    const link = cursor === undefined ? "timestamp" : "cursor";
    const ceiling = lowest === undefined ? until : lowest + 1;
    let page: P;
    try {
      page = await ask(anchor, cursor, size);
    } catch (error) {
      if (cursor === undefined || !isDeadCursor(error)) throw error;
      beginAnew("dead_cursor", "its cursor is dead");
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
    if (repeats || (await leavesOutRows(newest))) {
      if (++contradictions > CONTRADICTIONS_BORNE)
        throw paginationCycle(endpoint, "its pages contradict each other");
      if (canBeginAnew()) beginAnew("contradiction", "its pages contradict each other");
      else note("contradiction");
      continue;
    }

    contradictions = 0;
    number++;
    const older = oldest !== undefined && (lowest === undefined || oldest < lowest);
    const allTied = oldest !== undefined && oldest === newest && oldest === lowest;
    if (older) lowest = oldest;
    if (!sizeIgnored && link === "cursor" && rows > 0 && previousRows < size) {
      sizeIgnored = true;
      note("size_ignored");
    }
    if (rows > 0) previousRows = rows;
    const at = (end: PagePosition["end"]) => ({ page, position: { number, link, ceiling, end } as const });

    // In a disordered page one stray old row proves nothing about the others.
    const lowerBound = descending ? oldest : newest;
    if (lowerBound !== undefined && lowerBound < from) return yield at("reached");

    if (rows === 0 && nextId === undefined) {
      // After a cursor this is an end, or a cursor whose record is gone; a timestamp tells the two apart.
      const doubtful = link === "cursor" && lowest !== undefined && lowest - from >= edge && canBeginAnew();
      if (!doubtful) return yield at("served_out");
      yield at(undefined);
      beginAnew("dead_cursor", "its cursor is dead");
      continue;
    }
    if (nextId === undefined) return yield at("served_out");

    if (cursorsSeen.has(nextId)) {
      // Asked by its timestamp, the oldest row stands alone: the service has said all, only not where it ends.
      const nothingOlder =
        link === "timestamp" && beganAnew && allTied && rows < Math.min(size, DEFAULT_SIZE);
      if (nothingOlder) return yield at("served_out");
      yield at(undefined);
      beginAnew("cycle", "its cursors go round in a circle");
      continue;
    }
    yield at(undefined);
    emptyPages = rows === 0 ? emptyPages + 1 : 0;
    if (emptyPages > EMPTY_PAGES_FOLLOWED) {
      beginAnew("empty_pages", "only empty pages follow");
      continue;
    }
    cursorsSeen.add(nextId);
    cursor = nextId;
  }
}

function downToMillisecond(moment: Micros): Micros {
  return Math.floor(moment / MICROS_PER_MS) * MICROS_PER_MS;
}

function upToMillisecond(moment: Micros): Micros {
  return Math.ceil(moment / MICROS_PER_MS) * MICROS_PER_MS;
}

/** Three digits of a second, which every reader of ISO 8601 takes. */
function formatMillisecond(moment: Micros): string {
  return `${formatInstant(moment).slice(0, 23)}Z`;
}
