import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { daysUntilFull, noteSize, sizeSamples } from "../../../src/warehouse/read/size-history.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { openScratch } from "../../support/warehouse/open-warehouse.ts";

const HOUR = 3_600_000;
const DAY_MS = 24 * HOUR;

describe("the forecast of a full disk", () => {
  const sizes = (...bytes: number[]) => bytes.map((size, i) => ({ at: i * HOUR * 1000, bytes: size }));

  it("says nothing before an hour is known, and never for a warehouse that does not grow", () => {
    expect(daysUntilFull([], 1)).toBeUndefined();
    expect(daysUntilFull(sizes(5), 1)).toBeUndefined();
    expect(daysUntilFull(sizes(5, 5, 5), 1)).toBe(Number.POSITIVE_INFINITY);
    expect(daysUntilFull(sizes(5, 4, 3), 1)).toBe(Number.POSITIVE_INFINITY);
  });

  it("divides what is free by the growth, whatever the sizes and the pace", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.integer({ min: 1, max: 1e12 }),
        fc.integer({ min: 2, max: 40 }),
        (perHour, free, hours) => {
          const samples = sizes(...Array.from({ length: hours + 1 }, (_, i) => 1e9 + i * perHour));
          expect((daysUntilFull(samples, free) ?? 0) / (free / perHour / 24)).toBeCloseTo(1, 9);
        },
      ),
    );
  });

  it("is not misled by a first backfill that is over, nor by a file that grows in steps", () => {
    const afterBackfill = sizes(0, 1e9, ...Array.from({ length: 20 }, (_, i) => 1e9 + i * 10));
    expect(daysUntilFull(afterBackfill, 2400)).toBeCloseTo(10, 0);
    const inSteps = sizes(...Array.from({ length: 48 }, (_, i) => Math.floor(i / 6) * 60));
    expect(daysUntilFull(inSteps, 2400)).toBeCloseTo(10, 0);
  });

  it("keeps two days of sizes ten minutes apart, and none of a clock that ran ahead", () => {
    const clock = new TurnedClock();
    const warehouse = openScratch({ clock });
    const note = (bytes: number) => warehouse.transaction((transaction) => noteSize(transaction, bytes));
    clock.stepWall(400 * DAY_MS);
    note(1);
    clock.stepWall(-400 * DAY_MS);
    for (let hour = 0; hour < 60; hour++) {
      note(hour * 60_000);
      clock.stepWall(120_000);
      note(1e12);
      clock.stepWall(HOUR - 120_000);
    }
    const samples = sizeSamples(warehouse.connection);
    expect(samples).toHaveLength(48);
    expect(samples.at(-1)?.bytes).toBe(59 * 60_000);
    expect(daysUntilFull(samples, 14_400_000)).toBeCloseTo(10, 1);
  });
});
