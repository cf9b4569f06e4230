import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import {
  barsOf,
  onlyTicks,
  startBackfillHarness,
  startDenseHarness,
} from "../../support/sync/backfill-harness.ts";

const settings = onlyTicks("[BTC, LIBRA]", { days: "2", ohlcv: barsOf("[SOL]") });

it("verify finds no difference after a backfill; reports and repairs rows that differ, are missing or are surplus", async () => {
  const engine = await startDenseHarness({ settings });
  await engine.run();
  await engine.clock.advance(3_600_000);
  const untouched = await engine.verify();
  expect(untouched).toMatchObject({ differences: [], problems: [] });
  // Two tick series of two days, each cut once by the grid, and one series of daily bars.
  expect(untouched.sliceCount).toBe(5);
  expect(untouched.rows).toBeGreaterThan(5_700);
  expect(engine.query("SELECT * FROM revisions")).toEqual([]);

  const database = new Database(engine.path);
  const changedTs = Date.parse("2026-02-28T20:00:00Z") * 1000;
  database.exec(`UPDATE index_tick_rows SET price = price + 1 WHERE ts = ${changedTs};
      DELETE FROM index_tick_rows WHERE ts = ${changedTs + 30_000_000};
      INSERT INTO index_tick_rows (series, ts, price, source) SELECT series, ts + 5000000, price, 0 FROM index_tick_rows WHERE ts = ${changedTs};
      DELETE FROM daily_bar_rows WHERE ts = ${Date.parse("2026-02-02") * 1000}`);
  database.close();
  const verified = await engine.verify();
  expect(verified.differences).toMatchObject([
    { stream: "index_ticks", name: "BTC", missing: 1, changed: 1, withdrawn: 1 },
    { stream: "ohlcv", name: "SOL", missing: 1, changed: 0, withdrawn: 0 },
  ]);
  engine.expectMatchesService();
  expect(engine.query("SELECT count(*) AS n FROM revisions")).toEqual([{ n: 2 }]);
  expect(await engine.verify()).toMatchObject({ differences: [], problems: [] });
});

it.each(["404", "empty"] as const)(
  "verify with accept believes what is unconfirmed of a series without records (%s)",
  async (noData) => {
    const engine = await startBackfillHarness({
      settings: settings.replace("[SOL]", "[SOL, LIBRA]"),
      mustRepeatClaims: true,
      simulator: { quirks: { noData } },
    });
    const count = (sql: string) => engine.query(`SELECT count(*) AS n FROM ${sql}`)[0]?.n;
    await engine.run();
    expect(count("coverage WHERE name = 'LIBRA'")).toBe(0);
    expect(count("pending_claims")).toBe(3);
    expect(await engine.verify({ acceptsWithdrawals: true })).toMatchObject({ problems: [] });
    expect(count("pending_claims")).toBe(0);
    expect(
      engine.query("SELECT DISTINCT stream, proof FROM coverage WHERE name = 'LIBRA' ORDER BY 1"),
    ).toEqual([
      { stream: "index_ticks", proof: "empty" },
      { stream: "ohlcv", proof: "empty" },
    ]);
  },
);

it("a series that is not selected any more is compared, and repaired, up to where it was selected", async () => {
  const engine = await startDenseHarness({ settings });
  await engine.run();
  engine.configure(settings.replace("[BTC, LIBRA]", "[ETH]"));
  await engine.run();
  const database = new Database(engine.path);
  database.exec("UPDATE index_tick_rows SET price = price + 1 WHERE ts = 1772309100000000 AND series = 1");
  database.close();
  expect(engine.query("SELECT name FROM series WHERE series = 1")).toEqual([{ name: "BTC" }]);
  expect(await engine.verify()).toMatchObject({ differences: [{ name: "BTC", changed: 1 }], problems: [] });
  expect(await engine.verify()).toMatchObject({ differences: [], problems: [] });
});

describe("an index that gets a 404", () => {
  it("is covered as empty, without exit 4, and is filled once the service has it", async () => {
    const engine = await startDenseHarness({ settings });
    const btc = engine.simulator.universe.assets.find(({ symbol }) => symbol === "BTC")?.id;
    engine.simulator.setFaults(Fault.status(404, { on: "/index-ticker", query: { indexId: btc } }));
    expect((await engine.run()).exit).toBe(0);
    expect(
      engine.query(
        "SELECT DISTINCT name, proof, reason FROM coverage WHERE stream = 'index_ticks' ORDER BY 1",
      ),
    ).toEqual([
      { name: "BTC", proof: "empty", reason: "not found" },
      { name: "LIBRA", proof: "empty", reason: "not found" },
    ]);
    engine.simulator.setFaults();
    await engine.clock.advance(86_400_000);
    expect((await engine.run()).exit).toBe(0);
    expect(engine.expectMatchesService().rows).toBeGreaterThan(8_000);
  });

  it("after it had records: one 404 is not trusted, a repeated one is, and the stored rows stay", async () => {
    const engine = await startBackfillHarness({
      settings: settings.replace("BTC,", "BTC, ETH,"),
      mustRepeatClaims: true,
    });
    await engine.run();
    const btc = engine.simulator.universe.assets.find(({ symbol }) => symbol === "BTC")?.id;
    const coverage = "SELECT proof, reason FROM coverage WHERE stream = 'index_ticks' AND name = 'BTC'";
    engine.simulator.setFaults(Fault.status(404, { on: "/index-ticker", total: 1, query: { indexId: btc } }));
    await engine.clock.advance(3_600_000);
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(engine.query(coverage)).toEqual([{ proof: "rows", reason: null }]);
    await engine.clock.advance(3_600_000);
    await engine.run();
    expect(engine.query(coverage)).toEqual([{ proof: "rows", reason: null }]);
    engine.expectMatchesService();

    const rows = engine.query("SELECT count(*) AS n FROM index_ticks WHERE name = 'BTC'");
    engine.simulator.setFaults(Fault.status(404, { on: "/index-ticker", query: { indexId: btc } }));
    await engine.clock.advance(3_600_000);
    const requestsBefore = engine.simulator.requests.total;
    expect((await engine.run()).exit).toBe(0);
    expect(engine.query(coverage)).toEqual([{ proof: "rows", reason: null }]);
    await engine.clock.advance(3_600_000);
    expect((await engine.run()).exit).toBe(0);
    expect(engine.simulator.requests.total - requestsBefore).toBeLessThan(30);
    expect(engine.query(coverage)).toContainEqual({ proof: "empty", reason: "not found" });
    expect(engine.query("SELECT count(*) AS n FROM index_ticks WHERE name = 'BTC'")).toEqual(rows);
    engine.simulator.setFaults();
    await engine.clock.advance(3_600_000);
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });

  it("like all other selected indices, while the endpoint finds others: they count as delisted, without exit 4", async () => {
    const bars = onlyTicks("none", { ohlcv: barsOf("[BTC, ETH]") });
    const engine = await startBackfillHarness({ settings: bars });
    await engine.run();
    const ids = engine.simulator.universe.assets.filter(({ symbol }) => ["BTC", "ETH"].includes(symbol));
    engine.simulator.setFaults(
      ...ids.map(({ id }) => Fault.status(404, { on: "/ohlcv", query: { indexId: id } })),
    );
    await engine.clock.advance(2 * 86_400_000);
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    const ends =
      "SELECT DISTINCT name FROM coverage WHERE proof = 'empty' AND reason = 'not found' ORDER BY 1";
    expect(engine.query(ends)).toEqual([{ name: "BTC" }, { name: "ETH" }]);
    expect(engine.logged.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("for one old range, while its head is served: the range stays open, and the run ends after a few rounds", async () => {
    const engine = await startDenseHarness({ settings: settings.replace("BTC,", "BTC, ETH,") });
    await engine.run();
    const [from, to] = ["2026-02-28T00:00:00Z", "2026-02-28T20:00:00Z"].map(
      (text) => Date.parse(text) * 1000,
    );
    const btc =
      "stream = 'index_ticks' AND series = (SELECT series FROM series WHERE name = 'BTC' AND index_type = 'GWA')";
    const database = new Database(engine.path);
    database.exec(`INSERT INTO settled_ranges (stream, series, from_ts, to_ts, proof, reason)
        SELECT stream, series, ${to}, to_ts, proof, reason FROM settled_ranges WHERE ${btc};
      UPDATE settled_ranges SET to_ts = ${from} WHERE ${btc} AND from_ts < ${from}`);
    database.close();
    // Only walks longer than the head request full pages.
    engine.simulator.setFaults(Fault.status(404, { on: "/index-ticker", query: { size: "2000" } }));
    await engine.clock.advance(3_600_000);
    const [requestsBefore, startedAt] = [engine.simulator.requests.total, engine.clock.now()];
    const report = await engine.run();
    expect(report).toMatchObject({ exit: 4, problems: [{ what: "GWA BTC", code: "denied" }] });
    expect(engine.simulator.requests.total - requestsBefore).toBeLessThan(40);
    expect(engine.clock.now() - startedAt).toBeLessThan(600_000);
    expect(engine.query("SELECT * FROM coverage WHERE name = 'BTC' AND reason = 'not found'")).toEqual([]);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });

  it("B6: like every index that had records: the endpoint counts as broken, exit 4, and a later run fills the gaps", async () => {
    const names = ["BTC", "ETH", "SOL", "XRP", "USDT"];
    const engine = await startBackfillHarness({
      settings: settings.replace("BTC,", `${names.join(", ")},`).replace("days: 2", "days: 1"),
    });
    await engine.run();
    engine.simulator.setFaults(Fault.status(404, { on: "/index-ticker" }));
    await engine.clock.advance(3_600_000);
    const requestsBefore = engine.simulator.requests.total;
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(new Set(report.problems.map(({ code }) => code))).toEqual(new Set(["upstream_version"]));
    expect(report.problems).toHaveLength(names.length);
    expect(engine.simulator.requests.total - requestsBefore).toBeLessThan(50);
    // An index that never had a record is still covered as empty.
    expect(engine.query("SELECT DISTINCT name FROM coverage WHERE reason = 'not found'")).toEqual([
      { name: "LIBRA" },
    ]);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });
});
