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

const of =
  (stream: SpecShape["stream"]) =>
  (among: SpecShape["lists"], bound: SnapshotBound, rest: Omit<SpecShape, "stream" | "lists"> = {}) => ({
    ...{ shape: { stream, lists: among, ...rest }, bound },
  });
const [exchange, derivatives, caps] = [of("exchange_ticks"), of("derivative_ticks"), of("market_caps")];

/** What the mutants meet too, with fewer steps. */
const ofMutantsToo = (upTo: (mutants: number, full: number) => number) => [
  // It arrives in the period after its own, or is dated with the period after that in which it was made.
  exchange(ofTwo, { ...live, depth: upTo(7, 9) }, { more: [{ late: "b" }], phases: [1] }),
  exchange(pairs, { ...polled, depth: upTo(6, 7) }, { more: [{ ahead: "abc" }], phases: [1] }),
  exchange(comes, { ...live, depth: upTo(7, 9) }, { more: [{ late: "b" }, { selected: "b", late: "b" }] }),
  exchange(ofTwo, { ...live, depth: upTo(7, 9) }, { more: apart }),
  exchange(ofTwo, { ...live, depth: upTo(7, 10) }, { more: [{ ahead: "b" }], phases: [1] }),
  // Longer, and its ticks wait until their period begins.
  exchange(ofTwo, { ...live, depth: 4 }, { more: [{ ahead: "a" }], phases: [1] }),
];

export const snapshotPlans = {
  small: [
    exchange(ofTwo, { ...live, depth: 6 }, { more: [{ late: "b" }] }),
    exchange([["abc", "a"]], { ...polled, depth: 6 }),
    derivatives([["abcn"]], { ...polled, depth: 6 }, { more: [{ every: 4 }], phases: [1] }),
    exchange(ofTwo, { ...both, depth: 4 }),
  ],
  mutants: [
    ...ofMutantsToo((mutants) => mutants),
    exchange(
      [
        ["ab", "a"],
        ["a", "ab"],
        ["ab", ""],
      ],
      { ...live, depth: 6 },
      { more: everyTick },
    ),
    exchange(ofTwo, { ...live, depth: 7 }, { more: everyTick }),
    exchange(lists, { ...polled, depth: 7 }, { more: [{}, { exchangeId: null }] }),
    derivatives([["abcn"], ["abcn", "an"], ["abcn", "abc"]], { ...polled, depth: 8 }),
    caps([["abc"]], { ...polled, depth: 9 }, { more: [{ every: 4 }, { every: 6 }], phases: [0, 1] }),
    derivatives([["abcn"]], { ...polled, depth: 11 }, { more: [{}, { every: 4 }], phases: [0, 1] }),
    exchange([["ab"], ["abc", "a"]], { ...both, depth: 6 }),
  ],
  full: [
    ...ofMutantsToo((_, full) => full),
    exchange(pairs, { ...live, depth: 7 }, { more: everyTick, phases: [0, 1] }),
    exchange(ofTwo, { ...live, depth: 10 }, { more: [{}, { late: "b" }, { exchangeId: null }] }),
    exchange(ofTwo, { ...live, depth: 8, faults: 2 }, { more: [{ late: "b" }] }),
    exchange(
      lists,
      { ...polled, depth: 10 },
      { more: [{}, { exchangeId: null }, { selected: "d" }], phases: [0, 1] },
    ),
    derivatives(
      [["abcn"], ["abn", "abno"], ["abcn", "an"], ["abcn", "abc"]],
      { ...polled, depth: 12 },
      { more: [{}, { every: 4 }, { every: 6 }], phases: [0, 1] },
    ),
    caps(
      [["abc"], ["abc", "a"]],
      { ...polled, depth: 12 },
      { more: [{ every: 4 }, { every: 6 }], phases: [0, 1] },
    ),
    exchange(
      [["ab"], ["abc", "a"], ["ab", ""]],
      { ...both, depth: 7 },
      { more: [{}, { late: "b" }, { selected: "a", late: "a" }], phases: [0, 1] },
    ),
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
