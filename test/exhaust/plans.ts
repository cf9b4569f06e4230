import type { Bound } from "./check.ts";
import { SETTLE_SLOTS, type World, type WorldShape, worlds } from "./world.ts";

/** Which worlds to try, and how far. */
interface PlanPart {
  readonly shape: Omit<WorldShape, "maxLateness"> & { readonly maxLateness?: number };
  readonly bound: Omit<Bound, "firstSlot"> & { readonly firstSlot?: number };
}

export type Plan = readonly PlanPart[];

/** One fault and no kill, unless it says otherwise. */
const part =
  (stream: WorldShape["stream"]) =>
  (
    shape: Omit<PlanPart["shape"], "stream">,
    bound: Partial<PlanPart["bound"]> & { depth: number },
  ): PlanPart => ({
    ...{ shape: { stream, ...shape }, bound: { faults: 1, crashes: 0, ...bound } },
  });
const [ticks, bars] = [part("ticks"), part("bars")];

export const plans = {
  /** Takes seconds: a part of `npm test`. */
  small: [
    ticks(
      { slots: 2, pageSizes: [1], windows: [2], minRecords: 2, maxLateness: 1 },
      { depth: 2, kinds: ["cut", "shallow", "not found"] },
    ),
    ticks({ slots: 2, pageSizes: [1], minRecords: 2, maxLateness: 0 }, { depth: 1, crashes: 1 }),
    ticks({ slots: 1, pageSizes: [1] }, { depth: 3, firstSlot: 0, kinds: ["not found"] }),
    bars(
      { slots: 2, pageSizes: [1], minRecords: 2, maxLateness: 0 },
      { depth: 2, firstSlot: 3, kinds: ["stale", "old"] },
    ),
    ticks({ slots: 5, pageSizes: [3], minRecords: 5, maxLateness: 0 }, { depth: 2, kinds: ["holed"] }),
  ],
  /** For `npm run planted` and `npm run mutants:rule`. */
  mutants: [
    ticks({ slots: 2, pageSizes: [1, 2], windows: [2] }, { depth: 3 }),
    ticks({ slots: 2, pageSizes: [1], minRecords: 2 }, { depth: 3, crashes: 1 }),
    ticks({ slots: 1, pageSizes: [1] }, { depth: 5, firstSlot: 0 }),
    bars({ slots: 2, pageSizes: [1] }, { depth: 4, faults: 0, firstSlot: 0 }),
    bars({ slots: 2, pageSizes: [1] }, { depth: 2, firstSlot: 3 }),
    ticks({ slots: 3, pageSizes: [1], minRecords: 3 }, { depth: 3, firstSlot: 2 }),
    ticks({ slots: 5, pageSizes: [3], minRecords: 5 }, { depth: 3 }),
  ],
  /** Takes minutes: `npm run exhaust`. */
  full: [
    ticks({ slots: 8, pageSizes: [3], minRecords: 7, windows: [4] }, { depth: 1, crashes: 1 }),
    ticks({ slots: 6, windows: [3] }, { depth: 1, crashes: 1 }),
    ticks({ slots: 3, windows: [2, 3] }, { depth: 3, crashes: 1 }),
    ticks({ slots: 3, pageSizes: [1] }, { depth: 3, firstSlot: 2 }),
    ticks({ slots: 2 }, { depth: 4 }),
    ticks({ slots: 1 }, { depth: 6, firstSlot: 0 }),
    ticks({ slots: 5, pageSizes: [3], minRecords: 5 }, { depth: 3 }),
    bars({ slots: 3 }, { depth: 3, firstSlot: 1 }),
  ],
} satisfies Record<string, Plan>;

/** Every world of a plan, and how far to try it. */
export function* worldsOf(plan: Plan): Generator<{ readonly world: World; readonly bound: Bound }> {
  for (const { shape, bound } of plan)
    for (const world of worlds({ maxLateness: SETTLE_SLOTS, ...shape }))
      yield { world, bound: { firstSlot: shape.slots, ...bound } };
}
