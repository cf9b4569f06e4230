import { expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { onlyTicks, startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const settings = onlyTicks("[BTC, ETH, LTC]");

it("one index that the service denies does not keep the other indices of its type from being fetched, and is named", async () => {
  const engine = await startBackfillHarness({ settings });
  const bitcoin = engine.simulator.universe.assets.find(({ symbol }) => symbol === "BTC");
  engine.simulator.setFaults(Fault.status(403, { on: "/index-ticker", query: { indexId: bitcoin?.id } }));
  const report = await engine.run();
  expect(report.exit).toBe(4);
  expect(report.problems).toMatchObject([
    { stream: "index_ticks", what: "GWA BTC", code: "index_forbidden" },
  ]);
  expect(engine.query("SELECT DISTINCT name FROM index_ticks ORDER BY name")).toEqual([
    { name: "ETH" },
    { name: "LTC" },
  ]);
  const open = "SELECT DISTINCT name, reason FROM gaps WHERE stream = 'index_ticks' AND state = 'open'";
  expect(engine.query(`${open} AND reason = 'forbidden'`)).toEqual([{ name: "BTC", reason: "forbidden" }]);
  // Denied for good: no more requests than needed to believe it.
  const denied = engine.simulator.requests.list.filter(({ target }) => target.includes(String(bitcoin?.id)));
  expect(denied.length).toBeLessThan(10);

  engine.simulator.setFaults();
  await engine.clock.advance(61 * 60_000);
  expect((await engine.run()).exit).toBe(0);
  engine.expectMatchesService();
});
