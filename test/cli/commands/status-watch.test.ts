import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { runProgram } from "../../../src/cli/program.ts";
import { Failure } from "../../../src/model/failure.ts";
import { recordCrash } from "../../../src/warehouse/sqlite/crash-marker.ts";
import { recordJobRun } from "../../../src/warehouse/tables/job-runs.ts";
import { recordSize } from "../../../src/warehouse/tables/size-history.ts";
import { openWriter } from "../../../src/warehouse/writer.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { standardContent } from "../../support/cli/standard-content.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { createWarehouse } from "../../support/warehouse/filled-warehouse.ts";

async function watch(args: readonly string[], terminal?: { rows: number }) {
  const path = createWarehouse(standardContent);
  const clock = new ManualClock();
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
  it("redraws in place, never more lines than the terminal has, and exits 0", async () => {
    const { drawn, exit, seconds } = await watch([], { rows: 10 });
    expect(exit).toBe(0);
    expect(seconds).toBeGreaterThanOrEqual(4);
    expect(drawn[0]?.startsWith("\r\u001b[J")).toBe(true);
    expect(drawn[1]?.startsWith("\u001b[9A\r\u001b[J")).toBe(true);
    expect(drawn[2]?.split("\n")).toHaveLength(10);
  });

  it("prints one JSON object per line with --json", async () => {
    const { drawn, exit } = await watch(["--json"]);
    expect(exit).toBe(0);
    for (const line of drawn) expect(JSON.parse(line).streams).toHaveLength(9);
    expect(drawn.every((line) => line.indexOf("\n") === line.length - 1)).toBe(true);
  });
});

describe("mds-sync status", () => {
  it("F18, G8: reports a disk that will soon be full (doctor too), a failed job and a crashed daemon", async () => {
    const path = createWarehouse(standardContent);
    const clock = new ManualClock();
    const warehouse = openWriter(path, { clock });
    for (let hour = 0; hour < 4; hour++) {
      // A growth that fills any disk within days.
      warehouse.transaction((transaction) => recordSize(transaction, hour * 1e12));
      clock.stepWallClock(3_600_000);
    }
    warehouse.transaction((transaction) =>
      recordJobRun(transaction, { job: "nightly", scheduledAt: 0, outcome: "endpoint_failing" }),
    );
    warehouse.close();
    const crash = new Failure("the ingest thread has ended", { family: "bug", code: "ingest_died" });
    recordCrash(path, crash, clock.now() * 1000);
    const { stdout } = await runInProcess(["status", "--warehouse", path], { clock });
    expect(stdout).toMatch(/^daemon {2}ended unexpectedly \d+s ago: the ingest thread has ended$/m);
    expect(stdout).toMatch(
      /^the disk will be full in [\d.]+ days at the current growth: [\d.]+ GiB are free$/m,
    );
    expect(stdout).toMatch(/^nightly {2}the last run failed, \d+s ago: an endpoint keeps failing$/m);
    const { disk, jobs } = JSON.parse(
      (await runInProcess(["status", "--json", "--warehouse", path], { clock })).stdout,
    );
    expect(disk).toEqual({
      warehouse_bytes: expect.any(Number),
      wal_bytes: expect.any(Number),
      free_bytes: expect.any(Number),
      full_in_days: expect.any(Number),
    });
    expect(jobs).toEqual([{ job: "nightly", ended_at: expect.any(String), outcome: "endpoint_failing" }]);
    const doctor = await runInProcess(["doctor", "--warehouse", path]);
    expect(doctor.stdout + doctor.stderr).toMatch(/free, enough for [\d.]+ days at the current\s+growth/);
  });
});
