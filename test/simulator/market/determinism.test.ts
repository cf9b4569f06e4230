import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatIsoDay, parseUtcMs, UtcFormatter } from "../../../src/simulator/market/format.ts";
import { PriceModel } from "../../../src/simulator/market/price-model.ts";
import { RecordIds, recordKinds } from "../../../src/simulator/market/record-ids.ts";
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

  it("computes the same value for a tick alone and in a block", () => {
    const parameters = { usd: 100, yearlyVolatility: 0.8, yearlyGrowth: 0.1, meanReversionDays: 700 };
    fc.assert(
      fc.property(fc.integer({ min: 45_000_000, max: 70_000_000 }), fc.integer(), (tick, seed) => {
        const alone = new PriceModel(seed, 30_000, [parameters]).logPriceAt(0, tick);
        expect(new PriceModel(seed, 30_000, [parameters]).block(0, tick)[tick % 4096]).toBe(alone);
      }),
      { numRuns: 40 },
    );
  });
});

describe("the extremes of a run of ticks", () => {
  it("equal the extremes over every tick, to the last bit", () => {
    const calm = { usd: 1, yearlyVolatility: 0.012, yearlyGrowth: 0, meanReversionDays: 1 };
    const wild = { usd: 100, yearlyVolatility: 1.1, yearlyGrowth: 0.3, meanReversionDays: 700 };
    const run = fc.record({
      seed: fc.integer(),
      first: fc.integer({ min: 45_000_000, max: 70_000_000 }),
      length: fc.integer({ min: 1, max: 6000 }),
      hasQuote: fc.boolean(),
    });
    fc.assert(
      fc.property(run, ({ seed, first, length, hasQuote }) => {
        const model = new PriceModel(seed, 30_000, [wild, calm]);
        let high = Number.NEGATIVE_INFINITY;
        let low = Number.POSITIVE_INFINITY;
        for (let tick = first; tick < first + length; tick++) {
          const place = tick % 4096;
          const base = model.block(0, tick)[place] ?? 0;
          const log = hasQuote ? base - (model.block(1, tick)[place] ?? 0) : base;
          high = Math.max(high, log);
          low = Math.min(low, log);
        }
        expect(model.extremes(0, hasQuote ? 1 : undefined, first, first + length)).toEqual({ high, low });
      }),
      { numRuns: 60 },
    );
  });
});

describe("record ids", () => {
  it("encode and decode the position of the record, as UUIDs or opaque ids", () => {
    for (const style of ["uuid", "opaque"] as const) {
      const ids = new RecordIds(9, style);
      fc.assert(
        fc.property(
          fc.constantFrom(...recordKinds),
          fc.integer({ min: 0, max: 2 ** 28 - 1 }),
          fc.integer({ min: 0, max: 2 ** 48 - 1 }),
          (kind, ordinal, step) => {
            const id = ids.encode(kind, ordinal, step);
            if (style === "uuid")
              expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}$/);
            expect(ids.decode(id)).toEqual({ kind, ordinal, step });
          },
        ),
      );
    }
  });

  it("of another seed cannot be decoded", () => {
    const id = new RecordIds(1, "uuid").encode("GWA tick", 3, 59_000_000);
    expect(new RecordIds(2, "uuid").decode(id)).toBeUndefined();
  });

  it("do not sort like their records", () => {
    const ids = new RecordIds(1, "uuid");
    const inOrder = Array.from({ length: 100 }, (_, at) => ids.encode("GWA tick", 0, 59_000_000 + at));
    expect(inOrder.toSorted()).not.toEqual(inOrder);
    expect(inOrder.toSorted()).not.toEqual(inOrder.toReversed());
  });
});

describe("timestamps as text", () => {
  it("are formatted like Date.toISOString", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), (ms) => {
        expect(new UtcFormatter(3).format(ms)).toBe(iso(ms));
        expect(formatIsoDay(Math.floor(ms / DAY_MS))).toBe(iso(ms).slice(0, 10));
        expect(parseUtcMs(iso(ms))).toBe(ms);
      }),
    );
  });
});
