import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Step } from "./check.ts";
import { replay } from "./replay.ts";
import type { WorldSpec } from "./world.ts";

const page = readFileSync("docs/promise.md", "utf8");
const ticks = (
  pageSize: number,
  records: WorldSpec["records"],
  more: Partial<WorldSpec> = {},
): WorldSpec => ({
  stream: "ticks",
  pageSize,
  records,
  ...more,
});

interface Broken {
  readonly world: WorldSpec;
  readonly firstSlot?: number;
  readonly steps: readonly Step[];
  readonly what: string;
}

/** For each assumption of docs/promise.md, a short world that breaks without it. */
const broken: Readonly<Record<string, Broken>> = {
  "Wrong answers about an absence are fewer than the answers that count": {
    world: ticks(1, [{ slot: 0 }]),
    firstSlot: 2,
    steps: [["fill", "honest", "not found"], ["wait"], ["wait"], ["compare", "not found"]],
    what: "[0, 3000001) is lost (not found), though nothing leaves this service",
  },
  "A record appears within the settle delay": {
    world: ticks(2, [{ slot: 0 }, { slot: 1, publishedAt: 4 }, { slot: 2 }]),
    steps: [["fill"], ["wait"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "If REST lags longer, all series of a type lag": {
    world: ticks(2, [{ slot: 0 }, { slot: 1, publishedAt: 9 }]),
    steps: [["wait"], ["wait"], ["wait"], ["fill"], ["wait"], ["wait"], ["wait"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "A page leaves out no record between two of its own": {
    world: ticks(3, [{ slot: 0 }, { slot: 1 }, { slot: 2 }]),
    steps: [["fill", "skipping"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "Records of one moment keep their order": {
    world: ticks(1, [{ slot: 0 }, { slot: 1 }, { slot: 1, isTwin: true }]),
    steps: [["fill", "honest", "swapped"]],
    what: "s1 is covered and absent (rows, null)",
  },
  "A page has the newest records first": {
    world: ticks(1, [{ slot: 0 }, { slot: 1 }]),
    steps: [["wait"], ["fill", "ascending", "ascending"]],
    what: "r1 is covered and absent (empty, no records)",
  },
  "A page says when it was made": {
    world: ticks(2, [{ slot: 0 }, { slot: 1, publishedAt: 3 }, { slot: 2 }]),
    steps: [["wait"], ["wait"], ["fill", "undeclared stale"]],
    what: "r1 is covered and absent (rows, null)",
  },
};

describe("docs/promise.md", () => {
  it.each(Object.entries(broken))("needs: %s", async (assumption, { world, firstSlot = 3, steps, what }) => {
    expect(page).toContain(`| ${assumption}`);
    expect(await replay({ world, firstSlot, steps })).toBe(what);
  });
});
