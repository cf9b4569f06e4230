import type { WalkedStream } from "../model/series.ts";
import type { TimeRange } from "../model/time-range.ts";

interface Asked extends TimeRange {
  /** On the boot clock, milliseconds. */
  readonly askedAt: number;
}

/** No answer is longer under way than this before it is committed. */
const LONGEST_WAY_MS = 600_000;

/**
 * Which pages were committed lately, and when they were asked for. The head, the filler and the audit may have asked about
 * the same range, and their answers come in any order: the later asked is the truer.
 */
export class AskedPages {
  readonly #lines = new Map<string, Asked[]>();

  /** Whether a page about this range was committed that was asked for later than this one. */
  isOvertaken(stream: WalkedStream, series: number, { from, to }: TimeRange, askedAt: number): boolean {
    const asked = this.#lines.get(`${stream} ${series}`) ?? [];
    return asked.some((page) => page.askedAt > askedAt && page.from < to && from < page.to);
  }

  note(stream: WalkedStream, series: number, { from, to }: TimeRange, askedAt: number): void {
    const key = `${stream} ${series}`;
    const recent = (this.#lines.get(key) ?? []).filter((page) => page.askedAt > askedAt - LONGEST_WAY_MS);
    recent.push({ from, to, askedAt });
    this.#lines.set(key, recent);
  }
}
