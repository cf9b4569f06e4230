import { describe, expect, it } from "vitest";
import { seed } from "../support/seed.ts";
import { prove } from "./prove.ts";
import { drawSchedule } from "./schedule.ts";

/** `npm run proof` runs a thousand schedules; these few depend on MDS_SEED. */
const seeds = Array.from({ length: 14 }, (_, index) => seed + index);

describe("G14: a random schedule of faults, then a healthy service", () => {
  it.each(seeds)(
    "matches the service in the end (npm run proof -- --seed %i)",
    async (one) => {
      const { problems } = await prove(one);
      expect(problems).toEqual([]);
    },
    60_000,
  );

  it("is the same for the same seed", () => {
    expect(drawSchedule(seed)).toEqual(drawSchedule(seed));
    expect(drawSchedule(seed)).not.toEqual(drawSchedule(seed + 1));
  });
});
