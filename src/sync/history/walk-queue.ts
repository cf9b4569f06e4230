import { MAX_PAGE_SIZE } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { REPEATED } from "../../service/limits.ts";
import type { RowSpacing } from "../../service/pagination/missing-row-checks.ts";
import type { PageSummary } from "../../service/pagination/request-page.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";
import { ROWS_PER_PAGE, type SliceWalk, sliceLength, type WalkedSeries } from "./walk-planner.ts";
import type { WalkProgress } from "./walk-slice.ts";

interface WalkEnd {
  /** `empty`: an exploring walk found nothing. */
  readonly kind: "filled" | "empty" | "failed" | "not_found";
  /** The service says that nothing is older: what is below needs no walk, also while that is a pending claim. */
  readonly hasFoundEnd?: boolean;
}

/** What a walk has left must hold so many pages to be split. */
const MIN_SPLIT_PAGES = 8;
/** What may be spent on splits: this many pages, and this fraction of the pages of the series. */
const SPLIT_BUDGET_PAGES = 1;
const SPLIT_BUDGET_FRACTION = 0.015;
/** What a split costs: perhaps the rest of the last page of the walk above it, and a probe of the first below. */
const SPLIT_PAGES = 0.3;
/** The part of a full page that a walk surely advances (see ROWS_PER_PAGE). */
const USABLE_FRACTION = ROWS_PER_PAGE / MAX_PAGE_SIZE;
/** An exploration goes this much further than what is known, so that few find nothing. */
const EXPLORATION_GROWTH = 2;
/** Requests for a series that may find nothing, to learn where its history begins. */
const MAX_EMPTY_EXPLORATIONS = 2;

class QueuedSeries {
  /** Newest first, disjoint. */
  waiting: SliceWalk[];
  readonly active = new Set<ActiveWalk>();
  /** The service has a row at this timestamp: a request at or after it returns rows. */
  oldestRow: Micros | undefined;
  /** A request at this timestamp returned nothing. */
  emptyUntil = Number.NEGATIVE_INFINITY;
  emptyExplorations = 0;
  /** The service confirmed that nothing is older: everything below is settled. */
  endFoundAt = Number.NEGATIVE_INFINITY;
  failures = 0;
  /** Pages spent on rows that another walk has too. */
  overlapPages = 0;
  readonly spacing: RowSpacing;
  /** How long a full page of this series is. */
  pageLength: Micros;
  readonly #top: Micros;

  constructor(waiting: readonly SliceWalk[], cadence: Micros, oldestRow: Micros | undefined) {
    this.waiting = mergeAdjacent(waiting.toSorted((a, b) => b.range.to - a.range.to));
    this.#top = this.waiting[0]?.range.to ?? 0;
    this.oldestRow = oldestRow;
    this.spacing = { maxDistance: cadence };
    this.pageLength = cadence * MAX_PAGE_SIZE;
  }

  /** Whether the walks may meet at one more place. */
  get maySplit(): boolean {
    const expected = this.overlapPages + this.emptyExplorations + this.active.size * SPLIT_PAGES;
    return expected <= SPLIT_BUDGET_PAGES + this.knownPages * SPLIT_BUDGET_FRACTION;
  }

  /** Pages between the newest slice and the oldest known row. */
  get knownPages(): number {
    return this.oldestRow === undefined ? 0 : (this.#top - this.oldestRow) / this.pageLength;
  }

  get isExploring(): boolean {
    return [...this.active].some(({ isExploring }) => isExploring);
  }

  remove(walk: SliceWalk): void {
    this.waiting = this.waiting.filter((other) => other !== walk);
  }

  add(walk: SliceWalk, range: TimeRange): void {
    if (range.from >= range.to || range.to <= this.endFoundAt) return;
    this.waiting = [...this.waiting, { ...walk, range }].sort((a, b) => b.range.to - a.range.to);
  }

  /** The slices that continue below `ts` without a gap. */
  slicesBelow(ts: Micros): SliceWalk[] {
    const below: SliceWalk[] = [];
    let bottom = ts;
    for (const slice of this.waiting) {
      if (slice.range.to !== bottom) continue;
      below.push(slice);
      bottom = slice.range.from;
    }
    return below;
  }
}

/** Merges slices without a gap between them, so that one walk fills them. Newest first. */
function mergeAdjacent(slices: readonly SliceWalk[]): SliceWalk[] {
  const merged: SliceWalk[] = [];
  for (const slice of slices) {
    const above = merged.at(-1);
    if (above?.range.from === slice.range.to && above.urgency === slice.urgency)
      merged.splice(-1, 1, { ...above, range: { from: slice.range.from, to: above.range.to } });
    else merged.push(slice);
  }
  return merged;
}

/** A walk in progress. Its range shrinks when another worker takes over a part, and grows into waiting slices. */
export class ActiveWalk implements WalkProgress {
  readonly walk: SliceWalk;
  readonly series: QueuedSeries;
  readonly #queue: WalkQueue;
  from: Micros;
  /** Everything from here up has been received. */
  position: Micros;
  isExploring: boolean;
  pageCount = 0;
  /** The last page had no cursor. */
  mayBeAtEnd = false;

  constructor(queue: WalkQueue, series: QueuedSeries, walk: SliceWalk, isExploring: boolean) {
    this.#queue = queue;
    this.series = series;
    this.walk = walk;
    this.isExploring = isExploring;
    this.from = walk.range.from;
    this.position = walk.range.to;
  }

  get spacing(): RowSpacing {
    return this.series.spacing;
  }

  get pageSize(): number {
    // The pages of an uneven series may be shorter than the last one, but hardly shorter than the cadence says.
    const pageLength = Math.min(this.series.pageLength, this.walk.series.cadence * MAX_PAGE_SIZE);
    const pages = (this.position - this.reachableFrom) / pageLength;
    return Math.min(MAX_PAGE_SIZE, Math.ceil(pages * MAX_PAGE_SIZE));
  }

  /** The bottom of what this walk can reach: its own range and the waiting slices below. */
  get reachableFrom(): Micros {
    return this.series.slicesBelow(this.from).at(-1)?.range.from ?? this.from;
  }

  extend(lowerBound: Micros): void {
    while (lowerBound < this.from) {
      const below = this.series.waiting.find(({ range }) => range.to === this.from);
      if (!below || this.#queue.hasMoreUrgent(below)) return;
      this.series.remove(below);
      this.from = below.range.from;
    }
  }

  onPage({ rows, oldest, newest, nextId }: PageSummary, size: number): void {
    if (oldest === undefined || newest === undefined) return;
    const { series } = this;
    this.isExploring = false;
    this.pageCount++;
    this.mayBeAtEnd = nextId === undefined;
    this.position = Math.min(this.position, oldest);
    series.oldestRow = Math.min(series.oldestRow ?? oldest, oldest);
    // Fewer rows than requested, and yet not the last page: the service limits the size.
    const pageRows = rows < size && nextId !== undefined ? rows : MAX_PAGE_SIZE;
    if (newest > oldest) series.pageLength = ((newest - oldest) / (rows - 1)) * pageRows;
    this.#queue.notifyChange();
  }
}

/**
 * Hands out the walks of a round so that each request is likely to return new rows. A walk goes on into the slice below,
 * because its last page has rows of it already. A worker without work splits the longest walk. Nothing is requested far
 * below the oldest known row: where a history begins, a walk from above finds out with one request.
 */
export class WalkQueue {
  readonly #rank: (walk: SliceWalk) => number;
  /** Those that are not finished. */
  readonly #series: Set<QueuedSeries>;
  #onChange = Promise.withResolvers<void>();

  /** `findOldestRow`: that of a series which the service is known to have. `rank`: the lowest goes first. */
  constructor(
    walks: readonly SliceWalk[],
    findOldestRow: (series: WalkedSeries) => Micros | undefined,
    rank: (walk: SliceWalk) => number = () => 0,
  ) {
    this.#rank = rank;
    const bySeries = Map.groupBy(walks, ({ series }) => ledgerKeyText(series.key));
    this.#series = new Set(
      [...bySeries.values()].map((own) => {
        const first = own[0] as SliceWalk;
        return new QueuedSeries(own, first.series.cadence, findOldestRow(first.series));
      }),
    );
  }

  /** Whether every slice has been handed out and no walk is in progress. */
  get isDone(): boolean {
    return this.#series.size === 0;
  }

  /** Resolves when `take` may return more. */
  get changed(): Promise<void> {
    return this.#onChange.promise;
  }

  notifyChange(): void {
    this.#onChange.resolve();
    this.#onChange = Promise.withResolvers();
  }

  /** The next walk; undefined: nothing to do at present. */
  take(): ActiveWalk | undefined {
    return this.#takeWaiting() ?? this.#split() ?? this.#explore();
  }

  /** Whether a slice waits that must be filled before this one. */
  hasMoreUrgent(slice: SliceWalk): boolean {
    const rank = this.#rank(slice);
    for (const { waiting, active } of this.#series)
      if (active.size === 0 && waiting.some((other) => this.#rank(other) < rank)) return true;
    return false;
  }

  /** The walk has ended. Returns the slices that need no walk any more, and whether all of the series are filled. */
  finish(active: ActiveWalk, { kind, hasFoundEnd = false }: WalkEnd) {
    const { series, from, position } = active;
    series.active.delete(active);
    series.overlapPages += Math.min(1, Math.max(0, from - position) / series.pageLength);
    let settled: SliceWalk[] = [];
    if (kind === "empty") this.#returnUnexplored(active);
    else if (kind === "failed") {
      // Try the rest: the failure may concern one page only. Without a known row, the series itself may be the cause.
      const to = position - sliceLength(active.walk.series.cadence);
      if (series.oldestRow !== undefined && series.failures++ < REPEATED)
        series.add(active.walk, { from, to });
    } else if (kind === "not_found") settled = series.waiting;
    else if (hasFoundEnd) {
      series.endFoundAt = from;
      settled = series.waiting.filter(({ range }) => range.to <= from);
    }
    series.waiting = series.waiting.filter((slice) => !settled.includes(slice));
    const isFinished = series.waiting.length + series.active.size === 0;
    if (isFinished) this.#series.delete(series);
    this.notifyChange();
    return { settled, isSeriesFilled: isFinished && series.failures === 0 };
  }

  #start(series: QueuedSeries, walk: SliceWalk, isExploring = false): ActiveWalk {
    const active = new ActiveWalk(this, series, walk, isExploring);
    series.active.add(active);
    return active;
  }

  /** The most urgent slice that surely has rows, or is the newest of a series without a walk. */
  #takeWaiting(): ActiveWalk | undefined {
    let best: { series: QueuedSeries; slice: SliceWalk; isExploring: boolean } | undefined;
    for (const series of this.#series) {
      const ends = new Set([...series.active].map(({ from }) => from));
      for (const [at, slice] of series.waiting.entries()) {
        const { oldestRow, emptyExplorations, active } = series;
        const hasRows = oldestRow !== undefined && slice.range.to > oldestRow;
        const isNext = active.size === 0 && at === 0;
        // What expires soon cannot wait for a walk from above.
        const isExploring =
          !hasRows &&
          !isNext &&
          slice.urgency === "expiring" &&
          slice.series.knownEnd === undefined &&
          oldestRow !== undefined &&
          emptyExplorations === 0 &&
          !series.isExploring;
        const isAdjacent = ends.has(slice.range.to) && slice.urgency !== "expiring";
        if (isAdjacent || !(hasRows || isNext || isExploring)) continue;
        if (best && this.#compare(slice, best.slice) >= 0) continue;
        best = { series, slice, isExploring };
      }
    }
    if (!best) return undefined;
    best.series.remove(best.slice);
    return this.#start(best.series, best.slice, best.isExploring);
  }

  #compare(a: SliceWalk, b: SliceWalk): number {
    return this.#rank(a) - this.#rank(b) || b.range.to - a.range.to;
  }

  /** Halves the walk that has most pages left where the series surely has rows. */
  #split(): ActiveWalk | undefined {
    let best: { active: ActiveWalk; pages: number } | undefined;
    for (const { active: walks, oldestRow, pageLength, maySplit } of this.#series) {
      if (oldestRow === undefined || !maySplit) continue;
      for (const active of walks) {
        if (active.isExploring) continue;
        const pages = (active.position - Math.max(active.reachableFrom, oldestRow)) / pageLength;
        if (pages >= MIN_SPLIT_PAGES && pages > (best?.pages ?? 0)) best = { active, pages };
      }
    }
    if (!best) return undefined;
    const { active, pages } = best;
    const usableLength = active.series.pageLength * USABLE_FRACTION;
    return this.#takeOver(active, Math.floor(active.position - Math.ceil(pages / 2) * usableLength), false);
  }

  /** Looks for rows below the oldest known one, with few requests: at the bottom first, then in growing steps. */
  #explore(): ActiveWalk | undefined {
    for (const series of this.#series) {
      const { oldestRow, pageLength, emptyUntil, emptyExplorations, knownPages } = series;
      if (oldestRow === undefined || series.isExploring || emptyExplorations >= MAX_EMPTY_EXPLORATIONS)
        continue;
      // A history that may end on its first pages is not worth a second request.
      if (emptyExplorations > 0 && knownPages < MIN_SPLIT_PAGES / 2) continue;
      for (const active of series.active) {
        const bottom = Math.max(active.reachableFrom, emptyUntil);
        const pages = (active.position - bottom) / pageLength;
        const isEndKnown = active.mayBeAtEnd || active.walk.series.knownEnd !== undefined;
        if (isEndKnown || active.position > oldestRow || pages < 2 * MIN_SPLIT_PAGES) continue;
        const step = Math.ceil(Math.min(EXPLORATION_GROWTH * knownPages, pages / 2));
        const isFirst = emptyExplorations === 0;
        const ts = isFirst ? bottom + 4 * pageLength : active.position - step * pageLength * USABLE_FRACTION;
        return this.#takeOver(active, Math.floor(ts), true);
      }
    }
    return undefined;
  }

  /** Starts a walk at `ts`, within the range of another walk or within a waiting slice below it. */
  #takeOver(active: ActiveWalk, ts: Micros, isExploring: boolean): ActiveWalk {
    const { series, walk } = active;
    if (ts > active.from) {
      const range = { from: active.from, to: ts };
      active.from = ts;
      return this.#start(series, { ...walk, range, isHead: false }, isExploring);
    }
    const slice = series.waiting.find(({ range }) => range.from < ts && ts <= range.to);
    if (!slice) throw new Error("a split must lie within the walk or a slice below it");
    series.remove(slice);
    series.add(slice, { from: ts, to: slice.range.to });
    return this.#start(series, { ...slice, range: { from: slice.range.from, to: ts } }, isExploring);
  }

  /** The walk above goes on with what the exploring walk left. */
  #returnUnexplored({ series, walk, from }: ActiveWalk): void {
    series.emptyExplorations++;
    series.emptyUntil = Math.max(series.emptyUntil, walk.range.to);
    series.add(walk, { from, to: walk.range.to });
  }
}

/** Runs `work` for each walk of the queue, `workers` at a time. After an error no more walks start, and it throws. */
export async function drainQueue(
  queue: WalkQueue,
  workers: number,
  work: (active: ActiveWalk) => Promise<void>,
): Promise<void> {
  const errors: unknown[] = [];
  const run = async () => {
    while (!queue.isDone && errors.length === 0) {
      const active = queue.take();
      if (!active) await queue.changed;
      else
        await work(active).catch((error: unknown) => {
          errors.push(error);
          queue.notifyChange();
        });
    }
  };
  await Promise.all(Array.from({ length: workers }, run));
  if (errors.length > 0) throw errors[0];
}
