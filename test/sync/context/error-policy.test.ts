import { describe, expect, it } from "vitest";
import { exitCode, Failure, type FailureCode } from "../../../src/model/failure.ts";
import { serviceScopes } from "../../../src/model/streams.ts";
import { classifyError, isWriterLost } from "../../../src/sync/context/context.ts";
import { Fault } from "../../simulator/faults.ts";
import {
  barsOf,
  onlyTicks,
  startBackfillHarness,
  startDenseHarness,
} from "../../support/sync/backfill-harness.ts";

const smallSettings = onlyTicks("[BTC, ETH]", { ohlcv: barsOf("[LUNA]"), marketCap: "{ every: 5m }" });

describe("errors during a backfill", () => {
  it("A2, A11: a missing scope, or an endpoint that rejects valid tokens, parks its stream; the rest is synced, exit 4", async () => {
    const engine = await startBackfillHarness({
      settings: smallSettings,
      simulator: {
        scopes: serviceScopes.filter((scope) => scope !== "read:ohlcv"),
        faults: [Fault.status(401, { on: "/market-cap" })],
      },
    });
    const startedAt = engine.clock.now();
    const report = await engine.run();
    expect(engine.clock.now() - startedAt).toBeLessThan(60_000);
    expect(report.exit).toBe(4);
    expect(report.problems).toMatchObject([
      { stream: "market_caps", code: "auth_failed" },
      { stream: "ohlcv", code: "forbidden" },
    ]);
    expect(engine.query("SELECT DISTINCT stream, reason FROM gaps WHERE reason = 'forbidden'")).toEqual([
      { stream: "ohlcv", reason: "forbidden" },
    ]);
    expect(engine.query("SELECT missing_scopes FROM stream_states WHERE stream = 'ohlcv'")).toEqual([
      { missing_scopes: '["read:ohlcv"]' },
    ]);
    expect(engine.query("SELECT count(*) > 1000 AS many FROM index_ticks")).toEqual([{ many: 1 }]);

    engine.simulator.grantScopes(serviceScopes);
    engine.simulator.setFaults();
    await engine.clock.advance(3_600_000);
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
    expect(engine.query("SELECT * FROM targets WHERE blocked_reason IS NOT NULL")).toEqual([]);
    expect(
      engine.query("SELECT last_error, missing_scopes FROM stream_states WHERE stream = 'ohlcv'"),
    ).toEqual([{ last_error: null, missing_scopes: "[]" }]);
  });

  it("A6: rejected credentials end the run at once, exit 3", async () => {
    const engine = await startBackfillHarness({ settings: smallSettings });
    engine.env.MDS_CLIENT_SECRET = "wrong";
    const startedAt = engine.clock.now();
    await expect(engine.run()).rejects.toMatchObject({ exit: 3, code: "credentials_rejected" });
    expect(engine.clock.now() - startedAt).toBeLessThan(10_000);
  });

  it("B4: an outage is waited out; after 15 minutes without a success the run ends, exit 75", async () => {
    const engine = await startBackfillHarness({
      settings: smallSettings,
      simulator: { faults: [Fault.status(503)] },
    });
    const startedAt = engine.clock.now();
    await expect(engine.run()).rejects.toMatchObject({ exit: 75 });
    const minutes = (engine.clock.now() - startedAt) / 60_000;
    expect(minutes).toBeGreaterThanOrEqual(15);
    expect(minutes).toBeLessThan(17);
    expect(engine.simulator.requests.total).toBeLessThan(200);

    engine.simulator.setFaults(Fault.status(500, { on: "/index-ticker", total: 20 }));
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });

  it("B17: three of four requests fail at random, and yet the run fetches everything, exit 0", async () => {
    const engine = await startBackfillHarness({ settings: smallSettings });
    engine.simulator.setFaults(Fault.status(500, { p: 0.5 }), Fault.reset({ p: 0.5 }));
    const startedAt = engine.clock.now();
    expect((await engine.run()).exit).toBe(0);
    expect(engine.clock.now() - startedAt).toBeLessThan(180_000);
    engine.simulator.setFaults();
    engine.expectMatchesService();
  });

  it("B11: a series that never returns a valid page stays open and is reported, exit 4; the others are synced", async () => {
    const engine = await startBackfillHarness({ settings: smallSettings });
    const eth = engine.simulator.universe.assets.find(({ symbol }) => symbol === "ETH")?.id;
    engine.simulator.setFaults(Fault.html({ on: "/index-ticker", query: { indexId: eth } }));
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(report.problems).toMatchObject([
      { stream: "index_ticks", what: "GWA ETH", code: "malformed_body" },
    ]);
    expect(report.streams.find(({ stream }) => stream === "index_ticks")?.open).toBe(1);
    const reasons =
      "SELECT DISTINCT reason FROM gaps WHERE name = 'ETH' AND state = 'open' AND reason <> 'settling'";
    expect(engine.query(reasons)).toEqual([{ reason: "malformed_body" }]);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
    expect(engine.query("SELECT * FROM targets WHERE blocked_reason IS NOT NULL")).toEqual([]);
  });

  it("a service slower than real time does not keep the run going forever", async () => {
    const engine = await startDenseHarness({
      settings: `service: { concurrency: 1 }\n${onlyTicks("[BTC, ETH, LIBRA]")}`,
      simulator: { faults: [Fault.latency(25_000, { on: "/index-ticker", to: 3 * 3_600_000 })] },
    });
    const startedAt = engine.clock.now();
    expect((await engine.run()).exit).toBe(0);
    expect(engine.clock.now() - startedAt).toBeLessThan(3_600_000);
    engine.expectMatchesService();
  });

  it("C10: exactly what left the service's window while nothing ran is lost", async () => {
    const engine = await startBackfillHarness({
      settings: onlyTicks("[BTC]"),
      simulator: { refreshSeconds: 1800 },
    });
    await engine.run();
    const [coveredUntil] = engine.query("SELECT max(to_ts) AS ts FROM coverage WHERE stream = 'index_ticks'");
    await engine.clock.advance(203 * 86_400_000);
    const report = await engine.run();
    expect(report.exit).toBe(0);
    const { lostMicros } = engine.expectMatchesService();
    expect(lostMicros / 86_400_000_000).toBeCloseTo(3, 1);
    const [range] = engine.query("SELECT from_ts, reason FROM coverage WHERE proof = 'lost'");
    expect(range).toEqual({ from_ts: coveredUntil?.ts, reason: "aged out" });
  });
});

describe("the reaction to a failure", () => {
  const failureOf = (code: FailureCode) => new Failure("it failed", { code });

  it.each([
    "db_corrupt",
    "db_not_writable",
    "db_replaced",
    "ingest_died",
    "io_error",
    "writer_replaced",
  ] as const)("%s ends the run and the daemon: the warehouse has no writer", (code) => {
    expect(classifyError(failureOf(code), 5)).toBe("stop");
    expect(isWriterLost(failureOf(code))).toBe(true);
  });

  it("retries credentials only if they have worked in this run", () => {
    const rejected = new Failure("rejected", { code: "auth_failed", exit: exitCode.credentials });
    expect([classifyError(rejected, 0), classifyError(rejected, 1)]).toEqual(["stop", "retry"]);
    expect(classifyError(failureOf("auth_failed"), 1)).toBe("give_up");
  });
});
