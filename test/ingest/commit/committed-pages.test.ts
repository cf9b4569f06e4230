import { describe, expect, it } from "vitest";
import { CommittedPages } from "../../../src/ingest/commit/committed-pages.ts";

describe("recently committed pages", () => {
  it("supersede a page of the same series that overlaps and was requested earlier", () => {
    const pages = new CommittedPages();
    pages.add("index_ticks", 1, { from: 100, to: 200 }, 50);
    const isSuperseded = (from: number, to: number, requestedAt = 49) =>
      pages.isSuperseded("index_ticks", 1, { from, to }, requestedAt);
    expect([
      isSuperseded(0, 101),
      isSuperseded(199, 300),
      isSuperseded(120, 130),
      isSuperseded(0, 900),
    ]).toEqual(Array(4).fill(true));
    expect([isSuperseded(0, 100), isSuperseded(200, 300)]).toEqual([false, false]);
    expect([isSuperseded(100, 200, 50), isSuperseded(100, 200, 51)]).toEqual([false, false]);
    expect(pages.isSuperseded("index_ticks", 2, { from: 100, to: 200 }, 49)).toBe(false);
    expect(pages.isSuperseded("ohlcv", 1, { from: 100, to: 200 }, 49)).toBe(false);
  });

  it("do not count if their transaction was rolled back", () => {
    const pages = new CommittedPages();
    pages.add("index_ticks", 1, { from: 0, to: 100 }, 50);
    const undo = pages.add("index_ticks", 1, { from: 100, to: 200 }, 60);
    pages.add("index_ticks", 1, { from: 200, to: 300 }, 70);
    undo();
    const isSuperseded = (at: number) => pages.isSuperseded("index_ticks", 1, { from: at, to: at + 1 }, 0);
    expect([isSuperseded(50), isSuperseded(150), isSuperseded(250)]).toEqual([true, false, true]);
    undo();
    expect(isSuperseded(250)).toBe(true);
    const undoFirst = pages.add("ohlcv", 1, { from: 0, to: 100 }, 50);
    undoFirst();
    expect(pages.isSuperseded("ohlcv", 1, { from: 0, to: 100 }, 0)).toBe(false);
  });

  it("are forgotten ten minutes after their request, when no older page can be pending", () => {
    const pages = new CommittedPages();
    const isKnown = (at: number) => pages.isSuperseded("ohlcv", 1, { from: at, to: at + 1 }, -1);
    pages.add("ohlcv", 1, { from: 0, to: 1 }, 0);
    pages.add("ohlcv", 1, { from: 1, to: 2 }, 1);
    pages.add("ohlcv", 1, { from: 2, to: 3 }, 599_999);
    expect([isKnown(0), isKnown(1)]).toEqual([true, true]);
    pages.add("ohlcv", 1, { from: 3, to: 4 }, 600_000);
    expect([0, 1, 2, 3].map(isKnown)).toEqual([false, true, true, true]);
    pages.add("ohlcv", 1, { from: 4, to: 5 }, 1_300_000);
    expect([1, 2, 3, 4].map(isKnown)).toEqual([false, false, false, true]);
  });

  it("are bounded per series: a fast backfill has seconds in flight, not minutes", () => {
    const pages = new CommittedPages();
    const countKnown = (series: number) =>
      Array.from({ length: 300 }, (_, at) =>
        pages.isSuperseded("ohlcv", series, { from: at, to: at + 1 }, -1),
      ).filter(Boolean).length;
    pages.add("ohlcv", 2, { from: 0, to: 1 }, 0);
    for (let at = 0; at < 256; at++) pages.add("ohlcv", 1, { from: at, to: at + 1 }, at);
    expect(countKnown(1)).toBe(256);
    pages.add("ohlcv", 1, { from: 256, to: 257 }, 256);
    expect(countKnown(1)).toBe(128);
    // The newest ones stay.
    expect(pages.isSuperseded("ohlcv", 1, { from: 256, to: 257 }, -1)).toBe(true);
    expect(pages.isSuperseded("ohlcv", 1, { from: 128, to: 129 }, -1)).toBe(false);
    expect(countKnown(2)).toBe(1);
  });
});
