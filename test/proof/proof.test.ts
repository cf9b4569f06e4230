import { describe, expect, it } from "vitest";
import { seed } from "../support/seed.ts";
import { prove } from "./prove.ts";
import { drawSchedule } from "./schedule.ts";

/** A few schedules, chosen by MDS_SEED. `npm run proof` runs a thousand. */
const seeds = Array.from({ length: 2 }, (_, index) => seed + index);
/** Its only run with faults is stopped before the first request for history. */
const STOPPED_EARLY = 740003;

describe("G14: a warehouse after a random schedule of faults and a healthy run", () => {
  it.each([...seeds, STOPPED_EARLY])(
    "matches the service in the end (npm run proof -- --seed %i)",
    async (one) => {
      const { problems } = await prove(one);
      expect(problems).toEqual([]);
    },
  );

  it("has the same schedule for the same seed", () => {
    expect(JSON.stringify(drawSchedule(seed))).toBe(JSON.stringify(drawSchedule(seed)));
    expect(drawSchedule(seed)).not.toEqual(drawSchedule(seed + 1));
  });
});
