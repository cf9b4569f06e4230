import { describe, expect, it } from "vitest";
import { formatTimestamp } from "../../../src/model/time.ts";
import { Fault } from "../../simulator/faults.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import {
  type BackfillHarness,
  barsOf,
  onlyTicks,
  startBackfillHarness,
  startDenseHarness,
} from "../../support/sync/backfill-harness.ts";
import { expectCoverageCorrect } from "../../support/sync/oracle.ts";

const SECOND = 1_000_000;
const HOUR = 3600 * SECOND;
const bars = (GWA: string) => onlyTicks("none", { intraday: "false", ohlcv: barsOf(GWA) });

/** Half a day of records. */
const today = { listed: { perMille: 1000, on: "2026-03-01" } };

/** The command and the views read the real clock. */
const realNow = () => new Date().toISOString();
const gaps = ({ path }: BackfillHarness, ...args: string[]) =>
  runInProcess(["gaps", "--warehouse", path, ...args]);
const coveredTo = (harness: BackfillHarness, name: string, stream = "index_ticks") =>
  Number(
    harness.query(`SELECT max(to_ts) AS n FROM coverage WHERE stream = '${stream}' AND name = '${name}'`)[0]
      ?.n,
  );
const expectNothingFalse = (harness: BackfillHarness) =>
  harness.withReader((reader) => expectCoverageCorrect(reader, harness.simulator, harness.clock.now()));

describe("a service whose REST lags", () => {
  it("H1: leaves the head open, says so, and is copied completely once it has caught up", async () => {
    const harness = await startDenseHarness({ settings: onlyTicks("[BTC, ETH]"), start: realNow() });
    harness.simulator.setFaults(Fault.lag(30 * 60_000, { on: "/index-ticker" }));
    const report = await harness.run();
    expect(report).toMatchObject({ exit: 0, problems: [] });
    const own = report.streams.find(({ stream }) => stream === "index_ticks");
    expect(own).toMatchObject({ open: 0, unpublished: 2 });
    expect(own?.unpublishedMicros).toBeGreaterThan(28 * 60 * SECOND);
    expect(own?.unpublishedMicros).toBeLessThan(30 * 60 * SECOND);
    expectNothingFalse(harness);

    const now = harness.clock.now() * 1000;
    const range = ["--from", formatTimestamp(now - 6 * HOUR), "--to", formatTimestamp(now - HOUR / 4)];
    const incomplete = await gaps(harness, ...range);
    expect(incomplete.status).toBe(4);
    expect(incomplete.stdout).toMatch(/ open {2}not published yet/);
    expect(incomplete.stderr).toMatch(/has not published its newest records yet/);
    const published = formatTimestamp(now - HOUR / 2 - 60 * SECOND);
    expect((await gaps(harness, "--from", formatTimestamp(now - 6 * HOUR), "--to", published)).status).toBe(
      0,
    );
    expect((await gaps(harness)).stdout).toMatch(/not published yet/);

    harness.simulator.setFaults();
    expect((await harness.run()).exit).toBe(0);
    harness.expectMatchesService();
    expect((await gaps(harness, ...range)).status).toBe(0);
  });

  it("H1: that keeps lagging by a little more than the settle delay is followed without a false claim", async () => {
    const harness = await startDenseHarness({
      settings: onlyTicks("[BTC, ETH]"),
      simulator: { quirks: today },
    });
    harness.simulator.setFaults(Fault.lag(3 * 60_000, { on: "/index-ticker" }));
    for (let run = 0; run < 4; run++) {
      expect((await harness.run()).exit).toBe(0);
      expectNothingFalse(harness);
      expect(coveredTo(harness, "BTC")).toBeGreaterThan(harness.clock.now() * 1000 - 4 * 60 * SECOND);
      await harness.clock.advance(7 * 60_000);
    }
    harness.simulator.setFaults();
    await harness.run();
    harness.expectMatchesService();
  });

  it("H1: serves an earlier state of yesterday's bar: the bar is final once a newer one is shown", async () => {
    const harness = await startBackfillHarness({ settings: bars("[BTC, ETH]") });
    expect((await harness.run()).exit).toBe(0);
    const midnight = Date.parse("2026-03-02T00:00:00Z");
    await harness.clock.advance(midnight - harness.clock.now() + 1_800_000);
    harness.simulator.setFaults(Fault.lag(3 * 3_600_000, { on: "/ohlcv" }));
    for (let hour = 0; hour < 2; hour++) {
      expect(await harness.run()).toMatchObject({ exit: 0, problems: [] });
      expectNothingFalse(harness);
      expect(coveredTo(harness, "BTC", "ohlcv")).toBe((midnight - 86_400_000) * 1000);
      await harness.clock.advance(3_600_000);
    }
    harness.simulator.setFaults();
    expect((await harness.run()).exit).toBe(0);
    expect(coveredTo(harness, "BTC", "ohlcv")).toBe(midnight * 1000);
    harness.expectMatchesService();
  });

  it("H1: has not published a range that a run is limited to: it stays open, not empty", async () => {
    const harness = await startBackfillHarness({ settings: onlyTicks("[BTC, ETH]") });
    harness.simulator.setFaults(Fault.lag(3 * 3_600_000, { on: "/index-ticker" }));
    const now = harness.clock.now() * 1000;
    const report = await harness.run({ range: { from: now - 4 * HOUR, to: now - 2 * HOUR } });
    expect(report).toMatchObject({ exit: 0, problems: [] });
    expect(report.streams).toContainEqual(
      expect.objectContaining({ stream: "index_ticks", open: 0, unpublished: 2 }),
    );
    expectNothingFalse(harness);
    expect(coveredTo(harness, "BTC")).toBeGreaterThan(now - 3 * HOUR - 60 * SECOND);
  });

  it("H1: publishes a daily bar late: it is not claimed absent", async () => {
    const harness = await startBackfillHarness({
      settings: bars("[BTC, ETH]"),
      start: "2026-03-02T00:20:00Z",
      simulator: { quirks: { partialBar: false } },
    });
    harness.simulator.setFaults(Fault.lag(5 * 3_600_000, { on: "/ohlcv" }));
    const report = await harness.run();
    expect(report).toMatchObject({ exit: 0, problems: [] });
    expect(report.streams.find(({ stream }) => stream === "ohlcv")).toMatchObject({
      open: 0,
      unpublished: 2,
    });
    expectNothingFalse(harness);
    await harness.clock.advance(2 * 3_600_000);
    expect((await harness.run()).exit).toBe(0);
    expectNothingFalse(harness);
    harness.simulator.setFaults();
    await harness.run();
    harness.expectMatchesService();
    expect(harness.query("SELECT name FROM ohlcv WHERE day = '2026-03-01'")).toHaveLength(2);
  });
});

describe("a quiet series", () => {
  it("H1: is covered up to an hour before now after one run, beside others or alone", async () => {
    for (const selected of ["[BTC, LUNA]", "[LUNA]"]) {
      // LUNA ended in May 2022.
      const quirks = { listed: { perMille: 1000, on: "2022-01-01" } };
      const harness = await startBackfillHarness({ settings: bars(selected), simulator: { quirks } });
      const report = await harness.run();
      expect(report).toMatchObject({ exit: 0, problems: [] });
      expect(report.streams.find(({ stream }) => stream === "ohlcv")).toMatchObject({
        open: 0,
        unpublished: 0,
      });
      harness.expectMatchesService();
    }
  });

  it("H1: without any record is covered up to the margin of the settings", async () => {
    const harness = await startDenseHarness({
      settings: onlyTicks("[BTC, LIBRA]", { quietMargin: "20m" }),
      simulator: { quirks: { ...today, noData: "empty" } },
    });
    expect(await harness.run()).toMatchObject({ exit: 0, problems: [] });
    const now = harness.clock.now() * 1000;
    expect(coveredTo(harness, "LIBRA")).toBeGreaterThan(now - 21 * 60 * SECOND);
    expect(coveredTo(harness, "LIBRA")).toBeLessThan(now - 19.9 * 60 * SECOND);
    expect(coveredTo(harness, "BTC")).toBeGreaterThan(now - 62 * SECOND);
    const pages = harness.simulator.requests.count("/v3/index-ticker");
    // The service's Date header has whole seconds.
    await harness.clock.advance(3_600_259);
    expect((await harness.run()).exit).toBe(0);
    expect(coveredTo(harness, "LIBRA")).toBeGreaterThan(harness.clock.now() * 1000 - 21 * 60 * SECOND);
    // One page of BTC; one of LIBRA with the two that confirm it.
    expect(harness.simulator.requests.count("/v3/index-ticker") - pages).toBeLessThanOrEqual(4);
  });

  it("H1: that falls silent while others go on is covered after an hour", async () => {
    const harness = await startDenseHarness({
      settings: onlyTicks("[BTC, ETH]"),
      simulator: { quirks: today },
    });
    await harness.run();
    const [{ id } = {}] = harness.query("SELECT index_id AS id FROM series WHERE name = 'ETH'");
    const stopped = harness.clock.now() * 1000;
    await harness.clock.advance(5 * 60_000);
    harness.simulator.setFaults(
      Fault.lag(5 * 60_000, { on: "/index-ticker", query: { indexId: String(id) } }),
    );
    expect((await harness.run()).streams).toContainEqual(
      expect.objectContaining({ stream: "index_ticks", unpublished: 1, open: 0 }),
    );
    await harness.clock.advance(2 * 3_600_000);
    harness.simulator.setFaults(
      Fault.lag(125 * 60_000, { on: "/index-ticker", query: { indexId: String(id) } }),
    );
    expect(await harness.run()).toMatchObject({ exit: 0, problems: [] });
    const age = harness.clock.now() * 1000 - coveredTo(harness, "ETH");
    expect(coveredTo(harness, "ETH")).toBeGreaterThan(stopped + HOUR);
    expect(age).toBeGreaterThanOrEqual(HOUR - 5 * SECOND);
    expect(age).toBeLessThan(HOUR + 60 * SECOND);
  });
});
