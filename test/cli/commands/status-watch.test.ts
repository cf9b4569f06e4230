import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { runProgram } from "../../../src/cli/program.ts";
import { Failure } from "../../../src/model/failure.ts";
import { noteJobRun } from "../../../src/warehouse/read/job-runs.ts";
import { noteSize } from "../../../src/warehouse/read/size-history.ts";
import { noteCrash } from "../../../src/warehouse/sqlite/crash-marker.ts";
import { openWarehouse } from "../../../src/warehouse/writer.ts";
import { usualContent, warehouseWith } from "../../support/cli/filled-warehouse.ts";
import { runHere } from "../../support/cli/run-command.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

async function watch(args: readonly string[], terminal?: { rows: number }) {
  const path = warehouseWith(usualContent);
  const clock = new TurnedClock();
  const stopping = new AbortController();
  const stdout = Object.assign(new PassThrough(), terminal ? { isTTY: true, ...terminal } : {});
  const drawn: string[] = [];
  stdout.on("data", (chunk: Buffer) => void drawn.push(String(chunk)));
  const done = runProgram(["status", "--watch", "--warehouse", path, ...args], {
    env: {},
    directory: temporaryFolder(),
    clock,
    stdout,
    stderr: new PassThrough(),
    stopping: stopping.signal,
  });
  while (drawn.length < 3) await clock.advance(1_000);
  const seconds = clock.monotonic() / 1000;
  stopping.abort();
  return { drawn: drawn.slice(0, 3), exit: await done, seconds };
}

describe("mds-sync status --watch", () => {
  it("draws over what it drew before, never more than the terminal holds, and ends with 0", async () => {
    const { drawn, exit, seconds } = await watch([], { rows: 10 });
    expect(exit).toBe(0);
    expect(seconds).toBeGreaterThanOrEqual(4);
    expect(drawn[0]?.startsWith("\r\u001b[J")).toBe(true);
    expect(drawn[1]?.startsWith("\u001b[9A\r\u001b[J")).toBe(true);
    expect(drawn[2]?.split("\n")).toHaveLength(10);
  });

  it("gives one object a line for machines", async () => {
    const { drawn, exit } = await watch(["--json"]);
    expect(exit).toBe(0);
    for (const line of drawn) expect(JSON.parse(line).streams).toHaveLength(9);
    expect(drawn.every((line) => line.indexOf("\n") === line.length - 1)).toBe(true);
  });
});

describe("the room on the disk", () => {
  it("is told by status and doctor when it ends soon, and a job that failed and a daemon that crashed too", async () => {
    const path = warehouseWith(usualContent);
    const clock = new TurnedClock();
    const warehouse = openWarehouse(path, { clock });
    for (let hour = 0; hour < 4; hour++) {
      // So fast that any disk is full within days.
      warehouse.transaction((transaction) => noteSize(transaction, hour * 1e12));
      clock.stepWall(3_600_000);
    }
    warehouse.transaction((transaction) =>
      noteJobRun(transaction, { job: "nightly", moment: 0, outcome: "incomplete" }),
    );
    warehouse.close();
    const crash = new Failure("the ingest thread has ended", { family: "bug", code: "ingest_died" });
    noteCrash(path, crash, clock.now() * 1000);
    const { stdout } = await runHere(["status", "--warehouse", path], { clock });
    expect(stdout).toMatch(/^daemon {2}ended unexpectedly \d+s ago: the ingest thread has ended$/m);
    expect(stdout).toMatch(/^the disk is full in [\d.]+ days at the present growth: [\d.]+ GiB are free$/m);
    expect(stdout).toMatch(/^nightly {2}the last run ended with incomplete, \d+s ago$/m);
    const { disk, jobs } = JSON.parse(
      (await runHere(["status", "--json", "--warehouse", path], { clock })).stdout,
    );
    expect(disk).toEqual({
      warehouse_bytes: expect.any(Number),
      wal_bytes: expect.any(Number),
      free_bytes: expect.any(Number),
      full_in_days: expect.any(Number),
    });
    expect(jobs).toEqual([{ job: "nightly", ended_at: expect.any(String), outcome: "incomplete" }]);
    const doctor = await runHere(["doctor", "--warehouse", path]);
    expect(doctor.stdout + doctor.stderr).toMatch(/free, which last [\d.]+ days at the present\s+growth/);
  });
});
