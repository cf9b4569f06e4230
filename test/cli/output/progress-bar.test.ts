import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { barLine, figures } from "../../../src/cli/output/progress-bar.ts";
import type { StreamTally } from "../../../src/sync/context/run-stats.ts";

const nothing: StreamTally = {
  inserted: 0,
  changed: 0,
  withdrawn: 0,
  received: 0,
  rejected: 0,
  requests: 0,
  planned: 0,
  done: 0,
};

describe("progress", () => {
  it("is one line of at most 80 columns: share, rows, rows a second, time left", () => {
    const half = { ...nothing, received: 3_168_000, planned: 1_000, done: 500 };
    expect(barLine("index_ticks", half, 45_000)).toBe(
      "index_ticks ██████████░░░░░░░░░░  50 %    3,168,000 rows   70,400/s  0:45 left",
    );
    expect(barLine("ohlcv", { ...nothing, received: 9, planned: 5, done: 5 }, 1_000)).toMatch(
      / 100 % .* done$/,
    );
  });

  it("never shows more than all, says 100 only when all is done, and never promises nonsense", () => {
    const counts = fc.record({
      planned: fc.nat(),
      done: fc.nat(),
      received: fc.nat({ max: 1e8 }),
    });
    fc.assert(
      fc.property(counts, fc.nat({ max: 1e8 }), (some, ms) => {
        const tally = { ...nothing, ...some };
        const { percent, secondsLeft, rowsPerSecond } = figures(tally, ms);
        expect(percent).toBeLessThanOrEqual(100);
        if (some.planned > 0) expect(percent === 100).toBe(some.done >= some.planned);
        expect(Number.isFinite(secondsLeft ?? 0) && Number.isFinite(rowsPerSecond)).toBe(true);
        expect(secondsLeft ?? 0).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
