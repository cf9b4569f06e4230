import { describe, expect, it } from "vitest";
import { answerChecks } from "./answers/checks.ts";
import { WorldCheck } from "./check.ts";
import { partChecks } from "./parts/all.ts";
import { plans, worldsOf } from "./plans.ts";
import { formatTest, replay } from "./replay.ts";
import { SnapshotCheck } from "./snapshots/snapshot-check.ts";
import { snapshotPlans, snapshotWorldsOf } from "./snapshots/snapshot-plans.ts";
import { formatSnapshotTest, replaySnapshots } from "./snapshots/snapshot-replay.ts";
import type { WorldSpec } from "./world.ts";

describe("every small world", () => {
  it("keeps the promise after every step, and settles with an honest service", async () => {
    let states = 0;
    for (const { world, bound } of worldsOf(plans.small)) {
      const result = await new WorldCheck(world, bound).run();
      if (result.violation) expect.fail(`\n${formatTest(result.violation)}`);
      states += result.states;
    }
    expect(states).toBeGreaterThan(2500);
  });
});

describe("every small snapshot stream", () => {
  it("is covered only with what the service listed, and is covered with an honest service", () => {
    let states = 0;
    for (const { spec, bound } of snapshotWorldsOf(snapshotPlans.small)) {
      const result = new SnapshotCheck(spec, bound).run();
      if (result.violation) expect.fail(`\n${formatSnapshotTest(result.violation)}`);
      states += result.states;
    }
    expect(states).toBeGreaterThan(2000);
  });
});

describe("every answer by itself", () => {
  // A part of them: a prime, so that all values of all dimensions are among them.
  it.each(answerChecks)("$name: is judged as moment by moment", ({ run }) => {
    expect(run(199).violation).toBeUndefined();
  });
});

describe("every function of the rule alone", () => {
  it.each(partChecks)("$name equals its specification in every small case", ({ run }) => {
    const { cases, violation } = run("small");
    expect(violation).toBeUndefined();
    expect(cases).toBeGreaterThan(10);
  });
});

describe("found by the check, and mended", () => {
  it("does not learn from one stale list that the service refreshes it slowly", () => {
    const steps = [
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
    ] as const;
    expect(replaySnapshots({ stream: "derivative_ticks", lists: ["abc"] }, steps)).toBeUndefined();
  });

  it("does not count a list that is cut as the repetition of one that the service shortened", () => {
    const steps = [["slot"], ["poll"], ["slot"], ["poll"], ["slot"], ["slot"], ["poll", "cut"]] as const;
    expect(replaySnapshots({ stream: "exchange_ticks", lists: ["abc", "a"] }, steps)).toBeUndefined();
  });

  it("counts a tick for its period, though one of the next period came before it", () => {
    const steps = [
      ["socket"],
      ["slot"],
      ["slot"],
      ["slot", "blocked"],
      ["slot", "reversed"],
      ["slot", "blocked"],
    ] as const;
    expect(
      replaySnapshots({ stream: "exchange_ticks", lists: ["ab"], phase: 1, ahead: "b" }, steps),
    ).toBeUndefined();
  });

  it("keeps a record at the end of a gap that stands alone on the first page", async () => {
    const world: WorldSpec = { stream: "ticks", pageSize: 1, records: [{ slot: 0 }, { slot: 1 }] };
    const steps = [["wait"], ["fill", "honest", "honest", "crash"], ["fill"]] as const;
    expect(await replay({ world, firstSlot: 2, steps })).toBeUndefined();
  });

  it("settles a series that lost all its records, though two gaps are asked about in turn", async () => {
    const world: WorldSpec = { stream: "ticks", pageSize: 1, records: [{ slot: 1, goneAt: 4 }] };
    const steps = [["fill", "honest", "not found"], ["wait"], ["fill"]] as const;
    expect(await replay({ world, firstSlot: 2, steps })).toBeUndefined();
  });

  it("settles what a moved end leaves open, though a walk below it shows no record", async () => {
    const records = [{ slot: 0, goneAt: 4 }, { slot: 1 }];
    const world: WorldSpec = { stream: "ticks", pageSize: 1, records };
    const steps = [["fill"], ["compare", "honest", "cut"]] as const;
    expect(await replay({ world, firstSlot: 3, steps })).toBeUndefined();
  });

  it("does not cover up to the oldest record what only one answer has shown to be empty", async () => {
    const records = [{ slot: 1, publishedAt: 3 }, { slot: 2 }];
    const world: WorldSpec = { stream: "ticks", pageSize: 1, records };
    const steps = [["fill"], ["wait", "long"], ["fill", "honest", "honest", "cut"]] as const;
    expect(await replay({ world, firstSlot: 2, steps })).toBeUndefined();
  });

  it("does not cover a bar as a server that lags has shown it", async () => {
    const records = [{ slot: 0 }, { slot: 2, finalAt: 4 }];
    const world: WorldSpec = { stream: "bars", pageSize: 1, records };
    const steps = [["wait"], ["wait", "long"], ["fill", "old"]] as const;
    expect(await replay({ world, firstSlot: 1, steps })).toBeUndefined();
  });

  it("does not cover the newest bar of a service that lags and serves running days", async () => {
    const records = [{ slot: 0, publishedAt: 3, finalAt: 4 }];
    const world: WorldSpec = { stream: "bars", pageSize: 2, records, isLagging: true };
    expect(await replay({ world, firstSlot: 3, steps: [["fill"]] })).toBeUndefined();
  });
});
