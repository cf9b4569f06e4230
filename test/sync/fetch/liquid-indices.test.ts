import { describe, expect, it } from "vitest";
import { matchLiquidNames } from "../../../src/sync/fetch/liquid-indices.ts";
import { Fault } from "../../simulator/faults.ts";
import { startBackfillHarness } from "../../support/sync/backfill-harness.ts";

const only = (intraday: string) =>
  `sync: { ohlcv: false, exchangeTickers: false, derivatives: false, intraday: { MWA: none, days: 1, ${intraday} } }`;
const liquidSeries = "SELECT index_id, name, name_from FROM series WHERE index_type = 'LX' ORDER BY name";

it("the liquid indices are those of REST, not one of which only a live tick was stored", async () => {
  const engine = await startBackfillHarness({ settings: only("GWA: none, LX: all") });
  engine.write("INSERT INTO series (index_type, index_id, name) VALUES ('LX', 'stray', 'BLX')");
  expect((await engine.run()).exit).toBe(0);
  expect((await engine.run()).exit).toBe(0);
  const selected =
    "SELECT s.name FROM targets w JOIN series s USING (series) WHERE s.index_type = 'LX' ORDER BY 1";
  expect(engine.query(selected).map(({ name }) => name)).toEqual(["BLX", "ELX", "XRPLX"]);
  expect(engine.query("SELECT 1 FROM coverage WHERE index_id = 'stray'")).toEqual([]);
});

describe("the names of the liquid indices", () => {
  it("are concluded from the prices of BTC, ETH and XRP without the live feed, and are marked and logged as such", async () => {
    const engine = await startBackfillHarness({ settings: only("GWA: none, LX: [BLX, XRPLX]") });
    const report = await engine.run();
    expect(report).toMatchObject({ exit: 0, problems: [] });
    const idOf = (name: string) =>
      engine.simulator.universe.liquidIndexes.find((each) => each.name === name)?.id;
    const named = ["BLX", "XRPLX"].map((name) => ({ index_id: idOf(name), name, name_from: "price" }));
    expect(engine.query(liquidSeries)).toEqual(named);
    expect(engine.query("SELECT DISTINCT name FROM index_ticks ORDER BY 1")).toEqual([
      { name: "BLX" },
      { name: "XRPLX" },
    ]);
    const lines = engine.logged.filter(({ message }) => message === "liquid index named by its price");
    expect(lines.map(({ level, fields }) => [level, fields.name]).sort()).toEqual([
      ["info", "BLX"],
      ["info", "ELX"],
      ["info", "XRPLX"],
    ]);
    engine.expectMatchesService();
  });

  it("are concluded from the price of a period before, if the one of the same moment is late", async () => {
    const engine = await startBackfillHarness({
      settings: `service: { refreshSeconds: 1800 }\n${only("GWA: none, LX: [BLX]")}`,
      simulator: {
        refreshSeconds: 1800,
        faults: [Fault.lag(30 * 60_000, { on: "/index-ticker", query: { indexType: "GWA" } })],
      },
    });
    expect(await engine.run()).toMatchObject({ exit: 0, problems: [] });
    expect(engine.query(liquidSeries)).toMatchObject([{ name: "BLX", name_from: "price" }]);
  });

  it("come from the settings if they differ, and the mark goes", async () => {
    const engine = await startBackfillHarness({ settings: only("GWA: none, LX: all") });
    await engine.run();
    expect(engine.query(liquidSeries).map(({ name_from }) => name_from)).toEqual(["price", "price", "price"]);
    const [blx, elx] = engine.query(liquidSeries).map(({ index_id }) => String(index_id));
    const swapped = `service: { lxIndexIds: { BLX: ${elx}, ELX: ${blx} } }`;
    engine.configure(`${swapped}\n${only("GWA: none, LX: all")}`);
    await engine.run();
    expect(engine.query(liquidSeries)).toMatchObject([
      { index_id: elx, name: "BLX", name_from: null },
      { index_id: blx, name: "ELX", name_from: null },
      { name: "XRPLX", name_from: "price" },
    ]);
  });

  it("stay unknown without the prices; the hint then says what to set, and other names are misspelt", async () => {
    const engine = await startBackfillHarness({
      settings: only("GWA: none, LX: [BLX]"),
      simulator: { faults: [Fault.status(500, { on: "/index-ticker", query: { indexType: "GWA" } })] },
    });
    const report = await engine.run();
    expect(report.exit).toBe(4);
    const ids = engine.simulator.universe.liquidIndexes.map(({ id }) => id);
    const [problem] = report.problems;
    expect(problem).toMatchObject({ stream: "index_ticks", code: "selector_unknown" });
    expect(problem?.message).toContain("sync.intraday.LX names BLX, but");
    expect(problem?.message).toContain("set service.lxIndexIds, { BLX: … } with one of ");
    for (const id of ids) expect(problem?.message).toContain(id);
    expect(problem?.message).not.toContain("spelling");

    engine.simulator.setFaults();
    engine.configure(only("GWA: none, LX: [BLXX]"));
    await engine.clock.advance(60_000);
    const again = await engine.run();
    expect(again.problems[0]?.message).toContain(
      "the liquid indices are BLX, ELX, XRPLX: check the spelling",
    );
  });
});

describe("matchLiquidNames", () => {
  const candidates = [
    { name: "BLX", price: 60_000 },
    { name: "ELX", price: 3_000 },
    { name: "XRPLX", price: 0.5 },
  ];
  const match = (...prices: number[]) =>
    Object.fromEntries(matchLiquidNames(prices.map((price, i) => ({ id: `id${i}`, price, candidates }))));

  it("names an index whose price is that of one asset, clearly apart from every other", () => {
    expect(match(60_010, 2_990, 0.5001)).toEqual({ id0: "BLX", id1: "ELX", id2: "XRPLX" });
    expect(match(61_500)).toEqual({});
    expect(match(1)).toEqual({});
  });

  it("names neither of two indices with the same price, nor one that is close to two assets", () => {
    expect(match(60_010, 59_990, 3_000)).toEqual({ id2: "ELX" });
    const close = [...candidates, { name: "ELX", price: 66_000 }];
    expect(matchLiquidNames([{ id: "a", price: 60_000, candidates: close }]).size).toBe(0);
    expect(matchLiquidNames([{ id: "a", price: 60_000, candidates: [] }]).size).toBe(0);
  });
});
