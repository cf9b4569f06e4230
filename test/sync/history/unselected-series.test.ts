import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import {
  barsOf,
  onlyTicks,
  startBackfillHarness,
  startDenseHarness,
} from "../../support/sync/backfill-harness.ts";

const settings = onlyTicks("[BTC]", { days: "2", ohlcv: barsOf("[BTC, SOL]") });
const coverageSql = `SELECT stream, min(from_time) AS "from", max(to_time) AS "to" FROM coverage WHERE name = 'ETH' GROUP BY stream ORDER BY stream`;

describe("a backfill of a series that the settings do not select", () => {
  it("fetches nothing, says so and exits 4", async () => {
    const harness = await startBackfillHarness({ settings });
    await harness.run();
    const report = await harness.run({ series: ["ETH"] });
    expect(report.exit).toBe(4);
    expect(report.problems).toEqual([]);
    expect(report.notSelected).toMatchObject([
      { name: "ETH", indexType: "GWA", streams: ["index_ticks", "ohlcv"], isSelectedElsewhere: false },
    ]);
    expect(harness.query("SELECT count(*) AS n FROM index_ticks WHERE name = 'ETH'")).toEqual([{ n: 0 }]);
    expect(harness.query("SELECT last_error FROM stream_states WHERE last_error IS NOT NULL")).toEqual([]);
  });

  it("exits 0 if a stream of the run has it, and names the others", async () => {
    const harness = await startBackfillHarness({ settings });
    const report = await harness.run({ series: ["SOL"] });
    expect([report.exit, report.notSelected.map(({ streams }) => streams)]).toEqual([0, [["index_ticks"]]]);
    const ticks = await harness.run({ series: ["SOL"], streams: ["index_ticks"] });
    expect(ticks.exit).toBe(4);
  });

  it("fetches it once on request: rows and coverage, and a target that has ended", async () => {
    const harness = await startDenseHarness({ settings });
    await harness.run();
    const report = await harness.run({ series: ["ETH"], fetchesUnselected: true });
    expect([report.exit, report.notSelected]).toEqual([0, []]);
    const [ticks] = harness.query("SELECT count(*) AS n FROM index_ticks WHERE name = 'ETH'");
    expect(ticks?.n).toBeGreaterThan(5_000);
    const covered = harness.query(coverageSql);
    expect(covered.map(({ stream, to }) => [stream, String(to).slice(0, 16)])).toEqual([
      ["index_ticks", "2026-03-01T11:59"],
      ["ohlcv", "2026-03-01T00:00"],
    ]);
    expect(
      harness.query(
        "SELECT count(*) AS n FROM targets w JOIN series s USING (series) WHERE s.name = 'ETH' AND to_ts IS NULL",
      ),
    ).toEqual([{ n: 0 }]);
    // It is not followed: a later run fetches nothing more of it.
    await harness.clock.runUntil(harness.clock.sleep(3_600_000));
    expect((await harness.run()).exit).toBe(0);
    expect(harness.query(coverageSql)).toEqual(covered);
    expect(harness.query("SELECT * FROM gaps WHERE name = 'ETH' AND state = 'open'")).toEqual([]);
  });

  it("fetches only the range that is asked for", async () => {
    const harness = await startBackfillHarness({ settings });
    await harness.run();
    const at = (hour: number) => Date.UTC(2026, 2, 1, hour) * 1000;
    const range = { from: at(3), to: at(4) };
    const streams = ["index_ticks"] as const;
    expect((await harness.run({ series: ["ETH"], streams, range, fetchesUnselected: true })).exit).toBe(0);
    expect(harness.query(coverageSql)).toEqual([
      { stream: "index_ticks", from: "2026-03-01T03:00:00.000000Z", to: "2026-03-01T04:00:00.000000Z" },
    ]);
  });

  it("names all unknown series at once, each with a suggestion", async () => {
    const harness = await startBackfillHarness({ settings });
    const error = await harness.run({ series: ["BCT", "ETHH", "BTC"] }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Failure);
    expect((error as Failure).exit).toBe(2);
    expect((error as Failure).message).toMatch(/BCT \(did you mean BTC\?\), ETHH \(did you mean ETH\?\)/);
  });
});
