import { describe, expect, it } from "vitest";
import { startBackfillHarness } from "../support/sync/backfill-harness.ts";
import { installBackfill } from "./backfill-process.ts";
import { mountSmallDisk } from "./small-disk.ts";

const settings = `service: { concurrency: 4 }
sync: { ohlcv: false, exchangeTickers: false, derivatives: false, marketCap: false,
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 3 } }`;
const smallPages = "GET /index-ticker size-cap 100\nGET /index-ticker latency 10ms";

const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((wake) => setTimeout(wake, 5));
};

describe("F3: the disk becomes full during a backfill", () => {
  it("pauses with one log line, continues when there is space, and matches the service in the end", async () => {
    const disk = mountSmallDisk("a full disk during a backfill");
    if (!disk) return;
    const place = await installBackfill(settings, { faults: smallPages }, disk.folder);
    const requestCount = () => place.simulator.requests.count("/v3/index-ticker");
    const { result: ended, output: said } = place.start("--json");
    await until(() => requestCount() >= 20);
    disk.fill();
    await until(() => said.stderr.includes("disk_full"));
    const rows = () => place.query("SELECT count(*) AS rows FROM index_ticks")[0]?.rows;
    // Running requests end; after that nothing is requested that could not be stored.
    await new Promise((wake) => setTimeout(wake, 500));
    const [requestsBefore, rowsBefore] = [requestCount(), rows()];
    await new Promise((wake) => setTimeout(wake, 1_000));
    expect([requestCount(), rows()]).toEqual([requestsBefore, rowsBefore]);
    disk.free();
    const { status, stdout } = await ended;
    expect({ status, problems: JSON.parse(stdout).problems }).toEqual({ status: 0, problems: [] });
    const lines = said.stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.filter(({ code }) => code === "disk_full")).toMatchObject([
      { msg: expect.stringMatching(/MiB are free on the disk of .*: free some space/) },
    ]);
    expect(lines.filter(({ msg }) => msg === "storage recovered")).toHaveLength(1);
    expect(place.expectMatchesService().rows).toBeGreaterThan(2.9 * 2880);
  });

  it("gives up after 15 minutes, exit 75, keeps the stored rows, and the next run completes it", async () => {
    const disk = mountSmallDisk("a disk that stays full");
    if (!disk) return;
    const engine = await startBackfillHarness({
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
    await until(() => engine.simulator.requests.count("/v3/index-ticker") >= 20);
    disk.fill();
    const stayed = await first;
    expect(stayed.failure).toMatchObject({ code: "disk_full", exit: 75 });
    expect(stayed.minutes).toBeGreaterThanOrEqual(15);
    expect(stayed.minutes).toBeLessThan(16);
    const rowsBefore = Number(engine.query("SELECT count(*) AS rows FROM index_ticks")[0]?.rows);
    expect(rowsBefore).toBeGreaterThan(0);

    // The next run cannot start either: it waits as long.
    const blocked = await minutes(engine.run());
    expect(blocked.failure).toMatchObject({ exit: 75 });
    expect(blocked.minutes).toBeLessThan(16);

    disk.free();
    expect((await engine.run()).exit).toBe(0);
    expect(engine.expectMatchesService().rows).toBeGreaterThan(rowsBefore);
  });
});
