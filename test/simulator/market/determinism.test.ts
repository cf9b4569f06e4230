import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type IndexSeries, IndexTable, IndexValues } from "../../../src/simulator/market/indexes.ts";
import { PriceModel } from "../../../src/simulator/market/price-model.ts";
import { defaultQuirks } from "../../../src/simulator/market/quirks.ts";
import { RecordIds } from "../../../src/simulator/market/record-ids.ts";
import { createUniverse } from "../../../src/simulator/market/universe.ts";
import {
  DAY_MS,
  iso,
  type RestClient,
  type RestResponse,
  startRestClient,
} from "../../support/simulator/rest-client.ts";

/** One response of each endpoint. */
async function fetchAllEndpoints(client: RestClient): Promise<string[]> {
  const { assets, exchanges } = client.simulator.universe;
  const history = { indexId: assets[2]?.id, size: 50, timestamp: iso(client.now - DAY_MS) };
  const exchangeId = exchanges[0]?.id;
  const answers: RestResponse[] = [
    await client.get("/asset"),
    await client.get("/market"),
    await client.get("/exchange"),
    await client.get("/exchange-ticker"),
    await client.get("/index-ticker", history),
    await client.get("/ohlcv", history),
    await client.get("/market-cap", { percentChange: true }),
    await client.get("/derivatives/contract/options", { exchangeId, include: "ALL" }),
    await client.get("/derivatives/ticker/options", { exchangeId }),
  ];
  return answers.map(({ text }) => text);
}

function createMarket({ seed, tickMs }: { seed: number; tickMs: number }) {
  const universe = createUniverse(seed, "demo", "uuid");
  const model = new PriceModel(
    seed,
    tickMs,
    universe.assets.map(({ priceParameters }) => priceParameters),
  );
  const values = new IndexValues(model, seed, tickMs);
  return { seed, tickMs, values, table: new IndexTable(universe, defaultQuirks, seed) };
}

function logPrices(
  { values }: { values: IndexValues },
  series: IndexSeries,
  first: number,
  count: number,
): number[] {
  return Array.from({ length: count }, (_, at) => values.logPriceAt(series, first + at));
}

function firstTickOfDay({ tickMs }: { tickMs: number }, day: number): number {
  return Math.ceil((day * DAY_MS) / tickMs);
}

/** An index, a day, and a tick of that day; also with refresh periods that do not divide a day, and very long ones. */
const anyIndexRun = fc
  .record({
    seed: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    seconds: fc.constantFrom(5, 30, 30, 7, 60, 900, 3600, 7 * 3600, 86_400),
    rank: fc.nat(),
    day: fc.integer({ min: 16_161, max: 21_900 }),
    part: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  })
  .map(({ seed, seconds, rank, day, part }) => {
    const market = createMarket({ seed, tickMs: seconds * 1000 });
    const series = market.table.all[rank % market.table.all.length];
    if (!series) throw new Error("no index");
    const count = firstTickOfDay(market, day + 1) - firstTickOfDay(market, day);
    return { market, series, day, offset: Math.floor(part * count) };
  });

describe("the simulator is deterministic", () => {
  it("serves the same bytes for the same seed and time, whatever was requested before", async () => {
    const first = await startRestClient({ seed: 5 });
    const texts = await fetchAllEndpoints(first);
    const second = await startRestClient({ seed: 5 });
    await second.get("/index-ticker", { indexType: "MWA", timestamp: iso(second.now), size: 2000 });
    expect(await fetchAllEndpoints(second)).toEqual(texts);
    expect(await fetchAllEndpoints(second)).toEqual(texts);
  });

  it("serves other records for another seed", async () => {
    const first = await fetchAllEndpoints(await startRestClient({ seed: 5 }));
    const second = await fetchAllEndpoints(await startRestClient({ seed: 6 }));
    for (const [at, text] of first.entries()) expect(second[at]).not.toBe(text);
  });

  it("serves a record with the same id and values a month later", async () => {
    const client = await startRestClient();
    const query = { indexType: "LX", timestamp: iso(client.now), size: 30 };
    const before = await client.get("/index-ticker", query);
    await client.clock.advance(30 * DAY_MS);
    await client.signIn();
    expect((await client.get("/index-ticker", query)).text).toBe(before.text);
  });

  it("computes the same price for a tick alone and after others", () => {
    fc.assert(
      fc.property(anyIndexRun, ({ market, series, day, offset }) => {
        const first = firstTickOfDay(market, day) + offset;
        const run = logPrices(market, series, first, 3000);
        const alone = createMarket(market).values;
        for (const at of [0, 1, 17, 1500, 2999]) expect(alone.logPriceAt(series, first + at)).toBe(run[at]);
      }),
      { numRuns: 12 },
    );
  });
});

describe("the summary of a day", () => {
  it("equals the summary of all its ticks on finished and unfinished days", () => {
    fc.assert(
      fc.property(anyIndexRun, ({ market, series, day, offset }) => {
        const first = firstTickOfDay(market, day);
        for (const end of [first + 1 + offset, firstTickOfDay(market, day + 1)]) {
          const summary = market.values.summarizeDay(series, day, end);
          const logs = logPrices(market, series, first, end - first);
          const high = Math.max(...logs);
          const low = Math.min(...logs);
          expect(summary).toMatchObject({ open: logs[0], high, low, close: logs.at(-1), lastTick: end - 1 });
          expect(logs[summary.highTick - first]).toBe(high);
          expect(logs[summary.lowTick - first]).toBe(low);
        }
      }),
      { numRuns: 20 },
    );
  });

  it("continues the day before: the step at midnight is as small as any other", () => {
    const market = createMarket({ seed: 4, tickMs: 30_000 });
    const [bitcoin] = market.table.ofType("GWA");
    if (!bitcoin) throw new Error("no index");
    const stepSize = (tick: number) => {
      const [before = 0, after = 0] = logPrices(market, bitcoin, tick - 1, 2);
      return Math.abs(after - before);
    };
    const midnights = Array.from({ length: 3000 }, (_, at) => stepSize(firstTickOfDay(market, 17_000 + at)));
    const others = Array.from({ length: 3000 }, (_, at) =>
      stepSize(firstTickOfDay(market, 17_000) + at * 997),
    );
    const average = (steps: number[]) => steps.reduce((sum, step) => sum + step, 0) / steps.length;
    expect(average(midnights) / average(others)).toBeGreaterThan(0.2);
    expect(average(midnights) / average(others)).toBeLessThan(3);
  });
});

describe("record ids", () => {
  it("encode and decode the position of the record, as UUIDs or opaque ids", () => {
    for (const style of ["uuid", "opaque"] as const) {
      const ids = new RecordIds(9, style);
      fc.assert(
        fc.property(
          fc.constantFrom("index tick", "contract"),
          fc.integer({ min: 0, max: 2 ** 28 - 1 }),
          fc.integer({ min: 0, max: 2 ** 48 - 1 }),
          (kind, key, number) => {
            const id = ids.encode(kind, key, number);
            if (style === "uuid")
              expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/);
            expect(ids.decode(kind, id)).toEqual({ key, number });
            expect(ids.decode("daily bar", id)).toBeUndefined();
          },
        ),
      );
    }
  });

  it("of another seed cannot be decoded", () => {
    const id = new RecordIds(1, "uuid").encode("index tick", 3, 59_000_000);
    expect(new RecordIds(2, "uuid").decode("index tick", id)).toBeUndefined();
  });

  it("do not sort like their records", () => {
    const ids = new RecordIds(1, "uuid");
    const inOrder = Array.from({ length: 100 }, (_, at) => ids.encode("index tick", 0, 59_000_000 + at));
    expect(inOrder.toSorted()).not.toEqual(inOrder);
    expect(inOrder.toSorted()).not.toEqual(inOrder.toReversed());
  });
});
