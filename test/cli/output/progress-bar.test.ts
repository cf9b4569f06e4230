import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatBar } from "../../../src/cli/output/progress-bar.ts";
import {
  computeBackfillProgress,
  computeProgress,
  countsOf,
  RunStats,
} from "../../../src/sync/context/run-stats.ts";

describe("progress", () => {
  it("is one line of at most 80 columns: percentage, rows, rows per second, time left", () => {
    const half = { rows: 3_168_000, done: 500, planned: 1_000 };
    expect(formatBar("index_ticks", half, 45_000)).toBe(
      "index_ticks ██████████░░░░░░░░░░  50 %    3,168,000 rows   70,400/s  0:45 left",
    );
    expect(formatBar("ohlcv", { rows: 9, done: 5, planned: 5 }, 1_000)).toMatch(/ 100 % .* done$/);
  });

  it("counts rows that are received twice once, so that the bars add up to the rows of the report", () => {
    const stats = new RunStats();
    stats.addRows("index_ticks", { inserted: 2_000, changed: 0, unchanged: 0 });
    stats.addRows("index_ticks", { inserted: 1_500, changed: 0, unchanged: 500 });
    expect(countsOf(stats, "index_ticks").rows).toBe(3_500);
  });

  it("of a whole backfill counts each stream by the requests that it needs", () => {
    const stats = new RunStats();
    expect(computeBackfillProgress(stats, 1_000)).toBeUndefined();
    stats.addRows("index_ticks", { inserted: 3_000, changed: 0, unchanged: 0 });
    // Daily bars span years in a few requests, and their turn comes last.
    const ticks = { plannedMicros: 1_000, plannedRequests: 900 };
    const bars = { plannedMicros: 90_000, plannedRequests: 100, doneMicros: 0 };
    Object.assign(stats.forStream("index_ticks"), ticks, { doneMicros: 0 });
    Object.assign(stats.forStream("ohlcv"), bars);
    expect(computeBackfillProgress(stats, 10_000)).toMatchObject({ percent: 0, seconds_left: null });
    Object.assign(stats.forStream("index_ticks"), { doneMicros: 500 });
    // The first seconds say nothing about the time left.
    expect(computeBackfillProgress(stats, 9_000)).toMatchObject({ percent: 45, seconds_left: null });
    expect(computeBackfillProgress(stats, 27_000)).toEqual({
      percent: 45,
      rows_per_second: 111,
      seconds_left: 33,
    });
  });

  it("never exceeds 100 %, shows 100 % only when done, and always gives finite numbers", () => {
    const counts = fc.record({ planned: fc.nat(), done: fc.nat(), rows: fc.nat({ max: 1e8 }) });
    fc.assert(
      fc.property(counts, fc.nat({ max: 1e8 }), (some, ms) => {
        const { percent, secondsLeft, rowsPerSecond } = computeProgress(some, ms);
        expect(percent).toBeLessThanOrEqual(100);
        if (some.planned > 0) expect(percent === 100).toBe(some.done >= some.planned);
        expect(Number.isFinite(secondsLeft ?? 0) && Number.isFinite(rowsPerSecond)).toBe(true);
        expect(secondsLeft ?? 0).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
