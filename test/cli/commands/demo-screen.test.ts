import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { DemoScreen } from "../../../src/cli/commands/demo-screen.ts";
import { usualContent, warehouseWith } from "../../support/cli/filled-warehouse.ts";
import { TurnedClock } from "../../support/manual-clock.ts";

function start(isTerminal: boolean) {
  const clock = new TurnedClock("2026-11-15T00:00:00Z");
  const stderr = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const path = warehouseWith(usualContent);
  const screen = new DemoScreen({ path, clock, stderr });
  return { clock, path, screen, said: () => String(stderr.read() ?? "") };
}

describe("what a person sees of the demo", () => {
  it("is the progress alone until everything is filled, then three queries to paste that fit the terminal", () => {
    const { screen, path, said } = start(true);
    screen.greet();
    screen.live(12);
    expect(said()).toBe("demo: a built-in simulator plays the service; nothing leaves this machine\n");
    screen.invite();
    const lines = said().split("\n");
    expect(lines.filter((line) => line.startsWith('  npx mds-sync query "SELECT '))).toHaveLength(3);
    expect(lines).toContain(`  export MDS_WAREHOUSE=${path}`);
    expect(lines.filter((line) => line.length > 80 && !line.includes(path))).toEqual([]);
    expect(lines.join()).toContain("day = '2026-11-14'");
  });

  it("is then one line of live ticks, drawn over, that is left when it ends", async () => {
    const { clock, screen, said } = start(true);
    screen.invite();
    said();
    screen.live(5);
    screen.live(1);
    expect(said()).toMatch(/^\r.\[2Klive: 5 ticks on disk, BTC [\d.,]+\r$/);
    await clock.advance(1_000);
    screen.live(1);
    expect(said()).toMatch(/^\r.\[2Klive: 7 ticks on disk/);
    screen.end();
    expect(said()).toBe("\n");
  });

  it("is a line every ten seconds where nothing can be drawn over", async () => {
    const { clock, screen, said } = start(false);
    screen.invite();
    said();
    for (let second = 0; second < 25; second++) {
      screen.live(2);
      await clock.advance(1_000);
    }
    screen.end();
    const lines = said().trimEnd().split("\n");
    expect(lines.map((line) => /^live: (\d+) ticks/.exec(line)?.[1])).toEqual(["2", "22", "42"]);
  });
});
