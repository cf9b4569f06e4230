import type { Bound } from "./check.ts";
import { SETTLE_SLOTS, type World, type WorldShape, worlds } from "./world.ts";

/** Which worlds to try, and how far. */
interface PlanPart {
  readonly shape: Omit<WorldShape, "maxLateness"> & { readonly maxLateness?: number };
  readonly bound: Omit<Bound, "firstSlot"> & { readonly firstSlot?: number };
}

export type Plan = readonly PlanPart[];

export const plans = {
  /** Takes seconds: a part of `npm test`. */
  small: [
    {
      shape: { stream: "ticks", slots: 2, pageSizes: [1], windows: [2], minRecords: 2, maxLateness: 1 },
      bound: { depth: 2, faults: 1, crashes: 0, kinds: ["cut", "shallow", "not found"] },
    },
    {
      shape: { stream: "ticks", slots: 2, pageSizes: [1], minRecords: 2, maxLateness: 0 },
      bound: { depth: 1, faults: 1, crashes: 1 },
    },
    {
      shape: { stream: "ticks", slots: 1, pageSizes: [1] },
      bound: { depth: 3, faults: 1, crashes: 0, firstSlot: 0, kinds: ["not found"] },
    },
    {
      shape: { stream: "bars", slots: 2, pageSizes: [1], minRecords: 2, maxLateness: 0 },
      bound: { depth: 2, faults: 1, crashes: 0, firstSlot: 3, kinds: ["stale", "old"] },
    },
    {
      shape: { stream: "ticks", slots: 5, pageSizes: [3], minRecords: 5, maxLateness: 0 },
      bound: { depth: 2, faults: 1, crashes: 0, kinds: ["holed"] },
    },
  ],
  /** For `npm run planted` and `npm run mutants:rule`. */
  mutants: [
    {
      shape: { stream: "ticks", slots: 2, pageSizes: [1, 2], windows: [2] },
      bound: { depth: 3, faults: 1, crashes: 0 },
    },
    {
      shape: { stream: "ticks", slots: 2, pageSizes: [1], minRecords: 2 },
      bound: { depth: 3, faults: 1, crashes: 1 },
    },
    {
      shape: { stream: "ticks", slots: 1, pageSizes: [1] },
      bound: { depth: 5, faults: 1, crashes: 0, firstSlot: 0 },
    },
    {
      shape: { stream: "bars", slots: 2, pageSizes: [1] },
      bound: { depth: 4, faults: 0, crashes: 0, firstSlot: 0 },
    },
    {
      shape: { stream: "bars", slots: 2, pageSizes: [1] },
      bound: { depth: 2, faults: 1, crashes: 0, firstSlot: 3 },
    },
    {
      shape: { stream: "ticks", slots: 3, pageSizes: [1], minRecords: 3 },
      bound: { depth: 3, faults: 1, crashes: 0, firstSlot: 2 },
    },
    {
      shape: { stream: "ticks", slots: 5, pageSizes: [3], minRecords: 5 },
      bound: { depth: 3, faults: 1, crashes: 0 },
    },
  ],
  /** Takes minutes: `npm run exhaust`. */
  full: [
    {
      shape: { stream: "ticks", slots: 8, pageSizes: [3], minRecords: 7, windows: [4] },
      bound: { depth: 1, faults: 1, crashes: 1 },
    },
    { shape: { stream: "ticks", slots: 6, windows: [3] }, bound: { depth: 1, faults: 1, crashes: 1 } },
    { shape: { stream: "ticks", slots: 3, windows: [2, 3] }, bound: { depth: 3, faults: 1, crashes: 1 } },
    {
      shape: { stream: "ticks", slots: 3, pageSizes: [1] },
      bound: { depth: 3, faults: 1, crashes: 0, firstSlot: 2 },
    },
    { shape: { stream: "ticks", slots: 2 }, bound: { depth: 4, faults: 1, crashes: 0 } },
    { shape: { stream: "ticks", slots: 1 }, bound: { depth: 6, faults: 1, crashes: 0, firstSlot: 0 } },
    {
      shape: { stream: "ticks", slots: 5, pageSizes: [3], minRecords: 5 },
      bound: { depth: 3, faults: 1, crashes: 0 },
    },
    { shape: { stream: "bars", slots: 3 }, bound: { depth: 3, faults: 1, crashes: 0, firstSlot: 1 } },
  ],
} satisfies Record<string, Plan>;

/** Every world of a plan, and how far to try it. */
export function* worldsOf(plan: Plan): Generator<{ readonly world: World; readonly bound: Bound }> {
  for (const { shape, bound } of plan)
    for (const world of worlds({ maxLateness: SETTLE_SLOTS, ...shape }))
      yield { world, bound: { firstSlot: shape.slots, ...bound } };
}
