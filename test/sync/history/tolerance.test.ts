import { describe, expect, it } from "vitest";
import { Fault } from "../../simulator/faults.ts";
import type { SimulatorOptions } from "../../simulator/simulator.ts";
import { barsOf, onlyTicks, startBackfillHarness } from "../../support/sync/backfill-harness.ts";

/** LIBRA never had a price, like the GWA of a fiat currency. */
const settingsFor = (LX: string) => onlyTicks("[BTC, LIBRA]", { LX, ohlcv: barsOf("[LIBRA, LUNA]") });

/** Choices that the specification leaves open, and what it does not allow. In groups, so that each is tested together with others; `page-size-limits.test.ts` has the refusals one by one. */
const services: [what: string, simulator: SimulatorOptions][] = [
  [
    "refuses a timestamp in the future and pages of more than 300 records, without saying why",
    { quirks: { maxSize: 300, futureTimestamp: "rejected", fieldErrors: false } },
  ],
  [
    "answers 400 for an index without data, writes +00:00 instead of Z, states its scopes in upper case, and cuts bodies at 100 kB",
    {
      quirks: { noData: "400", compression: "none" },
      faults: [
        Fault.timestamps("zero-offset", { on: "*" }),
        Fault.scopeForm("upper"),
        Fault.cut("close", { at: 100_000, above: 100_000 }),
      ],
    },
  ],
  [
    "sends at most 100 records a page, one of another index on each, timestamps as milliseconds, and other scopes",
    {
      quirks: { maxPageRows: 100 },
      faults: [
        Fault.timestamps("epoch", { on: "*" }),
        Fault.scopeForm("unknown"),
        Fault.foreignRows(1, { on: "/index-ticker" }),
        Fault.foreignRows(1, { on: "/ohlcv" }),
      ],
    },
  ],
  ["answers 502 to pages of more than 300 records", { faults: [Fault.pageLimit(300, { code: 502 })] }],
  [
    "ends with its own id, repeats the row of the cursor, and finds bars by their end",
    {
      quirks: {
        ...{ maxPageRows: 200, lastPage: "own-id", cursor: "inclusive", noData: "empty" },
        ...{ ohlcvTimestamp: "end", barEnd: "midnight", upperBound: "exclusive" },
      },
    },
  ],
  [
    "has opaque ids, numeric decimals and unknown properties in any order",
    {
      quirks: { maxPageRows: 200, ids: "opaque", lastPage: "absent" },
      faults: [
        ...[Fault.decimals("number"), Fault.unknownFields(), Fault.reorderedFields(), Fault.timestamps("us")],
      ],
    },
  ],
  [
    "ignores the size next to a cursor, and has no bar of today",
    {
      quirks: { maxPageRows: 200, sizeBesideStartAfter: "ignored", lastPage: "empty", partialBar: false },
      faults: [Fault.timestamps("seconds")],
    },
  ],
  [
    "lacks some ticks, and has tokens that must be encoded",
    {
      quirks: {
        ...{ maxPageRows: 200, missingPerMille: 30, awkwardTokens: true, compression: "gzip" },
        ...{ upperBound: "exclusive", barTimestamp: true },
      },
    },
  ],
];

function isAboutFuture({ target, at }: { target: string; at: number }): boolean {
  return Date.parse(new URL(target, "http://localhost").searchParams.get("timestamp") ?? "") > at;
}

describe("a service that", () => {
  it.each(services)("H12: %s is copied completely", async (_, simulator) => {
    const engine = await startBackfillHarness({
      settings: settingsFor("[BLX]"),
      simulator: { refreshSeconds: 120, ...simulator },
    });
    const startedAt = engine.clock.now();
    const report = await engine.run();
    expect(report.problems).toEqual([]);
    expect(report.exit).toBe(0);
    expect(engine.clock.now() - startedAt).toBeLessThan(30_000);
    expect(engine.expectMatchesService().rows).toBeGreaterThan(1_350);
    const refused = engine.logged.filter(({ message }) => message.startsWith("service refuses"));
    expect(new Set(refused.map(({ message, fields }) => `${message} ${fields.endpoint}`)).size).toBe(
      refused.length,
    );
    expect(engine.simulator.requests.list.filter(({ status }) => status === 400).length).toBeLessThan(50);
    await engine.clock.advance(90_000);
    expect((await engine.run()).exit).toBe(0);
    expect(await engine.verify()).toMatchObject({ problems: [], differences: [] });
    expect(engine.simulator.requests.list.filter(isAboutFuture)).toEqual([]);
    const foreign = engine.logged.filter(({ message }) => message === "page has records of other indices");
    const isMixed = simulator.faults?.some(({ name }) => name === "foreignRows");
    const told = new Set(foreign.map(({ fields }) => fields.name));
    expect(told).toEqual(new Set(isMixed ? ["BTC", "BLX", "LUNA"] : []));
  });

  it("C14: ignores the index is not believed: its ranges stay open", async () => {
    const engine = await startBackfillHarness({
      settings: settingsFor("none"),
      simulator: {
        refreshSeconds: 120,
        faults: [Fault.foreignRows(0, { on: "/index-ticker", query: { indexType: "GWA" } })],
      },
    });
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(report.problems.find(({ what }) => what === "GWA BTC")).toMatchObject({ code: "alarm" });
    const covered =
      "SELECT 1 FROM coverage WHERE name = 'BTC' AND stream = 'index_ticks' AND proof IS NOT NULL";
    expect(engine.query(covered)).toEqual([]);
  });

  it("H12: answers 400 for every index of a type leaves them open, and says so within seconds", async () => {
    const faults = [Fault.status(400, { on: "/index-ticker", query: { indexType: "GWA" } })];
    const engine = await startBackfillHarness({
      settings: settingsFor("all"),
      simulator: { refreshSeconds: 120, faults },
    });
    const startedAt = engine.clock.now();
    const report = await engine.run();
    expect(report.exit).toBe(4);
    expect(engine.clock.now() - startedAt).toBeLessThan(30_000);
    // The first refusal may have come before another index of the type was served: a second round asks for each again.
    const asked = engine.simulator.requests.list.filter(({ target }) => /index-ticker.*GWA/.test(target));
    const counts = [...Map.groupBy(asked, ({ target }) => /indexId=([^&]*)/.exec(target)?.[1]).values()];
    expect(Math.min(...counts.map(({ length }) => length))).toBe(4);
    expect(new Set(report.problems.map(({ stream, what, code }) => `${stream} ${what} ${code}`))).toEqual(
      new Set(["index_ticks GWA BTC rejected", "index_ticks GWA LIBRA rejected"]),
    );
    const open = engine.query(
      "SELECT DISTINCT name FROM gaps WHERE stream = 'index_ticks' AND state = 'open' ORDER BY 1",
    );
    expect(open.map(({ name }) => name)).toEqual(expect.arrayContaining(["BTC", "LIBRA"]));
    expect(engine.query("SELECT 1 FROM ohlcv LIMIT 1")).toHaveLength(1);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });

  it("refuses an index of which it has just sent records is not believed, however often", async () => {
    // The first page seems to be followed by a day of silence, and the probe of it is refused.
    const ofMarket = { on: "/index-ticker", query: { indexType: "MWA" } };
    const faults = [Fault.swapPages(ofMarket), Fault.status(400, { ...ofMarket, query: { size: "5" } })];
    const engine = await startBackfillHarness({
      settings: onlyTicks("none", { MWA: "[BTC/USD]", LX: "[BLX]" }),
      simulator: { refreshSeconds: 300, faults },
    });
    for (let run = 0; run < 3; run++) {
      const report = await engine.run();
      expect([report.exit, report.problems[0]?.code]).toEqual([4, "rejected"]);
      await engine.clock.advance(11 * 60_000);
    }
    expect(engine.query("SELECT reason FROM coverage WHERE reason = 'not found'")).toEqual([]);
    engine.simulator.setFaults();
    expect((await engine.run()).exit).toBe(0);
    engine.expectMatchesService();
  });
});
