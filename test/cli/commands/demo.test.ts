import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { PassThrough } from "node:stream";
import { describe, expect, it, onTestFinished } from "vitest";
import { DemoScreen } from "../../../src/cli/commands/demo.ts";
import { runInChild } from "../../support/cli/run-command.ts";
import { contentOfOtherService, standardContent } from "../../support/cli/standard-content.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { type ProgramProcess, startProgram } from "../../support/program-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { createWarehouse } from "../../support/warehouse/filled-warehouse.ts";
import { queryFile } from "../../support/warehouse/warehouse-file.ts";

const DEFAULT_PORT = 9464;

/** Waits until the demo has written a line, and returns its first group. */
async function waitForLine({ child, output }: ProgramProcess, pattern: RegExp): Promise<string> {
  while (child.exitCode === null) {
    const found = pattern.exec(output.stderr)?.[1];
    if (found !== undefined) return found;
    await once(child.stderr, "data");
  }
  throw new Error(`the demo ended: ${output.stderr}`);
}

function childrenOf(parent: number | undefined): number[] {
  const processes = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n");
  return processes
    .map((line) => line.trim().split(/\s+/).map(Number))
    .flatMap(([pid, ppid]) => (pid !== undefined && ppid === parent ? [pid] : []));
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** The port belongs to this test, or to another program: either way it is taken. */
async function takeDefaultPort(): Promise<void> {
  const server = createServer((socket) => socket.destroy());
  const isListening = new Promise<void>((resolve) => {
    server.once("error", () => resolve());
    server.listen(DEFAULT_PORT, "127.0.0.1", () => resolve());
  });
  await isListening;
  onTestFinished(() => void server.close());
}

describe("mds-sync run --demo", () => {
  it("takes a free port and says so if the usual one is in use, but does not replace a chosen one; leaves no simulator when it is killed", async () => {
    await takeDefaultPort();
    const chosen = startProgram(["run", "--demo", "--http-port", String(DEFAULT_PORT)], {
      cwd: temporaryFolder(),
    });
    const demo = startProgram(["run", "--demo"], { cwd: temporaryFolder() });
    const [first] = await once(demo.child.stderr, "data");
    expect(first).toBe("demo: starting the simulator …\n");
    const port = await waitForLine(demo, /^ledger: {4}http:\/\/127\.0\.0\.1:(\d+)\/sync$/m);
    expect(Number(port)).not.toBe(DEFAULT_PORT);
    expect(demo.output.stderr).toContain(`\ndashboard: http://127.0.0.1:${port}/\nledger:    `);
    expect(demo.output.stderr).toContain(
      `demo: port ${DEFAULT_PORT} is in use, so the dashboard takes another\n`,
    );
    const [simulator = 0, ...others] = childrenOf(demo.child.pid);
    expect(others).toEqual([]);
    expect(isRunning(simulator)).toBe(true);
    demo.child.kill("SIGKILL");
    await demo.result;
    await waitUntil(() => !isRunning(simulator));
    const { status, stderr } = await chosen.result;
    expect(status).toBe(75);
    expect(stderr.trimEnd().split("\n").slice(2)).toEqual([
      `mds-sync: the dashboard cannot listen on 127.0.0.1:${DEFAULT_PORT} (EADDRINUSE): choose another http.port (MDS_HTTP_PORT), or 0 for any free one`,
    ]);
  });

  it("F19: refuses the warehouse of another service with exit 2, and stores nothing in it", async () => {
    const path = createWarehouse(contentOfOtherService);
    const { stderr, status } = await runInChild(["run", "--demo", "--warehouse", path, "--http-port", "0"]);
    expect(stderr).toContain(`${path} has the data of https://prod.test`);
    expect(status).toBe(2);
    const stored = "SELECT (SELECT count(*) FROM assets) AS assets, service_url FROM warehouse_state";
    expect(queryFile(path, stored)).toEqual([{ assets: 5, service_url: "https://prod.test" }]);
  });
});

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
