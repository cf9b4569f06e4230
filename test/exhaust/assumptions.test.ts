import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type HistoryCase, replay } from "./check.ts";
import { replaySnapshots, type SnapshotCase } from "./snapshots/snapshot-check.ts";
import type { SnapshotSpec } from "./snapshots/snapshot-world.ts";
import type { WorldSpec } from "./world.ts";

const page = readFileSync("docs/promise.md", "utf8");
const ticks = (
  pageSize: number,
  records: WorldSpec["records"],
  more: Partial<WorldSpec> = {},
): WorldSpec => ({ stream: "ticks", pageSize, records, ...more });

/** For each assumption of docs/promise.md, a short world that breaks without it. */
const broken: Readonly<Record<string, HistoryCase & { readonly what: string }>> = {
  "Wrong answers about an absence are fewer than the answers that count": {
    world: ticks(1, [{ slot: 0 }]),
    firstSlot: 2,
    steps: [["fill", "honest", "not found"], ["wait"], ["wait"], ["compare", "not found"]],
    what: "[0, 3000001) is lost (not found), though nothing leaves this service",
  },
  "A record appears within the settle delay": {
    world: ticks(2, [{ slot: 0 }, { slot: 1, publishedAt: 4 }, { slot: 2 }]),
    firstSlot: 3,
    steps: [["fill"], ["wait"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "If REST lags longer, all series of a type lag": {
    world: ticks(2, [{ slot: 0 }, { slot: 1, publishedAt: 9 }]),
    firstSlot: 3,
    steps: [["wait"], ["wait"], ["wait"], ["fill"], ["wait"], ["wait"], ["wait"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "A page leaves out no record between two of its own": {
    world: ticks(3, [{ slot: 0 }, { slot: 1 }, { slot: 2 }]),
    firstSlot: 3,
    steps: [["fill", "skipping"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "Records of one moment keep their order": {
    world: ticks(1, [{ slot: 0 }, { slot: 1 }, { slot: 1, isTwin: true }]),
    firstSlot: 3,
    steps: [["fill", "honest", "swapped"]],
    what: "s1 is covered and absent (rows, null)",
  },
  "A page has the newest records first": {
    world: ticks(1, [{ slot: 0 }, { slot: 1 }]),
    firstSlot: 3,
    steps: [["wait"], ["fill", "ascending", "ascending"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "A page says when it was made": {
    world: ticks(2, [{ slot: 0 }, { slot: 1, publishedAt: 3 }, { slot: 2 }]),
    firstSlot: 3,
    steps: [["wait"], ["wait"], ["fill", "undeclared stale"]],
    what: "r1 is covered and absent (rows, null)",
  },
};

const slots = (count: number): SnapshotCase["steps"] => Array.from({ length: count }, () => ["slot"]);
const exchange = (lists: readonly string[], more: Partial<SnapshotSpec> = {}): SnapshotSpec => ({
  stream: "exchange_ticks",
  lists,
  ...more,
});

/** The same for lists and exchange ticks. */
const brokenSnapshots: Readonly<Record<string, SnapshotCase & { readonly what: string }>> = {
  "A list is complete, or less than half as long as the one before": {
    world: exchange(["abc"]),
    steps: [["slot"], ["poll"], ...slots(2), ["poll", "shortened"]],
    what: "[0, 60000000) is covered without c1",
  },
  "The first list is complete": {
    world: exchange(["a"]),
    steps: [...slots(3), ["poll", "empty"]],
    what: "[30000000, 60000000) is covered without a1",
  },
  "All pages of a list are of one refresh": {
    world: exchange(["ab"]),
    steps: [...slots(4), ["poll", "torn"]],
    what: "[30000000, 60000000) is covered without a1",
  },
  "A list that is refreshed less often than it is polled is refreshed regularly": {
    world: { stream: "market_caps", lists: ["a"] },
    steps: [["slot"], ["poll"], ...slots(4), ["poll"]],
    what: "[0, 450000000) is covered without a1",
  },
  "The socket delivers every tick of a subscription while it is connected": {
    world: exchange(["ab"]),
    steps: [["socket"], ["slot"], ["socket", "silent"], ...slots(3), ["slot", "kill"]],
    what: "[30000000, 90000000) is covered without b1",
  },
  "A market ticks in every period": {
    world: exchange(["a", "a", "ab"], { late: "b" }),
    steps: [["socket"], ...slots(4), ["slot", "kill"]],
    what: "[30000000, 90000000) is covered without b2",
  },
  "Ticks of a period come before those of the next": {
    world: exchange(["ab"], { phase: 1, ahead: "b", late: "a" }),
    steps: [["socket"], ...slots(2), ["slot", "blocked"], ["slot", "commit one"]],
    what: "[30000000, 90000000) is covered without a1",
  },
};

describe("docs/promise.md", () => {
  it.each(Object.entries(broken))("needs: %s", async (assumption, { what, ...broken }) => {
    expect(page).toContain(`| ${assumption}`);
    expect(await replay(broken)).toBe(what);
  });

  it.each(Object.entries(brokenSnapshots))("needs: %s", async (assumption, { what, ...broken }) => {
    expect(page).toContain(`| ${assumption}`);
    expect(await replaySnapshots(broken, true)).toBe(what);
  });
});
