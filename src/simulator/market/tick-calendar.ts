import { DAY_MS } from "./format.ts";
import { isAffected } from "./hash.ts";
import type { IndexSeries } from "./indexes.ts";
import type { Quirks } from "./quirks.ts";

const WINDOW_MS = 200 * DAY_MS;
const INTRADAY_START_MS = Date.UTC(2019, 5, 1);

/** Decides which index ticks exist, when each becomes visible, and when it becomes final. */
export class TickCalendar {
  readonly tickMs: number;
  /** How long after its timestamp a tick may still appear or change. */
  readonly settleDelayMs: number;
  readonly #seed: number;
  readonly #quirks: Quirks;
  /** True when some ticks are late, missing, corrected, or not on every day. */
  readonly hasChangingTicks: boolean;

  constructor(seed: number, tickMs: number, quirks: Quirks) {
    this.#seed = seed;
    this.tickMs = tickMs;
    this.#quirks = quirks;
    const late = quirks.late.perMille > 0 ? quirks.late.seconds * 1000 : 0;
    const corrected = quirks.corrections.perMille > 0 ? quirks.corrections.minutes * 60_000 : 0;
    this.settleDelayMs = Math.max(late, corrected);
    this.hasChangingTicks = this.settleDelayMs > 0 || quirks.missingPerMille > 0 || quirks.closedDays > 0;
  }

  newestTick(nowMs: number): number {
    return Math.floor(nowMs / this.tickMs);
  }

  /** The oldest tick of the trailing 200-day window. */
  oldestTickInWindow(nowMs: number): number {
    return Math.ceil(Math.max(nowMs - WINDOW_MS, INTRADAY_START_MS) / this.tickMs);
  }

  firstTickOfDay(day: number): number {
    return Math.ceil((day * DAY_MS) / this.tickMs);
  }

  /** All ticks of an index, inside the window or not: [first, end). */
  tickRange(series: IndexSeries): { first: number; end: number } {
    return { first: this.firstTickOfDay(series.firstDay), end: this.firstTickOfDay(series.endDay) };
  }

  /** Whether the index has a value at this tick. */
  isListed(series: IndexSeries, tick: number): boolean {
    const { first, end } = this.tickRange(series);
    return tick >= first && tick < end;
  }

  /** Whether the tick is on a day without ticks. */
  isClosed(tick: number): boolean {
    return Math.floor((tick * this.tickMs) / DAY_MS) % 7 < this.#quirks.closedDays;
  }

  /** Whether the service has published the tick by `nowMs`. Ignores the window. */
  isPublished(series: IndexSeries, tick: number, nowMs: number): boolean {
    if (!this.hasChangingTicks) return tick * this.tickMs <= nowMs;
    if (isAffected(this.#quirks.missingPerMille, this.#seed, 61, series.rank, tick)) return false;
    const { late } = this.#quirks;
    if (this.isClosed(tick)) return false;
    const delay = isAffected(late.perMille, this.#seed, 62, series.rank, tick) ? late.seconds * 1000 : 0;
    return tick * this.tickMs + delay <= nowMs;
  }

  /** The error in the logarithm of the price, until the tick is corrected. */
  priceError(series: IndexSeries, tick: number, nowMs: number): number {
    const { perMille, minutes } = this.#quirks.corrections;
    if (perMille === 0 || tick * this.tickMs + minutes * 60_000 <= nowMs) return 0;
    return isAffected(perMille, this.#seed, 63, series.rank, tick) ? 0.0123 : 0;
  }
}
