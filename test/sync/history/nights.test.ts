import { describe, expect, it } from "vitest";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import { subtract, type TimeRanges, union } from "../../../src/model/time-range.ts";
import type { BackfillReport } from "../../../src/sync/history/backfill.ts";
import { cutOnGrid, rotationLength, selectDueTonight } from "../../../src/sync/history/comparison-plan.ts";
import type { SliceWalk } from "../../../src/sync/history/walk-planner.ts";
import { Fault } from "../../simulator/faults.ts";
import {
  type BackfillHarness,
  barsOf,
  onlyTicks,
  startBackfillHarness,
} from "../../support/sync/backfill-harness.ts";
import { expectCoverageCorrect } from "../../support/sync/oracle.ts";
import { gapsAt } from "../../support/warehouse/gaps.ts";

const DAY_MS = 86_400_000;
const settings = onlyTicks("[BTC, ETH]", { days: "5", ohlcv: barsOf("[BTC]") });
const onHistories = (create: (conditions: { on: string }) => Fault) =>
  ["/index-ticker", "/ohlcv"].map((on) => create({ on }));

const start = (faults: readonly Fault[]) =>
  startBackfillHarness({
    settings,
    mustRepeatClaims: true,
    simulator: { refreshSeconds: 600, quirks: { maxPageRows: 300 }, faults },
  });

async function runNextNight(engine: BackfillHarness): Promise<BackfillReport> {
  await engine.clock.advance(DAY_MS);
  return engine.run();
}

/** Why ranges below the head are open: the head goes on while the test reads. */
function openReasons({ query, clock }: BackfillHarness, stream = "index_ticks"): unknown[] {
  const sql = `SELECT DISTINCT reason FROM ${gapsAt(query, clock.now())} WHERE stream = '${stream}'
    AND state <> 'lost' AND reason <> 'settling' AND from_ts < ${(clock.now() - 3_600_000) * 1000}`;
  return query(sql).map(({ reason }) => reason);
}

function expectNothingWrong(engine: BackfillHarness): void {
  engine.withReader((reader) => expectCoverageCorrect(reader, engine.simulator, engine.clock.now()));
}

const settledEnds = (engine: BackfillHarness) =>
  engine.query("SELECT stream, name FROM coverage WHERE reason = 'nothing older'");

describe("nights of backfill, without a daemon", () => {
  it("H15: believes no end that one of two servers shows, and has everything after some nights", async () => {
    const engine = await start(onHistories(({ on }) => Fault.retention(3 * DAY_MS, { on, p: 0.5 })));
    const report = await engine.run();
    expect(report.streams.at(-1)).toMatchObject({ stream: "index_ticks", open: 0 });
    expect(settledEnds(engine)).toEqual([]);
    expectNothingWrong(engine);
    expect(openReasons(engine)).toEqual(["end unconfirmed"]);
    for (let night = 0; night < 4; night++) await runNextNight(engine);
    engine.expectMatchesService();
  });

  it("H15: finds the next night that the service has loaded its older history", async () => {
    const engine = await start([
      Fault.begins("2026-02-26T12:00:00Z", { on: "/index-ticker" }),
      Fault.begins("2026-01-20T00:00:00Z", { on: "/ohlcv" }),
    ]);
    expect(await engine.run()).toMatchObject({ exit: 0, night: undefined });
    expect(settledEnds(engine)).toEqual([]);
    expect((await runNextNight(engine)).night).toMatchObject({ ends: { reopened: 0 } });
    expect(settledEnds(engine)).toHaveLength(3);
    expect(openReasons(engine)).toEqual([]);

    engine.simulator.setFaults();
    expect(await runNextNight(engine)).toMatchObject({ exit: 0, night: { ends: { asked: 3, reopened: 3 } } });
    expect(openReasons(engine)).toEqual([]);
    expect(openReasons(engine, "ohlcv")).toEqual(["end unconfirmed"]);
    await runNextNight(engine);
    engine.expectMatchesService();
  });

  it("H15: asks one request a history, is no failure if some are not answered, and re-opens what has older records", async () => {
    const beginsAt = "2026-02-26T12:00:00.000Z";
    const begins = onHistories(({ on }) => Fault.begins(beginsAt, { on }));
    const engine = await start(begins);
    await engine.run();
    await runNextNight(engine);
    const countAsked = () =>
      engine.simulator.requests.list.filter(({ target }) =>
        target.includes(`timestamp=${encodeURIComponent(beginsAt)}`),
      ).length;
    const before = countAsked();
    expect(await runNextNight(engine)).toMatchObject({ night: { ends: { asked: 3, unanswered: 0 } } });
    expect(countAsked() - before).toBe(2);

    engine.simulator.setFaults(
      ...begins,
      Fault.status(500, { on: "/index-ticker", query: { timestamp: beginsAt } }),
    );
    expect(await runNextNight(engine)).toMatchObject({
      exit: 0,
      night: { ends: { asked: 3, reopened: 0, unanswered: 2 } },
    });
    expect(settledEnds(engine)).toHaveLength(3);

    engine.simulator.setFaults();
    expect(await engine.checkEnds()).toEqual({ asked: 3, reopened: 3, unanswered: 0 });
    expect(settledEnds(engine)).toEqual([]);
  });

  it("B6: asks again every night for an index that the service did not know", async () => {
    const engine = await start(onHistories(({ on }) => Fault.status(404, { on })));
    await engine.run();
    expect(await runNextNight(engine)).toMatchObject({ exit: 0 });
    expect(engine.query("SELECT DISTINCT proof, reason FROM coverage")).toEqual([
      { proof: "empty", reason: "not found" },
    ]);
    engine.simulator.setFaults();
    await runNextNight(engine);
    await runNextNight(engine);
    engine.expectMatchesService();
  });

  it("H15: finds a filled hole, corrected ticks and a revised bar within the stated nights", async () => {
    const engine = await start([
      Fault.withdraw("2026-02-26T10:00:00Z", "2026-02-26T20:00:00Z", { on: "/index-ticker" }),
      Fault.set("price", "1", { on: "/index-ticker", rows: 0.1 }),
      Fault.set("close", "1", { on: "/ohlcv", rows: "last" }),
    ]);
    await engine.run();
    engine.simulator.setFaults();
    const report = await runNextNight(engine);
    expect(report).toMatchObject({ exit: 0, night: { nights: 1, comparison: { sliceCount: 3 } } });
    engine.expectMatchesService();
    // Once a day.
    expect((await engine.run()).night).toBeUndefined();
  });
});

const cadence = 30 * MICROS_PER_SECOND;
const WINDOW = 200 * MICROS_PER_DAY;
const FIRST_NIGHT = 20_500;
const SERIES_COUNT = 12;

/** The window of each series in one night, cut as the audit cuts it. It moves from night to night. */
function slicesOn(now: Micros): SliceWalk[] {
  return Array.from({ length: SERIES_COUNT }, (_, series) => {
    const key = { stream: "index_ticks", series } as const;
    const walked = {
      key,
      indexType: "GWA",
      indexId: `${series}`,
      name: `${series}`,
      serviceWindow: WINDOW,
      period: cadence,
      cadence,
      settleDelay: 2 * cadence,
      quietMargin: 0,
      knownEnd: undefined,
      blockedReason: null,
    };
    const pieces = cutOnGrid([{ from: now - WINDOW, to: now }], cadence);
    return pieces.map((range): SliceWalk => ({ series: walked, range, urgency: "history", isHead: false }));
  }).flat();
}

describe("the rotation of nights", () => {
  it("H15: compares everything that is covered at the start of a rotation and still served at its end", () => {
    const nights = rotationLength(slicesOn(FIRST_NIGHT * MICROS_PER_DAY).length);
    expect(nights).toBe(30);
    for (const first of [FIRST_NIGHT, FIRST_NIGHT + 7]) {
      const compared = new Map<number, TimeRanges>();
      for (let night = first; night < first + nights; night++) {
        const due = selectDueTonight(slicesOn(night * MICROS_PER_DAY), night * MICROS_PER_DAY);
        expect(due.length).toBeGreaterThan(15);
        expect(due.length).toBeLessThan(60);
        for (const { series, range } of due)
          compared.set(series.key.series, union(compared.get(series.key.series) ?? [], [range]));
      }
      const served = { from: (first + nights) * MICROS_PER_DAY - WINDOW, to: first * MICROS_PER_DAY };
      for (let series = 0; series < SERIES_COUNT; series++)
        expect({ series, left: subtract([served], compared.get(series) ?? []) }).toEqual({
          series,
          left: [],
        });
    }
  });

  it("compares everything each night if there is little, and at most 500 slices if there is much", () => {
    expect([0, 1, 59, 60, 599, 15_000, 15_001, 100_000].map(rotationLength)).toEqual([
      1, 1, 1, 3, 15, 30, 60, 240,
    ]);
    for (let slices = 60; slices < 200_000; slices = Math.ceil(slices * 1.1)) {
      expect(slices / rotationLength(slices)).toBeGreaterThanOrEqual(20);
      expect(slices / rotationLength(slices)).toBeLessThanOrEqual(500);
    }
  });
});
