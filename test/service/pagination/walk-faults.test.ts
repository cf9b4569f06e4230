import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Micros } from "../../../src/model/time.ts";
import type { ServiceClient } from "../../../src/service/client/client.ts";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { Fault } from "../../simulator/faults.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient } from "../../support/service/client-harness.ts";
import { ProvenCoverage } from "../../support/service/proven-coverage.ts";
import { readTicks } from "../../support/service/read-ticks.ts";

const durationMs = 5 * 3_600_000;
const clock = new ManualClock("2026-03-01T12:00:07Z");
let simulator: Simulator;
let client: ServiceClient;
let indexId: string;

beforeAll(async () => {
  simulator = await startSimulator({
    clock,
    size: { assets: 6, markets: 6, exchanges: 2 },
    quirks: { lastPage: "own-id", ids: "opaque" },
  });
  indexId = simulator.universe.assets.find(({ firstDay }) => firstDay < 18_000)?.id ?? "";
});
afterAll(() => simulator.stop());

beforeEach(() => {
  const { baseUrl, clientId, clientSecret } = simulator;
  client = createTestClient(baseUrl, clock, { clientId, readSecret: async () => clientSecret }).client;
});

/** Walks five hours of one index in pages of fifty; returns the missing and the unproven rows. */
async function walkHours(...faults: readonly Fault[]) {
  simulator.setFaults(...faults);
  const to = clock.now() - (clock.now() % 30_000);
  const from = (to - durationMs) * 1000;
  const filters = { indexType: "GWA", indexId };
  const walk = { endpoint: "/index-ticker", filters, from, until: to * 1000, size: 50 } as const;
  const truth = simulator.oracle
    .indexTicks("GWA", indexId, to - durationMs, to, clock.now())
    .map(({ timestamp }) => Date.parse(timestamp) * 1000);
  const received = new Set<Micros>();
  const coverage = new ProvenCoverage({ from, to: walk.until });
  const run = async () => {
    for await (const { page, position } of walkHistoryPages(client, walk, readTicks(indexId))) {
      for (const ts of page.timestamps) received.add(ts);
      coverage.addPage(page.timestamps, position, page.asOf);
      expect(truth.filter((ts) => coverage.covers(ts) && !received.has(ts))).toEqual([]);
    }
  };
  await clock.runUntil(run());
  const struck = simulator.faultCounts.reduce((sum, { struck }) => sum + struck, 0);
  const missing = truth.filter((ts) => !received.has(ts));
  const unproven = truth.filter((ts) => !coverage.covers(ts));
  return { struck, missing, unproven };
}

const on = "/index-ticker";

describe("a page from a cache", () => {
  it("B16: that contradicts the next page is requested again", async () => {
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(
      Fault.stale(10 * 60_000, { on, total: 1, page: "first" }),
    );
    expect({ struck, missing, unproven }).toEqual({ struck: 1, missing: [], unproven: [] });
  });

  it("B16: leaves newer rows unproven", async () => {
    // The cached page belongs to the same token, so the token must be older.
    await clock.runUntil(client.request({ endpoint: "/asset" }, async () => {}));
    await clock.advance(3_600_000);
    const { struck, missing, unproven } = await walkHours(Fault.stale(10 * 60_000, { on, page: "first" }));
    expect(struck).toBeGreaterThan(0);
    expect(unproven.length).toBeGreaterThan(15);
    expect(unproven.length).toBeLessThanOrEqual(20);
    expect(unproven).toEqual(expect.arrayContaining(missing));
  });
});
