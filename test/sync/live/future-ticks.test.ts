import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { onlyTicks, startBackfillHarness } from "../../support/sync/backfill-harness.ts";
import { list, SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = {
  intraday: ticksOf("BTC"),
  exchangeTickers: { exchanges: list("Kraken"), markets: list("BTC/USD") },
};
const newest = (harness: SupervisorHarness, stream: string) =>
  Number(harness.query(`SELECT max(ts) AS ts FROM ${stream}`)[0]?.ts) / 1000;

describe("a tick from beyond the service's clock", () => {
  it("H11: over the websocket is nobody's latest, and is stored when REST serves it in its time", async () => {
    const harness = await SupervisorHarness.start({ sync, refreshSeconds: 60 });
    await harness.runUntilSettled();
    await harness.runUntil(() => harness.activity === "following the live feed");
    harness.simulator.setFaults(Fault.shiftTimestamps(3_600_000, { on: "ticks", total: 2 }));
    await harness.advance(120);
    harness.simulator.setFaults();
    const { clock } = harness;
    expect(newest(harness, "index_ticks")).toBeLessThanOrEqual(clock.now());
    expect(newest(harness, "exchange_ticks")).toBeLessThanOrEqual(clock.now());
    const rejects = harness.query("SELECT stream, reason, raw FROM rejects");
    expect(rejects).toHaveLength(2);
    for (const { reason, raw } of rejects) {
      expect(reason).toBe("timestamp is ahead of the service's clock");
      expect(String(raw)).toContain('"2026-03-01T03:');
    }
    await harness.advance(2 * 3600);
    harness.expectMatchesService(clock.now() - 75 * 60_000);
    expect(harness.readGaps("state = 'open' AND reason <> 'settling'")).toEqual([]);
  });

  it("H11: on a REST page is kept aside, and the page still proves its range", async () => {
    const engine = await startBackfillHarness({
      settings: onlyTicks("[BTC]"),
      simulator: {
        faults: [
          Fault.shiftTimestamps(3_600_000, { on: "/index-ticker", rows: "first", times: 1, page: "first" }),
        ],
      },
    });
    await engine.run();
    const [{ newest: ts = 0 } = {}] = engine.query("SELECT max(ts) AS newest FROM index_ticks");
    expect(Number(ts)).toBeLessThanOrEqual(engine.clock.now() * 1000);
    expect(engine.query("SELECT DISTINCT reason FROM rejects")).toEqual([
      { reason: "timestamp is ahead of the service's clock" },
    ]);
    expect(engine.query("SELECT state FROM gaps WHERE state = 'open' AND reason = 'unproven'")).toEqual([]);
    engine.expectMatchesService();
  });
});
