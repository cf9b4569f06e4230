import { type HistoryEndpoint, streamOfEndpoint, streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { PageFacts } from "./page.ts";
import { downToMillisecond, momentThatFinds } from "./page.ts";

/** Where a page was asked for. */
export interface Standing {
  /** `timestamp`: by `anchor` alone. */
  readonly link: "timestamp" | "cursor";
  readonly anchor: Micros;
  /** The oldest row that the walk has been given; undefined before the first. */
  readonly lowest: Micros | undefined;
}

export interface Doubting {
  readonly endpoint: HistoryEndpoint;
  /** All rows are of one index, which has one at a time. */
  readonly isOneIndex: boolean;
  readonly cadence: Micros;
  /** Nothing is claimed from here on. */
  readonly claimedTo: Micros;
  /** A small page by timestamp alone. */
  readonly probe: (moment: Micros, size: number) => Promise<PageFacts>;
  /** The service's time at its last answer; undefined where it does not say. */
  readonly servedAt: () => Micros | undefined;
}

/** One answer alone must not prove what it leaves out: where it claims much, a second, smaller question is asked. */
export interface Doubts {
  /**
   * Whether rows are missing between the page and what came before it: pages may have been swapped, emptied, or cut at
   * the wrong end. A service that cannot say the same thing twice is not believed either.
   */
  leavesOutRows(page: PageFacts, standing: Standing): Promise<boolean>;
  /** Whether there really is nothing older, when a page says so. */
  isServedOut(standing: Standing): Promise<boolean>;
}

/**
 * More than one row, so that a service which sorts the other way shows itself and an unreadable row hides nothing; fewer
 * than ten, which a service that ignores `size` would give.
 */
const PROBE_SIZE = 5;
/** Rows further apart than this, in periods, may have others between them. */
const SUSPICIOUS_DISTANCE = 1.5;
/** The service's `Date` counts whole seconds, and its window moves on while an answer travels. */
const WINDOW_MARGIN = 60 * MICROS_PER_SECOND;

const isNothing = ({ rows, nextId }: PageFacts) => rows === 0 && nextId === undefined;

export function createDoubts(doubting: Doubting): Doubts {
  const { endpoint, isOneIndex, cadence, claimedTo, probe, servedAt } = doubting;

  /** Where the page's newest row should be found again; undefined: it follows closely, and needs no second look. */
  function suspicion(newest: Micros, { link, anchor, lowest }: Standing): Micros | undefined {
    const most = cadence * SUSPICIOUS_DISTANCE;
    if (lowest === undefined) return claimedTo - newest > most ? anchor : undefined;
    // Asked by its own timestamp, the oldest row comes first, unless it was deleted since.
    if (link === "timestamp") return newest < lowest ? anchor : undefined;
    return lowest - newest > most ? downToMillisecond(lowest - 1) : undefined;
  }

  /** Only what has left the window may be gone a moment after it was served. */
  function hasLeftWindow(row: Micros): boolean {
    const now = servedAt();
    const { window } = streamTable[streamOfEndpoint(endpoint)];
    return window !== null && now !== undefined && row < now - window + WINDOW_MARGIN;
  }

  return {
    async leavesOutRows({ newest, descending }, standing) {
      // A page in disorder proves nothing anyway.
      if (newest === undefined || !descending) return false;
      const moment = suspicion(newest, standing);
      if (moment === undefined) return false;
      const answer = await probe(moment, PROBE_SIZE);
      return !answer.descending || answer.newest !== newest;
    },

    async isServedOut({ anchor, lowest }) {
      // Nothing anywhere is the largest claim of all, with no row to hold it against: it takes three answers.
      if (lowest === undefined)
        return isNothing(await probe(anchor, PROBE_SIZE)) && isNothing(await probe(anchor, PROBE_SIZE + 1));
      // Rows that tie with the oldest may fill any page: only what lies below it tells.
      if (!isOneIndex) return isNothing(await probe(downToMillisecond(lowest - 1), PROBE_SIZE));
      const { rows, nextId, oldest } = await probe(momentThatFinds(endpoint, lowest), PROBE_SIZE);
      if (rows === 0) return nextId === undefined && hasLeftWindow(lowest);
      // Nothing at all would be said by a service that is ill, too; the oldest row standing alone is not.
      return oldest === lowest && rows < PROBE_SIZE;
    },
  };
}
