import { describe, expect, it, onTestFinished } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import { type Simulator, startSimulator } from "../../simulator/simulator.ts";
import { createDaemonHarness } from "../../support/daemon/daemon-harness.ts";
import { failureOf } from "../../support/failure-of.ts";
import {
  type BackfillHarness,
  barsOf,
  onlyTicks,
  startBackfillHarness,
} from "../../support/sync/backfill-harness.ts";
import { serviceEnv } from "../../support/sync/sync-session.ts";

const settings = onlyTicks("[BTC]", { ohlcv: barsOf("[BTC]"), marketCap: "{ every: 5m }" });

/** Points the settings to another simulator with its own ids, or with the same ones. */
async function switchService(harness: BackfillHarness, seed: number): Promise<Simulator> {
  const other = await startSimulator({ clock: harness.clock, seed });
  onTestFinished(() => other.stop());
  Object.assign(harness.env, { ...serviceEnv(other) });
  return other;
}

/** Everything that a service could have written. */
const contentSql = `SELECT (SELECT group_concat(id) FROM (SELECT id FROM assets UNION ALL SELECT id FROM market_rows
    UNION ALL SELECT id FROM exchanges ORDER BY id)) AS lookups,
  (SELECT count(*) FROM index_tick_rows) AS ticks, (SELECT count(*) FROM market_cap_rows) AS caps,
  (SELECT json_group_array(json_array(stream, series, from_ts, to_ts)) FROM settled_ranges) AS ledger,
  (SELECT json_group_array(json_array(stream, series, from_ts, to_ts)) FROM targets) AS targets,
  (SELECT service_url FROM warehouse_state) AS service`;

describe("the service of a warehouse", () => {
  it("F19: is refused with exit 2 before anything is stored, if it is another one; a new address needs its assets", async () => {
    const harness = await startBackfillHarness({ settings, simulator: { refreshSeconds: 600 } });
    await harness.run();
    const before = harness.query(contentSql);
    expect(before[0]?.service).toBe(harness.simulator.baseUrl);
    const other = await switchService(harness, 99);
    const failure = await failureOf(harness.run());
    expect(failure.code).toBe("other_service");
    expect(failure.exit).toBe(2);
    expect(failure.summary).toContain(harness.simulator.baseUrl);
    expect(failure.summary).toContain(other.baseUrl);
    expect(failure.summary).toContain("--adopt");
    expect(other.requests.count("/v3/asset")).toBe(2);
    expect(harness.query(contentSql)).toEqual(before);
    expect((await failureOf(harness.verify())).code).toBe("other_service");
    expect(harness.query(contentSql)).toEqual(before);

    const moved = await switchService(harness, 1);
    moved.setFaults(Fault.status(503, { on: "/asset" }));
    // Other endpoints answer, so the service can be reached.
    expect((await failureOf(harness.run())).exit).toBe(4);
    expect(harness.query(contentSql)).toEqual(before);
    moved.setFaults();
    expect((await harness.run()).exit).toBe(0);
    expect(harness.query("SELECT service_url FROM warehouse_state")).toEqual([
      { service_url: moved.baseUrl },
    ]);
    expect(harness.logged).toContainEqual({
      level: "info",
      fields: { from: harness.simulator.baseUrl, to: moved.baseUrl },
      message: "service address changed",
    });
  });

  it("is refused at its own address too, if its ids have changed", async () => {
    const harness = await startBackfillHarness({ settings, simulator: { refreshSeconds: 600 } });
    await harness.run();
    const before = harness.query(contentSql);
    await harness.simulator.stop();
    const port = Number(new URL(harness.simulator.baseUrl).port);
    const other = await startSimulator({ clock: harness.clock, seed: 99, port });
    onTestFinished(() => other.stop());
    const failure = await failureOf(harness.run());
    expect(failure.code).toBe("other_service");
    expect(failure.message).toContain("another service now answers there");
    expect(harness.query(contentSql)).toEqual(before);
  });

  it("is changed on purpose with --adopt, once", async () => {
    const harness = await startBackfillHarness({ settings, simulator: { refreshSeconds: 600 } });
    await harness.run();
    const first = { ...harness.env };
    await switchService(harness, 99);
    await harness.run({}, undefined, { mayAdopt: true });
    expect(harness.query("SELECT count(*) AS n FROM assets WHERE symbol = 'BTC'")).toEqual([{ n: 2 }]);
    expect((await harness.run()).problems).toEqual([]);
    Object.assign(harness.env, first);
    expect((await failureOf(harness.run())).code).toBe("other_service");
  });

  it("is taken over by a warehouse of an earlier version if its ids are known", async () => {
    const harness = await startBackfillHarness({ settings, simulator: { refreshSeconds: 600 } });
    await harness.run();
    await harness.write("UPDATE warehouse_state SET service_url = NULL");
    expect((await harness.run()).exit).toBe(0);
    expect(harness.query("SELECT service_url FROM warehouse_state")).toEqual([
      { service_url: harness.simulator.baseUrl },
    ]);
    await harness.write("UPDATE warehouse_state SET service_url = NULL");
    await switchService(harness, 99);
    expect((await failureOf(harness.run())).message).toContain("an earlier service");
  });

  it("stops a running daemon with exit 2 and nothing stored, if it changes", async () => {
    const harness = await createDaemonHarness({
      settings: `${settings}\nhttp: { port: 0 }`.replace("sync: {", "sync: { lookups: { every: 10m },"),
    });
    const daemon = await harness.startFilled();
    await harness.simulator.stop();
    const before = harness.query("SELECT group_concat(id) AS ids FROM assets");
    const port = Number(new URL(harness.simulator.baseUrl).port);
    const other = await startSimulator({ clock: harness.clock, seed: 99, port });
    onTestFinished(() => other.stop());
    const ended = daemon.runUntil(() => false);
    await expect(ended).rejects.toMatchObject({ code: "other_service", exit: 2 });
    expect(harness.query("SELECT group_concat(id) AS ids FROM assets")).toEqual(before);
    expect(harness.query("SELECT name FROM series WHERE index_type = 'GWA' AND name = 'BTC'")).toHaveLength(
      1,
    );
  });

  it("stops a daemon that starts on stored lookups before it follows the feed", async () => {
    const harness = await createDaemonHarness({ settings: `${settings}\nhttp: { port: 0 }` });
    await (await harness.startFilled()).stop();
    await harness.simulator.stop();
    const before = harness.query(contentSql);
    const port = Number(new URL(harness.simulator.baseUrl).port);
    const other = await startSimulator({ clock: harness.clock, seed: 99, port });
    onTestFinished(() => other.stop());
    const ended = harness.startServing().then((daemon) => daemon.runUntil(() => false));
    await expect(ended).rejects.toMatchObject({ code: "other_service", exit: 2 });
    expect(harness.query(contentSql)).toEqual(before);
  });
});
