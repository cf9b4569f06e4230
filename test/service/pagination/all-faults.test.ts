import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { walkHistoryPages } from "../../../src/service/pagination/history-walk.ts";
import { Fault } from "../../simulator/faults.ts";
import { startSimulator } from "../../simulator/simulator.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seed } from "../../support/seed.ts";
import { createTestClient } from "../../support/service/client-harness.ts";
import { ProvenCoverage, WalkContradiction } from "../../support/service/proven-coverage.ts";
import { readTicks } from "../../support/service/read-ticks.ts";

const allFaults = [
  Fault.status(503, { on: "/oauth/token", p: 0.3 }),
  Fault.tokenLife(600, { p: 0.5 }),
  Fault.revoke({ p: 0.02 }),
  Fault.status(429, { retryAfter: "imf", wait: 20_000, p: 0.03 }),
  Fault.status(429, { p: 0.02 }),
  Fault.status(500, { p: 0.05 }),
  Fault.cut("reset", { at: 500, p: 0.04 }),
  Fault.encoding("cut", { p: 0.03 }),
  Fault.html({ p: 0.02 }),
  Fault.stall({ at: "body", p: 0.02 }),
  Fault.reset({ socket: "reused", p: 0.05 }),
  Fault.status(409, { p: 0.03 }),
  Fault.deadCursor("empty", { on: "/index-ticker", p: 0.05, page: "later" }),
  Fault.deadCursor(404, { on: "/index-ticker", p: 0.03, page: "later" }),
  Fault.repeatPage({ on: "/index-ticker", p: 0.04, page: "later" }),
  Fault.swapPages({ on: "/index-ticker", p: 0.04, page: "later" }),
  Fault.emptyPage({ on: "/index-ticker", p: 0.04, page: "later" }),
  Fault.cycle(1, { on: "/index-ticker", p: 0.04, page: "later" }),
  Fault.order("shuffled", { on: "/index-ticker", p: 0.04 }),
  Fault.status(503, { from: 60_000, to: 20 * 60_000 }),
];

describe("all faults at once", () => {
  it("six parallel walks receive every row, prove no missing row, and limit their requests", async () => {
    const clock = new ManualClock("2026-03-01T12:00:07Z");
    const size = { assets: 8, markets: 6, exchanges: 2 };
    const simulator = await startSimulator({
      clock,
      size,
      seed,
      quirks: { lastPage: "own-id" },
      faults: allFaults,
    });
    const { baseUrl, clientId, clientSecret, universe, oracle } = simulator;
    const { client, events } = createTestClient(baseUrl, clock, {
      clientId,
      readSecret: async () => clientSecret,
    });
    const to = Math.floor(clock.now() / 30_000) * 30_000;
    const from = to - 10 * 3_600_000;
    const indices = universe.assets.filter(({ firstDay }) => firstDay < 18_000).slice(0, 6);

    /** Like the gap filler: retries a failed walk later, from the start. */
    const fill = async (indexId: string) => {
      const rows = oracle
        .indexTicks("GWA", indexId, from, to, clock.now())
        .map(({ timestamp }) => Date.parse(timestamp) * 1000);
      const received = new Set<number>();
      const coverage = new ProvenCoverage({ from: from * 1000, to: to * 1000 });
      const filters = { indexType: "GWA", indexId };
      const walk = {
        endpoint: "/index-ticker",
        filters,
        from: from * 1000,
        until: to * 1000,
        size: 50,
      } as const;
      for (let attempts = 1; ; attempts++) {
        try {
          for await (const { page, position } of walkHistoryPages(client, walk, readTicks(indexId))) {
            for (const ts of page.timestamps) received.add(ts);
            coverage.addPage(page.timestamps, position);
            expect(rows.filter((row) => coverage.covers(row) && !received.has(row))).toEqual([]);
          }
          return { missing: rows.filter((row) => !received.has(row)), open: coverage.openRanges };
        } catch (error) {
          // After two revocations in a row a token is asked for again only ten minutes later; which walk meets them depends on the order.
          if (!(error instanceof Failure || error instanceof WalkContradiction) || attempts > 100)
            throw error;
          await clock.sleep(60_000);
        }
      }
    };
    const filled = await clock.runUntil(Promise.all(indices.map(({ id }) => fill(id))));
    await simulator.stop();

    expect(filled).toHaveLength(6);
    for (const result of filled) expect(result).toEqual({ missing: [], open: [] });
    expect(simulator.faultCounts.filter(({ struck }) => struck > 0).length).toBeGreaterThan(12);
    const requests = events.filter(({ kind }) => kind === "request").length;
    expect(requests).toBeLessThan(6 * 24 * 5);
    expect(clock.monotonic()).toBeLessThan(6 * 3_600_000);
  });
});
