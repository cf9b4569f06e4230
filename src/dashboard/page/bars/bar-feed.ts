// The bars of one series in one width: what is loaded, more of it in both directions, and its live end.

import { type ChartBarsResult, MAX_BARS, type SecondsRange } from "../../../model/answers/chart-bars.ts";
import type { SeriesMatch } from "../../../model/answers/heatmap.ts";
import type { BarWidth } from "../../../model/time.ts";
import { DAY_SECONDS, dayStart, merge, secondsOf } from "./bar-slots.ts";

/** How many bars are loaded at once when a reader scrolls to an end. */
const CHUNK_BARS = 1_000;
/** How many chunks a long range gets at once; the rest is loaded as a reader scrolls. */
const MAX_CHUNKS = 4;
const TAIL_BARS = 3;

/** Seconds since 1970; without `to` it ends now. */
type AskedRange = Pick<SecondsRange, "from"> & Partial<SecondsRange>;

type SeriesKey = Pick<SeriesMatch, "index_type" | "index_id">;
export type ReadBars = (series: SeriesKey, width: BarWidth, range: AskedRange) => Promise<ChartBarsResult>;

interface BarFeedOptions {
  readonly series: SeriesMatch;
  readonly width: BarWidth;
  readonly read: ReadBars;
  /** The daemon's clock in seconds. */
  readonly now: () => number;
}

export class BarFeed {
  readonly options: BarFeedOptions;
  loaded: ChartBarsResult | undefined;
  /** The loaded range ends now, and follows what is committed. */
  isLive = false;
  #isExtending = false;

  constructor(options: BarFeedOptions) {
    this.options = options;
  }

  /** So much is missing at the end that one request does not return it: only a new start does. */
  get isOutdated(): boolean {
    return this.isLive && dayStart(this.#tail()) < this.#earliest(this.options.now());
  }

  /** Loads a range, or the newest part of a long one. Whole days, so that no daily bar is cut. */
  async start({ from, to }: AskedRange): Promise<void> {
    this.loaded = await this.#fetch(this.options.width, {
      from: Math.max(dayStart(from), this.#earliest(to ?? this.options.now())),
      ...(to === undefined ? {} : { to: dayStart(to + DAY_SECONDS - 1) }),
    });
    for (let chunks = 0; chunks < MAX_CHUNKS && this.loaded.from > from; chunks++)
      if (!(await this.loadOlder())) return;
  }

  /** Loads more until all of a range is loaded, or there is nothing more. */
  async extendTo({ from, to }: SecondsRange): Promise<void> {
    while (this.loaded && this.loaded.from > from && (await this.loadOlder()));
    while (this.loaded && this.loaded.to < to && (await this.loadNewer()));
  }

  /** Loads what is before the loaded range. False if there is nothing, or it is being loaded. */
  async loadOlder(): Promise<boolean> {
    const { from = 0, first = null } = this.loaded ?? {};
    if (first === null || from <= dayStart(first)) return false;
    const firstTickDay = this.#firstTickDay();
    if (from <= firstTickDay) return this.#extend("1d", { from: from - CHUNK_BARS * DAY_SECONDS, to: from });
    const start = dayStart(from - CHUNK_BARS * secondsOf(this.options.width));
    return this.#extend(this.options.width, { from: Math.max(start, firstTickDay), to: from });
  }

  /** Loads what is after the loaded range, if that does not end now. */
  async loadNewer(): Promise<boolean> {
    if (!this.loaded || this.isLive) return false;
    const { to } = this.loaded;
    const firstTickDay = Math.min(this.#firstTickDay(), dayStart(this.options.now()));
    if (to < firstTickDay)
      return this.#extend("1d", { from: to, to: Math.min(to + CHUNK_BARS * DAY_SECONDS, firstTickDay) });
    const end = dayStart(to + CHUNK_BARS * secondsOf(this.options.width)) + DAY_SECONDS;
    return this.#extend(this.options.width, end > this.options.now() ? { from: to } : { from: to, to: end });
  }

  /** Before this day all bars are daily ones. */
  readonly #firstTickDay = () => dayStart(this.loaded?.ticks_from ?? Number.POSITIVE_INFINITY);

  async #extend(width: BarWidth, range: AskedRange): Promise<boolean> {
    if (this.#isExtending) return false;
    this.#isExtending = true;
    try {
      const part = await this.#fetch(width, range);
      if (this.loaded) this.loaded = merge(this.loaded, part);
      return true;
    } finally {
      this.#isExtending = false;
    }
  }

  async #fetch(width: BarWidth, range: AskedRange): Promise<ChartBarsResult> {
    const part = await this.options.read(this.options.series, width, range);
    // It stays live, however long no answer comes.
    this.isLive ||= range.to === undefined || range.to > this.options.now();
    return part;
  }

  /** Where the bars begin that may have changed since they were read. */
  readonly #tail = () => (this.loaded?.to ?? 0) - TAIL_BARS * secondsOf(this.options.width);

  /** Reads the end again, or all from `changedFrom` on that one request returns. */
  async refresh(changedFrom = Number.POSITIVE_INFINITY): Promise<void> {
    if (!this.loaded || (changedFrom >= this.loaded.to && !this.isLive)) return;
    const { from, to, days } = this.loaded;
    const tail = this.#tail();
    const isDaily = days.some((range) => range.from <= tail && tail < range.to);
    const earliest =
      changedFrom < tail
        ? Math.max(dayStart(changedFrom), this.#earliest(this.isLive ? this.options.now() : to))
        : isDaily
          ? dayStart(tail)
          : tail;
    const end = this.isLive ? {} : { to };
    const part = await this.#fetch(this.options.width, { from: Math.max(from, earliest), ...end });
    this.loaded = { ...merge(this.loaded, part), last_price: part.last_price };
  }

  /** Also of a range that has ended, which is not read again. */
  setLastPrice(price: number): void {
    if (this.loaded) this.loaded = { ...this.loaded, last_price: price };
  }

  /** The start of the longest range that one request returns. */
  readonly #earliest = (to: number) =>
    dayStart(to - (MAX_BARS - 2) * secondsOf(this.options.width)) + DAY_SECONDS;
}
