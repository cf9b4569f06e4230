import type { HistoryEndpoint } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { isSaidEnough } from "../../rule/repetition.ts";
import type { WalkAnomaly } from "../http/client-events.ts";
import { MAX_FRUITLESS_PAGES, REPEATED } from "../limits.ts";
import {
  anchorForRow,
  CursorTrail,
  ceilToMillisecond,
  type PageSummary,
  paginationCycleFailure,
} from "./request-page.ts";

interface WalkStateOptions {
  readonly endpoint: HistoryEndpoint;
  readonly until: Micros;
  readonly onAnomaly: (event: WalkAnomaly) => void;
}

/**
 * The position and the anomaly counters of a walk. Throws `pagination_cycle` when the pages make no progress.
 */
export class WalkState {
  readonly #options: WalkStateOptions;
  #cursors = new CursorTrail();
  anchor: Micros;
  /** The oldest row received so far. */
  oldestTs: Micros | undefined;
  /** The last page has everything down to here; infinite if it has no rows. */
  lowerBound: Micros = Number.POSITIVE_INFINITY;
  cursor: string | undefined;
  #blankFirstPages = 0;
  /** Accepted pages since the last older row. */
  #stalledPages = 0;
  #contradictions = 0;
  /** Whether the oldest row's timestamp has been requested: only that shows what is beside the row, and below it. */
  isAtOldest = false;
  /** Whether a page at that timestamp ended with exactly the oldest row: a failing service may send an empty page instead. */
  isOldestRepeated = false;
  /** The service sends unordered pages every time: do not request them again. */
  #isDisorderAccepted = false;
  /** The last page with records of other series. */
  #foreignPage: PageSummary | undefined;
  #equalPages = 0;
  #isForeignAccepted = false;
  /** The previous page with rows had fewer than requested. */
  #wasShort = false;
  #isSizeIgnored = false;

  constructor(options: WalkStateOptions) {
    this.#options = options;
    this.anchor = ceilToMillisecond(options.until);
  }

  /** `timestamp`: the next page is requested by `anchor` alone. */
  get link(): "timestamp" | "cursor" {
    return this.cursor === undefined ? "timestamp" : "cursor";
  }

  /** Whether a restart at the oldest row's timestamp would be a new request. */
  get canRestart(): boolean {
    const { endpoint } = this.#options;
    return this.oldestTs !== undefined && anchorForRow(endpoint, this.oldestTs) < this.anchor;
  }

  /** False: the page is unordered and should be requested again. */
  acceptsOrder({ isDescending }: PageSummary): boolean {
    if (isDescending || this.#isDisorderAccepted) return true;
    this.#options.onAnomaly("unordered");
    this.#isDisorderAccepted = isSaidEnough("disorder", ++this.#contradictions);
    return this.#isDisorderAccepted;
  }

  /**
   * False: the page has records of other series and should be requested again, since they may be in the place of its own.
   * Equal pages show that the service always sends them. If most are, it ignores the filter: the caller judges that.
   */
  acceptsForeign(page: PageSummary): boolean {
    const { foreign = 0, rows } = page;
    if (foreign === 0 || this.#isForeignAccepted || foreign > Math.max(rows, 1)) return true;
    const isEqual = this.#foreignPage !== undefined && isEqualPage(this.#foreignPage, page);
    this.#equalPages = isEqual ? this.#equalPages + 1 : 1;
    this.#foreignPage = page;
    this.#isForeignAccepted = isSaidEnough("foreign records", this.#equalPages);
    if (this.#isForeignAccepted) return true;
    this.#options.onAnomaly("contradiction");
    return ++this.#contradictions > REPEATED;
  }

  /** Whether records of other series are no reason to distrust this page. */
  isForeignAccepted({ foreign = 0, rows }: PageSummary): boolean {
    return this.#isForeignAccepted && foreign <= Math.max(rows, 1);
  }

  /** A page after a cursor must not have newer rows than the page before. */
  movesForward({ newest }: PageSummary): boolean {
    return (
      this.link === "cursor" && newest !== undefined && this.oldestTs !== undefined && newest > this.oldestTs
    );
  }

  /** Whether to request an empty first page again: the walk cannot detect which rows such a page lacks. */
  shouldRetryBlankPage({ oldest, nextId }: PageSummary): boolean {
    const isBlank = this.oldestTs === undefined && this.link === "timestamp" && oldest === undefined;
    if (!isBlank || nextId === undefined) return false;
    if (isSaidEnough("blank first page", ++this.#blankFirstPages)) return false;
    this.#options.onAnomaly("empty_pages");
    return true;
  }

  /** Returns whether the page has an older row than all before. */
  accept(page: PageSummary, size: number): boolean {
    const { rows, oldest } = page;
    const { onAnomaly } = this.#options;
    // The commit of an unordered page fails, whatever it has reached.
    this.lowerBound = oldest ?? Number.POSITIVE_INFINITY;
    const isOlder = oldest !== undefined && (this.oldestTs === undefined || oldest < this.oldestTs);
    if (isOlder) {
      this.oldestTs = oldest;
      this.#contradictions = 0;
      this.#stalledPages = 0;
      this.isAtOldest = false;
      this.isOldestRepeated = false;
    } else {
      this.#stalledPages++;
      this.isOldestRepeated ||= this.isAtOldest && this.#endsAtOldest(page);
    }
    if (!this.#isSizeIgnored && this.link === "cursor" && rows > 0 && this.#wasShort) {
      this.#isSizeIgnored = true;
      onAnomaly("size_ignored");
    }
    if (rows > 0) this.#wasShort = rows < size;
    return isOlder;
  }

  /** Whether this cursor leads only to rows that were received already. */
  isRepeating(nextId: string): boolean {
    return this.#cursors.has(nextId) || this.#isStalled;
  }

  /** Goes to the next page; restarts at the oldest row's timestamp if the cursor makes no progress. */
  followCursor(nextId: string, rows: number): void {
    const anomaly = this.#cursors.check(nextId, rows);
    if (anomaly) this.#restart(anomaly.event, anomaly.reason);
    else if (this.#isStalled) this.#restart("no_progress", "no page has older rows");
    else {
      this.#cursors.follow(nextId);
      this.cursor = nextId;
    }
  }

  /** The page may be the last: asks for the oldest row's timestamp, which shows it. */
  restartAtEnd(isOlder: boolean): void {
    if (this.#isStalled) this.#options.onAnomaly("no_progress");
    this.#cursors = new CursorTrail();
    // It led to nothing: the same cursor again confirms that.
    if (!isOlder && this.cursor !== undefined) this.#cursors.follow(this.cursor);
    this.#moveToOldest();
  }

  handleDeadCursor(): void {
    this.#restartOrRepeat("dead_cursor", "the service rejects its cursor");
  }

  /** The page claims to be the last, but a second request did not confirm it. */
  handleFalseEnd(rows: number): void {
    const event = rows === 0 ? "dead_cursor" : "contradiction";
    this.#restartOrRepeat(event, "a page without nextId is not the last");
  }

  #restartOrRepeat(event: WalkAnomaly, why: string): void {
    if (this.canRestart) this.#restart(event, why);
    else this.handleContradiction();
  }

  /** The page contradicts other responses: restart at the oldest row, or request the anchor again. */
  handleContradiction(): void {
    const { endpoint, onAnomaly } = this.#options;
    const why = "pages contradict each other";
    if (++this.#contradictions > REPEATED) throw paginationCycleFailure(endpoint, why);
    if (this.canRestart) {
      this.#restart("contradiction", why);
      return;
    }
    onAnomaly("contradiction");
    if (this.cursor !== undefined) this.#cursors.forget(this.cursor);
    this.cursor = undefined;
  }

  /** A page that has rows above the anchor ignores it, and shows nothing. */
  #endsAtOldest({ newest = Number.POSITIVE_INFINITY, oldest }: PageSummary): boolean {
    return newest <= this.anchor && oldest === this.oldestTs;
  }

  get #isStalled(): boolean {
    return this.#stalledPages > MAX_FRUITLESS_PAGES;
  }

  #restart(event: WalkAnomaly, why: string): void {
    const { endpoint, onAnomaly } = this.#options;
    onAnomaly(event);
    if (!this.canRestart) throw paginationCycleFailure(endpoint, why);
    this.#moveToOldest();
  }

  /** Includes the oldest row: other rows with its timestamp may be missing. */
  #moveToOldest(): void {
    if (this.oldestTs !== undefined)
      this.anchor = Math.min(this.anchor, anchorForRow(this.#options.endpoint, this.oldestTs));
    this.isAtOldest = true;
    this.cursor = undefined;
    this.#cursors.forgetEmptyPages();
    this.#stalledPages = 0;
  }
}

function isEqualPage(a: PageSummary, b: PageSummary): boolean {
  return (["rows", "foreign", "newest", "oldest", "nextId"] as const).every((name) => a[name] === b[name]);
}
