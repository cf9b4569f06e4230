import { describe, expect, it } from "vitest";
import { Fault } from "../simulator/faults.ts";
import { startDenseHarness } from "../support/sync/backfill-harness.ts";
import { waitUntil } from "../support/wait-until.ts";
import { installBackfill } from "./backfill-process.ts";
import { mountSmallDisk } from "./small-disk.ts";

const settings = `service: { concurrency: 4 }
sync: { ohlcv: false, exchangeTickers: false, derivatives: false, marketCap: false,
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 3 } }`;
const smallPages = [Fault.sizeCap(100, { on: "/index-ticker" }), Fault.latency(10, { on: "/index-ticker" })];

describe("F3: the disk becomes full during a backfill", () => {
  it("pauses with one log line, continues when there is space, and matches the service in the end", async () => {
    const disk = mountSmallDisk("a full disk during a backfill");
    if (!disk) return;
    const installation = await installBackfill(settings, { faults: smallPages }, disk.folder);
    const requestCount = () => installation.simulator.requests.count("/v3/index-ticker");
    const { result: ended, output } = installation.start("--json");
    await waitUntil(() => requestCount() >= 20, 5);
    disk.fill();
    await waitUntil(() => output.stderr.includes("disk_full"));
    const rows = () => installation.query("SELECT count(*) AS rows FROM index_ticks")[0]?.rows;
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
    expect(installation.expectMatchesService().rows).toBeGreaterThan(2.9 * 2880);
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
