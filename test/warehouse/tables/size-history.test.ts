import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  estimateDaysUntilFull,
  readSizeSamples,
  recordSize,
} from "../../../src/warehouse/tables/size-history.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const HOUR = 3_600_000;
const DAY_MS = 24 * HOUR;

describe("the estimate of a full disk", () => {
  const sizes = (...bytes: number[]) => bytes.map((size, i) => ({ at: i * HOUR * 1000, bytes: size }));

  it("is undefined with less than an hour of history, and infinite without growth", () => {
    expect(estimateDaysUntilFull([], 1)).toBeUndefined();
    expect(estimateDaysUntilFull(sizes(5), 1)).toBeUndefined();
    expect(estimateDaysUntilFull(sizes(5, 5, 5), 1)).toBe(Number.POSITIVE_INFINITY);
    expect(estimateDaysUntilFull(sizes(5, 4, 3), 1)).toBe(Number.POSITIVE_INFINITY);
  });

  it("equals free bytes divided by growth for random sizes", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.integer({ min: 1, max: 1e12 }),
        fc.integer({ min: 2, max: 40 }),
        (perHour, free, hours) => {
          const samples = sizes(...Array.from({ length: hours + 1 }, (_, i) => 1e9 + i * perHour));
          expect((estimateDaysUntilFull(samples, free) ?? 0) / (free / perHour / 24)).toBeCloseTo(1, 9);
        },
      ),
    );
  });

  it("ignores a finished backfill, and a file that grows in steps", () => {
    const afterBackfill = sizes(0, 1e9, ...Array.from({ length: 20 }, (_, i) => 1e9 + i * 10));
    expect(estimateDaysUntilFull(afterBackfill, 2400)).toBeCloseTo(10, 0);
    const inSteps = sizes(...Array.from({ length: 48 }, (_, i) => Math.floor(i / 6) * 60));
    expect(estimateDaysUntilFull(inSteps, 2400)).toBeCloseTo(10, 0);
  });

  it("stores two days of samples ten minutes apart, and deletes samples from the future", () => {
    const clock = new ManualClock();
    const warehouse = openTestWarehouse({ clock });
    const note = (bytes: number) => warehouse.transaction((transaction) => recordSize(transaction, bytes));
    clock.stepWallClock(400 * DAY_MS);
    note(1);
    clock.stepWallClock(-400 * DAY_MS);
    for (let hour = 0; hour < 60; hour++) {
      note(hour * 60_000);
      clock.stepWallClock(120_000);
      note(1e12);
      clock.stepWallClock(HOUR - 120_000);
    }
    const samples = readSizeSamples(warehouse.connection);
    expect(samples).toHaveLength(48);
    expect(samples.at(-1)?.bytes).toBe(59 * 60_000);
    expect(estimateDaysUntilFull(samples, 14_400_000)).toBeCloseTo(10, 1);
  });
});
