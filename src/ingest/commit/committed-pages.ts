import type { HistoryStream } from "../../model/streams.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { ledgerKeyText } from "../../warehouse/coverage/ledger.ts";

interface CommittedPage extends TimeRange {
  /** On the boot clock, milliseconds. */
  readonly requestedAt: number;
}

/** Every page is committed within this time after its request. */
const MAX_PENDING_PAGE_MS = 600_000;
/** Bounds the memory of a fast backfill, whose pages are in flight for seconds, not minutes. */
const MAX_PAGES_PER_SERIES = 128;

/**
 * Recently committed pages and when they were requested. Head poller, backfill and audit may request the same
 * range and their responses arrive in any order: the latest request wins.
 */
export class CommittedPages {
  readonly #pagesBySeries = new Map<string, CommittedPage[]>();

  /** Whether a page of this range that was requested later is already committed. */
  isSuperseded(stream: HistoryStream, series: number, { from, to }: TimeRange, requestedAt: number): boolean {
    const pages = this.#pagesBySeries.get(ledgerKeyText({ stream, series })) ?? [];
    return pages.some((page) => page.requestedAt > requestedAt && page.from < to && from < page.to);
  }

  /** Returns what removes the page again. */
  add(stream: HistoryStream, series: number, { from, to }: TimeRange, requestedAt: number): () => void {
    const key = ledgerKeyText({ stream, series });
    let pages = this.#pagesBySeries.get(key);
    if (!pages) {
      pages = [];
      this.#pagesBySeries.set(key, pages);
    }
    const added = { from, to, requestedAt };
    pages.push(added);
    // Not one by one: moving the others costs more than it frees.
    const excess = pages.length > 2 * MAX_PAGES_PER_SERIES ? pages.length - MAX_PAGES_PER_SERIES : 0;
    const firstRecent = pages.findIndex((page) => page.requestedAt > requestedAt - MAX_PENDING_PAGE_MS);
    pages.splice(0, Math.max(excess, firstRecent));
    return () => {
      const at = pages.indexOf(added);
      if (at >= 0) pages.splice(at, 1);
    };
  }
}
