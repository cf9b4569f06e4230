import { describe, expect, it } from "vitest";
import { allScopes } from "../../src/simulator/rest/tokens.ts";
import { startBackfillHarness } from "../support/sync/backfill-harness.ts";
import { installBackfill } from "./backfill-process.ts";

const settings = `sync: { exchangeTickers: false, derivatives: false, ohlcv: { GWA: [LUNA], MWA: none, LX: none },
  intraday: { GWA: [BTC, ETH], MWA: none, LX: all, days: 1 } }`;

/** Every kind of fault. The retries wait on a manual clock, so that the load of the machine does not matter. */
const storm = `
GET * status 500 p=0.3 total=2
GET * status 503 p=0.3 total=2
GET * rate-limit retry-after=seconds wait=1s p=0.3 total=1
GET * reset p=0.3 total=2
GET * cut chunked p=0.3 total=1
GET * cut length p=0.3 total=1
GET * html p=0.3 total=1
GET /index-ticker revoke p=0.3 total=2
GET /index-ticker next-id same page=later total=1
GET /index-ticker next-id cycle page=later p=0.5 total=1
GET /index-ticker dead-cursor 404 p=0.5 total=1
GET /index-ticker dead-cursor empty p=0.5 total=1
GET /index-ticker size-cap 500`;

describe("a backfill", () => {
  it("matches the service after many faults at once", async () => {
    const engine = await startBackfillHarness({ settings, simulator: { faults: storm } });
    const { exit, problems } = await engine.run();
    expect({ exit, problems }).toEqual({ exit: 0, problems: [] });
    const struck = engine.simulator.faultCounts.filter((line) => line.struck > 0);
    expect(struck.length).toBeGreaterThan(7);
    engine.simulator.setFaults("");
    expect(engine.expectMatchesService().rows).toBeGreaterThan(5 * 2800);
  });

  it("A11: without the scopes of some streams, syncs the rest, reports the scopes, and exits 4", async () => {
    const installation = await installBackfill(settings, {
      scopes: allScopes.filter((scope) => scope !== "read:LX" && scope !== "read:ohlcv"),
    });
    const startedAt = Date.now();
    const { status, stdout, stderr } = await installation.start("--log-level", "silent").result;
    expect(status).toBe(4);
    expect(stdout).toContain("read:ohlcv");
    expect(stdout).toContain("read:LX");
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(installation.query("SELECT DISTINCT index_type, name FROM index_ticks ORDER BY 2")).toEqual([
      { index_type: "GWA", name: "BTC" },
      { index_type: "GWA", name: "ETH" },
    ]);
    // Records newer than the settle delay are left to the next run.
    const coveredUntil = (startedAt - 61_000) * 1000;
    expect(
      installation.query(
        `SELECT * FROM gaps WHERE stream = 'index_ticks' AND index_type = 'GWA' AND from_ts < ${coveredUntil}`,
      ),
    ).toEqual([]);
    expect(
      installation.query("SELECT DISTINCT state FROM gaps WHERE stream = 'ohlcv' AND reason <> 'settling'"),
    ).toEqual([{ state: "open" }]);
  });
});
