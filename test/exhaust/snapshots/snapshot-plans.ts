import type { SnapshotBound } from "./snapshot-check.ts";
import type { SnapshotSpec } from "./snapshot-world.ts";

/** Values of each property of a world: all combinations are tried. */
interface SpecShape {
  readonly stream: SnapshotSpec["stream"];
  readonly lists: readonly (readonly string[])[];
  readonly more?: readonly Omit<SnapshotSpec, "stream" | "lists">[];
  readonly phases?: readonly number[];
}

interface SnapshotPlanPart {
  readonly shape: SpecShape;
  readonly bound: SnapshotBound;
}

/** Every list of up to two markets, and every one that may follow it. */
const pairs = ["a", "ab"].flatMap((first) => ["", "a", "b", "ab", "bc"].map((next) => [first, next]));
const lists = ["", "a", "abc", "abcd"].flatMap((first) =>
  ["", "a", "ab", "abcd"].map((next) => [first, next]),
);
const ofTwo = [["ab"]];
/** A market that comes when others are known. */
const comes = [["a", "a", "ab"]];
/** One of two markets is refreshed later than the other. */
const apart = [{ second: "b" }, { second: "a", late: "b" }];
const everyTick = [{}, { late: "a" }, { late: "b" }, { selected: "b" }, { selected: "a", late: "a" }];
const live = { faults: 1, crashes: 1, steps: ["slot", "socket"] } as const;
const polled = { faults: 1, crashes: 1, steps: ["slot", "poll"] } as const;
const both = { faults: 1, crashes: 1, steps: ["slot", "socket", "poll"] } as const;

export const snapshotPlans = {
  small: [
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ late: "b" }] },
      bound: { ...live, depth: 6 },
    },
    { shape: { stream: "exchange_ticks", lists: [["abc", "a"]] }, bound: { ...polled, depth: 6 } },
    {
      shape: { stream: "derivative_ticks", lists: [["abcn"]], more: [{ every: 4 }], phases: [1] },
      bound: { ...polled, depth: 6 },
    },
    { shape: { stream: "exchange_ticks", lists: ofTwo }, bound: { ...both, depth: 4 } },
  ],
  mutants: [
    // It arrives in the period after its own, or is dated with the period after that in which it was made.
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ late: "b" }], phases: [1] },
      bound: { ...live, depth: 7 },
    },
    {
      shape: { stream: "exchange_ticks", lists: pairs, more: [{ ahead: "abc" }], phases: [1] },
      bound: { ...polled, depth: 6 },
    },
    {
      shape: { stream: "exchange_ticks", lists: comes, more: [{ late: "b" }, { selected: "b", late: "b" }] },
      bound: { ...live, depth: 7 },
    },
    { shape: { stream: "exchange_ticks", lists: ofTwo, more: apart }, bound: { ...live, depth: 7 } },
    {
      shape: {
        stream: "exchange_ticks",
        lists: [
          ["ab", "a"],
          ["a", "ab"],
          ["ab", ""],
        ],
        more: everyTick,
      },
      bound: { ...live, depth: 6 },
    },
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ ahead: "b" }], phases: [1] },
      bound: { ...live, depth: 7 },
    },
    // Longer, and its ticks wait until their period begins.
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ ahead: "a" }], phases: [1] },
      bound: { ...live, depth: 4 },
    },
    { shape: { stream: "exchange_ticks", lists: ofTwo, more: everyTick }, bound: { ...live, depth: 7 } },
    {
      shape: { stream: "exchange_ticks", lists, more: [{}, { exchangeId: null }] },
      bound: { ...polled, depth: 7 },
    },
    {
      shape: { stream: "derivative_ticks", lists: [["abcn"], ["abcn", "an"], ["abcn", "abc"]] },
      bound: { ...polled, depth: 8 },
    },
    {
      shape: { stream: "market_caps", lists: [["abc"]], more: [{ every: 4 }, { every: 6 }], phases: [0, 1] },
      bound: { ...polled, depth: 9 },
    },
    {
      shape: { stream: "derivative_ticks", lists: [["abcn"]], more: [{}, { every: 4 }], phases: [0, 1] },
      bound: { ...polled, depth: 11 },
    },
    { shape: { stream: "exchange_ticks", lists: [["ab"], ["abc", "a"]] }, bound: { ...both, depth: 6 } },
  ],
  full: [
    // It arrives in the period after its own, or is dated with the period after that in which it was made.
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ late: "b" }], phases: [1] },
      bound: { ...live, depth: 9 },
    },
    {
      shape: { stream: "exchange_ticks", lists: pairs, more: [{ ahead: "abc" }], phases: [1] },
      bound: { ...polled, depth: 7 },
    },
    {
      shape: { stream: "exchange_ticks", lists: comes, more: [{ late: "b" }, { selected: "b", late: "b" }] },
      bound: { ...live, depth: 9 },
    },
    { shape: { stream: "exchange_ticks", lists: ofTwo, more: apart }, bound: { ...live, depth: 9 } },
    {
      shape: { stream: "exchange_ticks", lists: pairs, more: everyTick, phases: [0, 1] },
      bound: { ...live, depth: 7 },
    },
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ ahead: "b" }], phases: [1] },
      bound: { ...live, depth: 10 },
    },
    // Longer, and its ticks wait until their period begins.
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ ahead: "a" }], phases: [1] },
      bound: { ...live, depth: 4 },
    },
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{}, { late: "b" }, { exchangeId: null }] },
      bound: { ...live, depth: 10 },
    },
    {
      shape: { stream: "exchange_ticks", lists: ofTwo, more: [{ late: "b" }] },
      bound: { ...live, depth: 8, faults: 2 },
    },
    {
      shape: {
        stream: "exchange_ticks",
        lists,
        more: [{}, { exchangeId: null }, { selected: "d" }],
        phases: [0, 1],
      },
      bound: { ...polled, depth: 10 },
    },
    {
      shape: {
        stream: "derivative_ticks",
        lists: [["abcn"], ["abn", "abno"], ["abcn", "an"], ["abcn", "abc"]],
        more: [{}, { every: 4 }, { every: 6 }],
        phases: [0, 1],
      },
      bound: { ...polled, depth: 12 },
    },
    {
      shape: {
        stream: "market_caps",
        lists: [["abc"], ["abc", "a"]],
        more: [{ every: 4 }, { every: 6 }],
        phases: [0, 1],
      },
      bound: { ...polled, depth: 12 },
    },
    {
      shape: {
        stream: "exchange_ticks",
        lists: [["ab"], ["abc", "a"], ["ab", ""]],
        more: [{}, { late: "b" }, { selected: "a", late: "a" }],
        phases: [0, 1],
      },
      bound: { ...both, depth: 7 },
    },
  ],
} satisfies Record<string, readonly SnapshotPlanPart[]>;

/** Every world of a plan, and how far to try it. */
export function* snapshotWorldsOf(
  plan: readonly SnapshotPlanPart[],
): Generator<{ readonly spec: SnapshotSpec; readonly bound: SnapshotBound }> {
  for (const { shape, bound } of plan)
    for (const each of shape.lists)
      for (const more of shape.more ?? [{}])
        for (const phase of shape.phases ?? [0])
          yield { spec: { stream: shape.stream, lists: each, ...more, ...(phase ? { phase } : {}) }, bound };
}
