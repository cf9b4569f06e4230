import { describe, expect, it } from "vitest";
import { openReader } from "../../../src/warehouse/reader.ts";
import { Fault } from "../../simulator/faults.ts";
import { expectCoverageCorrect } from "../../support/sync/oracle.ts";
import { SupervisorHarness, ticksOf } from "../../support/sync/supervisor-harness.ts";

const sync = { intraday: ticksOf("BTC") };

/** Every covered range must have exactly the rows that the service has in the end. */
function findFalseCoverage(harness: SupervisorHarness, atMs: number): string | undefined {
  const reader = openReader(harness.path);
  try {
    expectCoverageCorrect(reader, harness.simulator, atMs);
    return undefined;
  } catch (error) {
    return String(error);
  } finally {
    reader.close();
  }
}

const REFRESH_SECONDS = 60;

describe("a daemon with a mute socket", () => {
  it("H1: claims nothing that REST has not published, and everything once REST has caught up", async () => {
    const harness = await SupervisorHarness.start({
      sync,
      refreshSeconds: REFRESH_SECONDS,
      simulator: { faults: [Fault.mute(), Fault.lag(30 * 60_000, { on: "/index-ticker" })] },
    });
    await harness.runUntil(() => harness.isFilled);
    for (let minute = 0; minute < 45; minute += 15) {
      await harness.advance(900);
      expect(findFalseCoverage(harness, harness.clock.now())).toBeUndefined();
    }
    const heads = harness.readGaps("reason = 'not published yet'");
    expect(heads.map(({ name }) => name)).toEqual(["BTC"]);
    for (const { age } of heads)
      expect(Math.abs(Number(age) - 1800)).toBeLessThanOrEqual(3 * REFRESH_SECONDS);
    // One page a period, and the probe that confirms its silence.
    const from = harness.requestCount;
    await harness.advance(300);
    expect(harness.requestsTo("/index-ticker", from).length).toBeLessThanOrEqual(
      2 * (300 / REFRESH_SECONDS + 1),
    );

    harness.simulator.setFaults(Fault.mute());
    await harness.advance(4 * REFRESH_SECONDS);
    expect(harness.readGaps("reason = 'not published yet'")).toEqual([]);
    harness.expectMatchesService(harness.clock.now() - 4000 * REFRESH_SECONDS);
    expect(harness.problems.get("heads") ?? []).toEqual([]);
  });

  it("H2: finds rows that appear five minutes late, and stops claiming what may still get some", async () => {
    const [refreshSeconds, by] = [REFRESH_SECONDS, 300];
    const harness = await SupervisorHarness.start({
      sync: { intraday: ticksOf("BTC", "ETH") },
      refreshSeconds,
      simulator: { faults: [Fault.mute()] },
    });
    await harness.runUntil(() => harness.isFilled);
    await harness.advance(by);
    harness.simulator.setFaults(Fault.mute(), Fault.lateRows(by * 1000, 0.1, { on: "/index-ticker" }));
    // The first late rows are found as soon as they appear, and show how late rows may be.
    await harness.advance(5 * by);
    for (let check = 0; check < 5; check++) {
      await harness.advance(120);
      expect(findFalseCoverage(harness, harness.clock.now())).toBeUndefined();
    }
    const settling = harness.readGaps("reason = 'settling'");
    expect(settling).toHaveLength(2);
    for (const { age } of settling) expect(Number(age)).toBeGreaterThanOrEqual(by);

    // Without late rows the claim comes closer again.
    harness.simulator.setFaults(Fault.mute());
    await harness.advance(14 * by + 4 * refreshSeconds);
    expect(Number(harness.readGaps("reason = 'settling'")[0]?.age)).toBeLessThan(by);
    harness.expectMatchesService(harness.clock.now() - 1000 * (by + 4 * refreshSeconds));
  });
});
