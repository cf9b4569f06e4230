import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { computeProgress, formatBar } from "../../../src/cli/output/progress-bar.ts";
import type { StreamStats } from "../../../src/sync/context/run-stats.ts";

const nothing: StreamStats = {
  inserted: 0,
  changed: 0,
  withdrawn: 0,
  received: 0,
  rejected: 0,
  requests: 0,
  plannedMicros: 0,
  doneMicros: 0,
};

describe("progress", () => {
  it("is one line of at most 80 columns: share, rows, rows per second, time left", () => {
    const half = { ...nothing, received: 3_168_000, plannedMicros: 1_000, doneMicros: 500 };
    expect(formatBar("index_ticks", half, 45_000)).toBe(
      "index_ticks ██████████░░░░░░░░░░  50 %    3,168,000 rows   70,400/s  0:45 left",
    );
    expect(formatBar("ohlcv", { ...nothing, received: 9, plannedMicros: 5, doneMicros: 5 }, 1_000)).toMatch(
      / 100 % .* done$/,
    );
  });

  it("never exceeds 100 %, shows 100 % only when done, and always gives finite numbers", () => {
    const counts = fc.record({
      plannedMicros: fc.nat(),
      doneMicros: fc.nat(),
      received: fc.nat({ max: 1e8 }),
    });
    fc.assert(
      fc.property(counts, fc.nat({ max: 1e8 }), (some, ms) => {
        const stats = { ...nothing, ...some };
        const { percent, secondsLeft, rowsPerSecond } = computeProgress(stats, ms);
        expect(percent).toBeLessThanOrEqual(100);
        if (some.plannedMicros > 0) expect(percent === 100).toBe(some.doneMicros >= some.plannedMicros);
        expect(Number.isFinite(secondsLeft ?? 0) && Number.isFinite(rowsPerSecond)).toBe(true);
        expect(secondsLeft ?? 0).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
