import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { withReader } from "../../src/warehouse/reader.ts";
import { Fault } from "../simulator/faults.ts";
import { startSimulator } from "../simulator/simulator.ts";
import { startProgram } from "../support/program-process.ts";
import { onlyTicks, startDenseHarness } from "../support/sync/backfill-harness.ts";
import { expectWarehouseMatches } from "../support/sync/oracle.ts";
import { serviceEnv } from "../support/sync/sync-session.ts";
import { waitUntil } from "../support/wait-until.ts";
import { expectSoundFile } from "../support/warehouse/expect-sound-ledger.ts";
import { mountSmallDisk } from "./small-disk.ts";

const settings = `service: { concurrency: 4 }\n${onlyTicks("[BTC]", { days: "3" })}`;
const smallPages = [Fault.sizeCap(100, { on: "/index-ticker" }), Fault.latency(10, { on: "/index-ticker" })];

describe("F3: the disk becomes full during a backfill", () => {
  it("pauses with one log line, continues when there is space, and matches the service in the end", async () => {
    const disk = mountSmallDisk("a full disk during a backfill");
    if (!disk) return;
    const simulator = await startSimulator({ faults: smallPages });
    onTestFinished(() => simulator.stop());
    const path = join(disk.folder, "mds.sqlite");
    onTestFinished(() => expectSoundFile(path, Date.now()));
    writeFileSync(join(disk.folder, "mds-sync.yaml"), settings);
    const { result: ended, output } = startProgram(["backfill", "--no-progress", "--json"], {
      cwd: disk.folder,
      env: { ...serviceEnv(simulator), MDS_WAREHOUSE: path },
    });
    const requestCount = () => simulator.requests.count("/v3/index-ticker");
    const ask = (sql: string) => withReader(path, (reader) => reader.value<number>(sql));
    await waitUntil(() => requestCount() >= 20, 5);
    disk.fill();
    await waitUntil(() => output.stderr.includes("disk_full"));
    const rows = () => ask("SELECT count(*) FROM index_ticks");
    // Requests in flight end. After that the run sends no requests, because it could not store the responses.
    await waitUntil(async () => {
      const before = [requestCount(), rows()];
      await new Promise((wake) => setTimeout(wake, 1_000));
      return requestCount() === before[0] && rows() === before[1];
    });
    disk.free();
    const { status, stdout } = await ended;
    expect({ status, problems: JSON.parse(stdout).problems }).toEqual({ status: 0, problems: [] });
    const lines = output.stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.filter(({ code }) => code === "disk_full")).toMatchObject([
      { msg: expect.stringMatching(/MiB are free on the disk of .*: free some space/) },
    ]);
    expect(lines.filter(({ msg }) => msg === "storage recovered")).toHaveLength(1);
    // The time of the run: the end of the coverage plus the settle delay.
    const asOf = ask(
      `SELECT max(s.to_ts) + max(w.settle_delay) FROM settled_ranges s
        JOIN targets w ON w.stream = s.stream AND w.series = s.series WHERE s.stream = 'index_ticks'`,
    );
    const compared = withReader(path, (reader) =>
      expectWarehouseMatches(reader, simulator, Date.now(), asOf),
    );
    expect(compared.rows).toBeGreaterThan(2.9 * 2880);
  });

  it("ends after 15 minutes with exit 75 and keeps the stored rows; a later run completes them", async () => {
    const disk = mountSmallDisk("a disk that stays full");
    if (!disk) return;
    const engine = await startDenseHarness({
      settings,
      folder: disk.folder,
      simulator: { faults: smallPages },
    });
    const minutes = async (run: Promise<unknown>) => {
      const startedAt = engine.clock.now();
      const failure = await run.then(
        () => undefined,
        (error: unknown) => error,
      );
      return { failure, minutes: (engine.clock.now() - startedAt) / 60_000 };
    };
    const first = minutes(engine.run());
    await waitUntil(() => engine.simulator.requests.count("/v3/index-ticker") >= 20);
    disk.fill();
    const firstRun = await first;
    expect(firstRun.failure).toMatchObject({ code: "disk_full", exit: 75 });
    expect(firstRun.minutes).toBeGreaterThanOrEqual(15);
    expect(firstRun.minutes).toBeLessThan(16);
    const rowsBefore = Number(engine.query("SELECT count(*) AS rows FROM index_ticks")[0]?.rows);
    expect(rowsBefore).toBeGreaterThan(0);

    // The next run cannot start either, and gives up after the same time.
    const secondRun = await minutes(engine.run());
    expect(secondRun.failure).toMatchObject({ exit: 75 });
    expect(secondRun.minutes).toBeLessThan(16);

    disk.free();
    expect((await engine.run()).exit).toBe(0);
    expect(engine.expectMatchesService().rows).toBeGreaterThan(rowsBefore);
  });
});
