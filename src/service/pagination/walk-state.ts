import type { HistoryEndpoint } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { WalkTrouble } from "../http/events.ts";
import type { Standing } from "./cross-checks.ts";
import type { PageFacts } from "./page.ts";
import { EMPTY_PAGES_FOLLOWED, momentThatFinds, paginationCycle, upToMillisecond } from "./page.ts";

export interface Route {
  readonly endpoint: HistoryEndpoint;
  readonly until: Micros;
  /** Rows asked for with each page. */
  readonly size: number;
  /** All rows are of one index, which has one at a time. */
  readonly isOneIndex: boolean;
  readonly note: (event: WalkTrouble) => void;
}

/** The same page is asked for again so often while the service sends another. */
const CONTRADICTIONS_BORNE = 3;
/** A first page without a row, but with a next one, is asked for so often before its cursor is followed. */
const BLANK_STARTS = 3;
/** Pages in a row that bring nothing older, of one index. */
const STALLS_BORNE = 5;
/** The same where rows tie: thousands may share a moment, and ten may be on a page. */
const TIED_STALLS_BORNE = 1000;

/** Where a walk stands and how its pages have led it there. Whatever moves it throws when they lead nowhere. */
export class WalkTrail implements Standing {
  readonly #route: Route;
  readonly #cursorsSeen = new Set<string>();
  #anchor: Micros;
  #lowest: Micros | undefined;
  #cursor: string | undefined;
  #blankStarts = 0;
  #emptyPages = 0;
  /** Accepted pages since the last that brought an older row. */
  #stalls = 0;
  #contradictions = 0;
  /** The service has shown that disorder is its way, so the same page need not be asked for again. */
  #isDisorderBorne = false;
  #rowsBefore: number;
  #isSizeIgnored = false;

  constructor(route: Route) {
    this.#route = route;
    this.#anchor = upToMillisecond(route.until);
    this.#rowsBefore = route.size;
  }

  get link(): Standing["link"] {
    return this.#cursor === undefined ? "timestamp" : "cursor";
  }

  get anchor(): Micros {
    return this.#anchor;
  }

  get cursor(): string | undefined {
    return this.#cursor;
  }

  get lowest(): Micros | undefined {
    return this.#lowest;
  }

  /** Whether going on from the oldest row's timestamp would ask something that was not asked before. */
  get canBeginAnew(): boolean {
    const { endpoint } = this.#route;
    return this.#lowest !== undefined && momentThatFinds(endpoint, this.#lowest) < this.#anchor;
  }

  /** Whether the page's order will do, or is to be asked for once more. */
  bearsOrderOf({ descending }: PageFacts): boolean {
    if (descending || this.#isDisorderBorne) return true;
    this.#route.note("unordered");
    this.#isDisorderBorne = ++this.#contradictions > CONTRADICTIONS_BORNE;
    return this.#isDisorderBorne;
  }

  /** What follows a cursor is never newer than what came before it. */
  goesBackUp({ newest }: PageFacts): boolean {
    return (
      this.link === "cursor" && newest !== undefined && this.#lowest !== undefined && newest > this.#lowest
    );
  }

  /** A first page without rows: its cursor may well be right, but what was left off the page would never be missed. */
  mistrustsBlank({ oldest, nextId }: PageFacts): boolean {
    const isBlank = this.#lowest === undefined && this.link === "timestamp" && oldest === undefined;
    if (!isBlank || nextId === undefined || ++this.#blankStarts >= BLANK_STARTS) return false;
    this.#route.note("empty_pages");
    return true;
  }

  /** The page is believed; returns whether it goes further back than those before. */
  take({ rows, oldest }: PageFacts): boolean {
    const { size, note } = this.#route;
    const isOlder = oldest !== undefined && (this.#lowest === undefined || oldest < this.#lowest);
    if (isOlder) {
      this.#lowest = oldest;
      this.#contradictions = 0;
      this.#stalls = 0;
    } else this.#stalls++;
    if (!this.#isSizeIgnored && this.link === "cursor" && rows > 0 && this.#rowsBefore < size) {
      this.#isSizeIgnored = true;
      note("size_ignored");
    }
    if (rows > 0) this.#rowsBefore = rows;
    return isOlder;
  }

  /** Whether following this cursor would bring nothing that has not come already. */
  goesRound(nextId: string): boolean {
    return this.#cursorsSeen.has(nextId) || this.#isStalled;
  }

  /** On to the page after one that had so many rows; from the oldest row's timestamp if that one leads nowhere. */
  follow(nextId: string, rows: number): void {
    this.#emptyPages = rows === 0 ? this.#emptyPages + 1 : 0;
    if (this.#cursorsSeen.has(nextId)) this.#beginAnew("cycle", "its cursors go round in a circle");
    else if (this.#emptyPages > EMPTY_PAGES_FOLLOWED)
      this.#beginAnew("empty_pages", "only empty pages follow");
    else if (this.#isStalled) this.#beginAnew("no_progress", "they bring nothing older");
    else {
      this.#cursorsSeen.add(nextId);
      this.#cursor = nextId;
    }
  }

  /** The service knows the cursor no more. */
  loseCursor(): void {
    if (this.canBeginAnew) this.#beginAnew("dead_cursor", "its cursor is dead");
    else this.contradict();
  }

  /** A last page, of so many rows, that cannot be the last. */
  doubtEnd(rows: number): void {
    if (this.canBeginAnew)
      this.#beginAnew(rows === 0 ? "dead_cursor" : "contradiction", "it ends before its end");
    else this.contradict();
  }

  /** The page does not fit the service's other answers: back to where the walk last stood firm. */
  contradict(): void {
    const { endpoint, note } = this.#route;
    const why = "its pages contradict each other";
    if (++this.#contradictions > CONTRADICTIONS_BORNE) throw paginationCycle(endpoint, why);
    if (this.canBeginAnew) {
      this.#beginAnew("contradiction", why);
      return;
    }
    note("contradiction");
    // The cursor led nowhere, so to be named again makes no circle.
    if (this.#cursor !== undefined) this.#cursorsSeen.delete(this.#cursor);
    this.#cursor = undefined;
  }

  get #isStalled(): boolean {
    return this.#stalls > (this.#route.isOneIndex ? STALLS_BORNE : TIED_STALLS_BORNE);
  }

  #beginAnew(event: WalkTrouble, why: string): void {
    const { endpoint, note } = this.#route;
    note(event);
    if (this.#lowest === undefined || !this.canBeginAnew) throw paginationCycle(endpoint, why);
    // Inclusive of the oldest row, whose ties may not have come yet.
    this.#anchor = momentThatFinds(endpoint, this.#lowest);
    this.#cursor = undefined;
    this.#emptyPages = 0;
    this.#stalls = 0;
  }
}
