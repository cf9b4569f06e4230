import {
  type HistoryEndpoint,
  streamOfEndpoint,
  streamTable,
  WINDOW_MARGIN_MICROS,
} from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { isSaidEnough, type Repeated } from "../../rule/repetition.ts";
import { floorToMillisecond, type PageSummary } from "./request-page.ts";
import type { WalkState } from "./walk-state.ts";

/** How far apart the rows of a series are usually. Shared by the walks of one series, which learn it from its pages. */
export interface RowSpacing {
  /** Two neighbouring rows are at most this far apart: the cadence, until a page shows that it is more. */
  maxDistance: Micros;
}

/** The state of the walk when it requests a page. */
type WalkProgress = Pick<WalkState, "link" | "anchor" | "oldestTs">;

interface MissingRowCheckOptions {
  readonly endpoint: HistoryEndpoint;
  readonly spacing: RowSpacing;
  /** The walk claims no coverage from this timestamp on. */
  readonly coverageEnd: Micros;
  /** A longer silence above the newest row is confirmed, however far apart the rows are. */
  readonly maxSilence: Micros;
  /** Requests a small page by timestamp alone. */
  readonly probe: (ts: Micros, size: number) => Promise<PageSummary>;
  /** The service's time at its last response; undefined if it sends none. */
  readonly responseTime: () => Micros | undefined;
}

/**
 * More than one row, to notice a wrong sort order or an unreadable row; fewer than ten, the page size of a
 * service that ignores `size`.
 */
const PROBE_SIZE = 5;
/** If two rows are further apart, rows may be missing between them. */
const MAX_ROW_DISTANCE_PERIODS = 1.5;

const isEmptyLastPage = ({ rows, nextId }: PageSummary) => rows === 0 && nextId === undefined;

/** A single response must not prove that rows do not exist: a second, smaller request has to confirm it. */
export function createMissingRowChecks(options: MissingRowCheckOptions) {
  const { endpoint, spacing, coverageEnd, maxSilence, probe, responseTime } = options;

  /** The timestamp at which a probe should find the newest row again; undefined if no probe is needed. */
  function probeTimestamp(newest: Micros, { link, anchor, oldestTs }: WalkProgress): Micros | undefined {
    const maxDistance = spacing.maxDistance * MAX_ROW_DISTANCE_PERIODS;
    if (oldestTs === undefined)
      return coverageEnd - newest > Math.min(maxDistance, maxSilence) ? anchor : undefined;
    // A page requested at the oldest row's timestamp starts with that row, unless the service deleted it.
    if (link === "timestamp") return newest < oldestTs ? anchor : undefined;
    return oldestTs - newest > maxDistance ? floorToMillisecond(oldestTs - 1) : undefined;
  }

  /** Asks with another size each time, since a cache may repeat an answer. */
  async function isRepeated(what: Repeated, ts: Micros, isEqual: (probed: PageSummary) => boolean) {
    for (let answers = 1; !isSaidEnough(what, answers); answers++)
      if (!isEqual(await probe(ts, PROBE_SIZE + answers - 1))) return false;
    return true;
  }

  return {
    /**
     * Whether rows are missing between the previous page and this one: the service may have swapped, emptied or truncated pages.
     * `confirmed`: a probe showed that none are; `missing`: it contradicts the page. An unordered page proves nothing anyway.
     */
    async checkSilence(page: PageSummary, progress: WalkProgress) {
      const { newest, rowDistance = 0, isDescending } = page;
      const ts = newest === undefined || !isDescending ? undefined : probeTimestamp(newest, progress);
      if (ts === undefined) return "short";
      const isEqual = (probed: PageSummary) => probed.isDescending && probed.newest === newest;
      if (!(await isRepeated("silence", ts, isEqual))) return "missing";
      // Learn only from a confirmed page: one that lacks rows would hide that the next page lacks some too.
      spacing.maxDistance = Math.max(spacing.maxDistance, rowDistance);
      return "confirmed";
    },

    /** Confirms an empty page that was requested at `anchor`: no row can, so further responses must agree. */
    isEmptyHistory: (anchor: Micros) => isRepeated("empty history", anchor, isEmptyLastPage),

    /** Whether the service may have deleted this row since it sent it: only because it left the window. */
    hasLeftWindow(ts: Micros): boolean {
      const now = responseTime();
      const { window } = streamTable[streamOfEndpoint(endpoint)];
      return window !== null && now !== undefined && ts < now - window + WINDOW_MARGIN_MICROS;
    },
  };
}
