import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = { intraday: ticksOf("BTC") };

const PERIOD = 60;

/** Rows closer together than half a period. */
const doublesSql = (until: number) => `SELECT count(*) AS n FROM (
  SELECT ts, ts - lag(ts) OVER (PARTITION BY index_id ORDER BY ts) AS distance FROM index_ticks
) WHERE distance < 30000000 AND ts < ${until}`;

describe("a socket that stamps ticks off REST's moment", () => {
  it.each([137, -137])(
    "H4: by %s ms: heads advance, no row is doubled, and the offset is told once",
    async (by) => {
      const harness = await SupervisorHarness.start({
        sync,
        refreshSeconds: PERIOD,
        simulator: { faults: [Fault.shiftTimestamps(by, { on: "ticks" })] },
      });
      await harness.runUntilSettled();
      for (let hour = 0; hour < 2; hour++) {
        await harness.advance(3600);
        expect(harness.query(doublesSql(harness.clock.now() * 1000))).toEqual([{ n: 0 }]);
      }
      expect([...harness.problems.values()].flat()).toEqual([]);
      expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
      harness.expectMatchesService(harness.clock.now() - 75 * 60_000);
      // A preview that REST confirms at another moment is replaced, not revised.
      expect(harness.query("SELECT * FROM revisions")).toEqual([]);
      const told = harness.logged.filter(({ message }) => message === "websocket and REST timestamps differ");
      expect(told.map(({ fields }) => fields)).toEqual([{ stream: "index_ticks", offset_ms: by }]);
      expect(harness.query("SELECT live_offset FROM stream_states WHERE stream = 'index_ticks'")).toEqual([
        { live_offset: 1000 * by },
      ]);
    },
  );

  it("H4: late ticks add no row where REST has rows", async () => {
    const harness = await SupervisorHarness.start({ sync, refreshSeconds: PERIOD });
    await harness.runUntilSettled();
    await harness.advance(3600);
    harness.simulator.setFaults(
      Fault.shiftTimestamps(137, { on: "ticks" }),
      Fault.dropConnection({ when: "tick", total: 1 }),
      Fault.replay(100),
    );
    await harness.advance(300);
    expect(harness.query(doublesSql(harness.clock.now() * 1000))).toEqual([{ n: 0 }]);
    expect(harness.readGaps("reason <> 'settling'")).toEqual([]);
  });
});
