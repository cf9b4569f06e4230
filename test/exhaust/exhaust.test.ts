import { describe, expect, it } from "vitest";
import { type HistoryCase, HistoryCheck, replay } from "./check.ts";
import { partChecks } from "./parts/all.ts";
import { plans, worldsOf } from "./plans.ts";
import { formatCase, search } from "./search.ts";
import { replaySnapshots, type SnapshotCase, SnapshotCheck } from "./snapshots/snapshot-check.ts";
import { snapshotPlans, snapshotWorldsOf } from "./snapshots/snapshot-plans.ts";

describe("every small world", () => {
  it("keeps the promise after every step, and settles with an honest service", async () => {
    let states = 0;
    for (const { world, bound } of worldsOf(plans.small)) {
      const result = await search(new HistoryCheck(world, bound));
      if (result.violation) expect.fail(`\n${formatCase(result.violation)}`);
      states += result.states;
    }
    expect(states).toBeGreaterThan(2500);
  });
});

describe("every small snapshot stream", () => {
  it("is covered only with what the service listed, and is covered with an honest service", async () => {
    let states = 0;
    for (const { spec, bound } of snapshotWorldsOf(snapshotPlans.small)) {
      const result = await search(new SnapshotCheck(spec, bound));
      if (result.violation) expect.fail(`\n${formatCase(result.violation)}`);
      states += result.states;
    }
    expect(states).toBeGreaterThan(2000);
  });
});

describe("every function of the rule alone", () => {
  it.each(partChecks)("$name equals its specification in every small case", ({ run }) => {
    const { cases, violation } = run("small");
    expect(violation).toBeUndefined();
    expect(cases).toBeGreaterThan(10);
  });
});

/** Found by the check, and mended. */
const mended: Readonly<Record<string, HistoryCase>> = {
  "keeps a record at the end of a gap that stands alone on the first page": {
    world: { stream: "ticks", pageSize: 1, records: [{ slot: 0 }, { slot: 1 }] },
    firstSlot: 2,
    steps: [["wait"], ["fill", "honest", "honest", "crash"], ["fill"]],
  },
  "settles a series that lost all its records, though two gaps are asked about in turn": {
    world: { stream: "ticks", pageSize: 1, records: [{ slot: 1, goneAt: 4 }] },
    firstSlot: 2,
    steps: [["fill", "honest", "not found"], ["wait"], ["fill"]],
  },
  "settles what a moved end leaves open, though a walk below it shows no record": {
    world: { stream: "ticks", pageSize: 1, records: [{ slot: 0, goneAt: 4 }, { slot: 1 }] },
    firstSlot: 3,
    steps: [["fill"], ["compare", "honest", "cut"]],
  },
  "does not cover up to the oldest record what only one answer has shown to be empty": {
    world: { stream: "ticks", pageSize: 1, records: [{ slot: 1, publishedAt: 3 }, { slot: 2 }] },
    firstSlot: 2,
    steps: [["fill"], ["wait", "long"], ["fill", "honest", "honest", "cut"]],
  },
  "does not cover a bar as a server that lags has shown it": {
    world: { stream: "bars", pageSize: 1, records: [{ slot: 0 }, { slot: 2, finalAt: 4 }] },
    firstSlot: 1,
    steps: [["wait"], ["wait", "long"], ["fill", "old"]],
  },
  "does not cover the newest bar of a service that lags and serves running days": {
    world: {
      stream: "bars",
      pageSize: 2,
      records: [{ slot: 0, publishedAt: 3, finalAt: 4 }],
      isLagging: true,
    },
    firstSlot: 3,
    steps: [["fill"]],
  },
};

const mendedSnapshots: Readonly<Record<string, SnapshotCase>> = {
  "does not learn from one stale list that the service refreshes it slowly": {
    world: { stream: "derivative_ticks", lists: ["abc"] },
    steps: [
      ["slot"],
      ["poll"],
      ["slot"],
      ["slot"],
      ["poll", "stale"],
      ["slot"],
      ["slot"],
      ["poll"],
      ["slot"],
      ["slot"],
    ],
  },
  "does not count a list that is cut as the repetition of one that the service shortened": {
    world: { stream: "exchange_ticks", lists: ["abc", "a"] },
    steps: [["slot"], ["poll"], ["slot"], ["poll"], ["slot"], ["slot"], ["poll", "cut"]],
  },
  "counts a tick for its period, though one of the next period came before it": {
    world: { stream: "exchange_ticks", lists: ["ab"], phase: 1, ahead: "b" },
    steps: [["socket"], ["slot"], ["slot"], ["slot", "blocked"], ["slot", "reversed"], ["slot", "blocked"]],
  },
};

describe("found by the check, and mended", () => {
  it.each(Object.entries(mended))("%s", async (_, each) => {
    expect(await replay(each)).toBeUndefined();
  });

  it.each(Object.entries(mendedSnapshots))("%s", async (_, each) => {
    expect(await replaySnapshots(each)).toBeUndefined();
  });
});
