import type { WalkedStream } from "../model/series.ts";
import type { TimeRange } from "../model/time-range.ts";

interface Asked extends TimeRange {
  /** On the boot clock, milliseconds. */
  readonly askedAt: number;
}

/** No answer is longer under way than this before it is committed. */
const LONGEST_WAY_MS = 600_000;
/** Of a line that is backfilled at full speed only so many are remembered: pages that are seconds under way, not minutes. */
const MOST_OF_A_LINE = 128;

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
    let asked = this.#lines.get(key);
    if (!asked) {
      asked = [];
      this.#lines.set(key, asked);
    }
    asked.push({ from, to, askedAt });
    // Not at every page: moving them up costs more than it frees.
    const tooMany = asked.length > 2 * MOST_OF_A_LINE ? asked.length - MOST_OF_A_LINE : 0;
    const firstRecent = asked.findIndex((page) => page.askedAt > askedAt - LONGEST_WAY_MS);
    if (tooMany > 0 || firstRecent > 0) asked.splice(0, Math.max(tooMany, firstRecent));
  }
}
