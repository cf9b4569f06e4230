import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { DemoScreen } from "../../../src/cli/commands/demo-screen.ts";
import { standardContent } from "../../support/cli/standard-content.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createWarehouse } from "../../support/warehouse/filled-warehouse.ts";

function setUp(isTerminal: boolean) {
  const clock = new ManualClock("2026-11-15T00:00:00Z");
  const stderr = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const path = createWarehouse(standardContent, { hasAllViews: true });
  const screen = new DemoScreen({ path, clock, stderr, program: "./mds-sync" });
  return { clock, path, screen, output: () => String(stderr.read() ?? "") };
}

describe("the screen of the demo", () => {
  it("shows only progress until the backfill is done, then three lines to paste that fit the terminal", () => {
    const { screen, path, output } = setUp(true);
    screen.showIntroduction();
    screen.showLiveTicks({ indexTicks: 12, exchangeTicks: 0 });
    expect(output()).toBe("demo: the data comes from a built-in simulator; nothing leaves this machine\n");
    screen.showExampleQueries();
    const lines = output().split("\n");
    expect(lines.filter((line) => line.startsWith("  ./mds-sync "))).toHaveLength(3);
    expect(lines).toContain(`  export MDS_WAREHOUSE=${path}`);
    expect(lines.filter((line) => line.length > 80 && !line.includes(path))).toEqual([]);
    expect(lines.join()).toContain("day = '2026-11-14'");
  });

  it("then redraws one line of live ticks, and leaves nothing of it when it is stopped", async () => {
    const { clock, screen, output } = setUp(true);
    screen.showExampleQueries();
    output();
    screen.showLiveTicks({ indexTicks: 5, exchangeTicks: 0 });
    screen.showLiveTicks({ indexTicks: 1, exchangeTicks: 2 });
    expect(output()).toMatch(/^\r.\[2Klive: 5 index and 0 exchange ticks, BTC [\d.,]+\r$/);
    await clock.advance(1_000);
    screen.showLiveTicks({ indexTicks: 1, exchangeTicks: 3_000 });
    expect(output()).toMatch(/^\r.\[2Klive: 7 index and 3,002 exchange ticks/);
    screen.end();
    // The terminal has written ^C over the line.
    expect(output()).toBe("\r\u001b[2K");
    await clock.advance(1_000);
    screen.showLiveTicks({ indexTicks: 1, exchangeTicks: 1 });
    screen.end();
    expect(output()).toBe("");
  });

  it("writes a line every ten seconds without a terminal", async () => {
    const { clock, screen, output } = setUp(false);
    screen.showExampleQueries();
    output();
    for (let second = 0; second < 25; second++) {
      screen.showLiveTicks({ indexTicks: 2, exchangeTicks: 1 });
      await clock.advance(1_000);
    }
    screen.end();
    const lines = output().trimEnd().split("\n");
    expect(lines.map((line) => /^live: (\d+) index/.exec(line)?.[1])).toEqual(["2", "22", "42"]);
  });
});
