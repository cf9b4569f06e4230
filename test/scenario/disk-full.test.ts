import { describe, expect, it } from "vitest";
import { startEngine } from "../support/sync/backfill-harness.ts";
import { install } from "./backfill-process.ts";
import { mountSmallDisk } from "./small-disk.ts";

const settings = `service: { concurrency: 4 }
sync: { ohlcv: false, exchangeTickers: false, derivatives: false, marketCap: false,
  intraday: { GWA: [BTC], MWA: none, LX: none, days: 3 } }`;
const smallPages = "GET /index-ticker size-cap 100\nGET /index-ticker latency 10ms";

const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((wake) => setTimeout(wake, 5));
};

describe("F3: the disk becomes full during a backfill", () => {
  it("it pauses, says so in one line, goes on by itself when there is space, and ends equal to the truth", async () => {
    const disk = mountSmallDisk("a full disk during a backfill");
    if (!disk) return;
    const place = await install(settings, { faults: smallPages }, disk.folder);
    const asked = () => place.simulator.requests.count("/v3/index-ticker");
    const { ended, said } = place.start("--json");
    await until(() => asked() >= 20);
    disk.fill();
    await until(() => said.stderr.includes("disk_full"));
    const rows = () => place.query("SELECT count(*) AS rows FROM index_ticks")[0]?.rows;
    // What is under way comes to rest, and then nothing is asked that could not be kept.
    await new Promise((wake) => setTimeout(wake, 500));
    const [before, kept] = [asked(), rows()];
    await new Promise((wake) => setTimeout(wake, 1_000));
    expect([asked(), rows()]).toEqual([before, kept]);
    disk.free();
    const { status, stdout } = await ended;
    expect({ status, problems: JSON.parse(stdout).problems }).toEqual({ status: 0, problems: [] });
    const lines = said.stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.filter(({ code }) => code === "disk_full")).toMatchObject([
      { msg: expect.stringMatching(/MiB are left on the disk of .*: free some space/) },
    ]);
    expect(lines.filter(({ msg }) => msg === "storage is well again")).toHaveLength(1);
    expect(place.expectTruth().rows).toBeGreaterThan(2.9 * 2880);
  });

  it("it gives up after a quarter of an hour, exit 75, keeps what it has, and the next run completes it", async () => {
    const disk = mountSmallDisk("a disk that stays full");
    if (!disk) return;
    const engine = await startEngine({ settings, folder: disk.folder, simulator: { faults: smallPages } });
    const minutes = async (run: Promise<unknown>) => {
      const begun = engine.clock.now();
      const failure = await run.then(
        () => undefined,
        (error: unknown) => error,
      );
      return { failure, minutes: (engine.clock.now() - begun) / 60_000 };
    };
    const first = minutes(engine.run());
    await until(() => engine.simulator.requests.count("/v3/index-ticker") >= 20);
    disk.fill();
    const stayed = await first;
    expect(stayed.failure).toMatchObject({ code: "disk_full", exit: 75 });
    expect(stayed.minutes).toBeGreaterThanOrEqual(15);
    expect(stayed.minutes).toBeLessThan(16);
    const kept = Number(engine.query("SELECT count(*) AS rows FROM index_ticks")[0]?.rows);
    expect(kept).toBeGreaterThan(0);

    // Nor can it begin: it waits as long, and may be stopped meanwhile.
    const begun = await minutes(engine.run());
    expect(begun.failure).toMatchObject({ exit: 75 });
    expect(begun.minutes).toBeLessThan(16);

    disk.free();
    expect((await engine.run()).exit).toBe(0);
    expect(engine.expectTruth().rows).toBeGreaterThan(kept);
  });
});
