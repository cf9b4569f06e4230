import { describe, expect, it } from "vitest";
import type { Quirks } from "../../../src/simulator/market/quirks.ts";
import {
  DAY_MS,
  iso,
  type Query,
  type RestClient,
  type RestResponse,
  startRestClient,
} from "../../support/simulator/rest-client.ts";

interface QuirkFixture {
  readonly caller: RestClient;
  readonly id: string;
  ticks(query?: Query): Promise<RestResponse>;
  bars(query?: Query): Promise<RestResponse>;
}

async function startWithQuirks(quirks: Partial<Quirks>, start?: string): Promise<QuirkFixture> {
  const caller = await startRestClient({ quirks }, start);
  const id = caller.simulator.universe.assets[0]?.id ?? "";
  const timestamp = iso(caller.now);
  return {
    caller,
    id,
    ticks: (query) => caller.get("/index-ticker", { indexType: "GWA", indexId: id, timestamp, ...query }),
    bars: (query) => caller.get("/ohlcv", { indexType: "GWA", indexId: id, timestamp, ...query }),
  };
}

describe("switches for how a page ends", () => {
  const lastPage = { timestamp: "2014-04-02T12:00:00Z", size: 5 };

  it.each([
    ["null", (body: object, _id: string) => expect(body).toHaveProperty("nextId", null)],
    ["empty", (body: object) => expect(body).toHaveProperty("nextId", "")],
    ["absent", (body: object) => expect(body).not.toHaveProperty("nextId")],
    ["own-id", (body: object, id: string) => expect(body).toHaveProperty("nextId", id)],
  ] as const)("the last page's nextId may be: %s", async (mode, holds) => {
    const { bars } = await startWithQuirks({ lastPage: mode });
    const { body } = await bars(lastPage);
    expect(body.content).toHaveLength(2);
    holds(body, body.content[1].id);
    expect((await bars({ timestamp: "2014-04-02T12:00:00Z", size: 1 })).body.nextId).toBe(body.content[0].id);
  });

  it("after a last page with its own id comes an empty one without", async () => {
    const { bars } = await startWithQuirks({ lastPage: "own-id" });
    const { body } = await bars(lastPage);
    expect((await bars({ startAfter: body.nextId })).body).toEqual({ content: [], nextId: null });
  });
});

describe("switches for cursors", () => {
  it("an inclusive cursor repeats its record first", async () => {
    const { ticks } = await startWithQuirks({ cursor: "inclusive" });
    const { body } = await ticks({ size: 3 });
    expect((await ticks({ startAfter: body.content[2].id, size: 3 })).body.content[0]).toEqual(
      body.content[2],
    );
  });

  it.each([
    ["honoured", 4, 4],
    ["needs-timestamp", 10, 4],
    ["ignored", 10, 10],
  ] as const)("size beside startAfter: %s", async (mode, alone, besideTimestamp) => {
    const { caller, ticks } = await startWithQuirks({ sizeBesideStartAfter: mode });
    const startAfter = (await ticks({ size: 1 })).body.content[0].id;
    const rows = async (query: Query) => (await ticks(query)).body.content.length;
    expect(await rows({ startAfter, size: 4, timestamp: undefined })).toBe(alone);
    expect(await rows({ startAfter, size: 4, timestamp: iso(caller.now) })).toBe(besideTimestamp);
  });

  it.each([
    ["404", 404],
    ["400", 400],
    ["empty", 200],
  ] as const)("a dead cursor may be answered with %s", async (mode, status) => {
    const { caller, ticks } = await startWithQuirks({ deadCursor: mode });
    const { body } = await ticks({ timestamp: iso(caller.now - 200 * DAY_MS + 60_000), size: 1 });
    await caller.clock.advance(DAY_MS / 2);
    const answer = await ticks({ startAfter: body.content[0].id });
    expect(answer.status).toBe(status);
    if (status === 200) expect(answer.body.content).toEqual([]);
  });

  it("a record at exactly the timestamp may be left out", async () => {
    const { ticks, bars } = await startWithQuirks({ upperBound: "exclusive" });
    const newest = await ticks({ timestamp: "2026-03-01T11:00:00Z", size: 1 });
    expect(newest.body.content[0].timestamp).toBe("2026-03-01T10:59:30.000Z");
    const bar = await bars({ timestamp: "2026-02-01T00:00:00Z", size: 1 });
    expect(bar.body.content[0].startTimestamp).toBe("2026-01-31T00:00:00.000Z");
  });
});

describe("switches for how records are written", () => {
  it("ids may be long and full of slashes, percent signs and letters beyond ASCII", async () => {
    const { caller, id, ticks } = await startWithQuirks({ ids: "opaque" });
    expect(id).toMatch(/\/.*%.*∆/);
    expect(id.length).toBeGreaterThan(150);
    expect((await caller.get(`/asset/${encodeURIComponent(id)}`)).body.symbol).toBe("BTC");
    const { body } = await ticks({ size: 2 });
    const next = await ticks({ startAfter: body.nextId, size: 1 });
    expect(Date.parse(next.body.content[0].timestamp)).toBe(caller.now - 70_000);
    expect((await ticks({ indexId: "nonsense" })).status).toBe(404);
  });

  it("decimals may be JSON numbers with the very digits of the text", async () => {
    const text = await startWithQuirks({});
    const number = await startWithQuirks({ decimals: "number" });
    for (const ask of ["ticks", "bars"] as const) {
      const expected = (await text[ask]({ size: 20 })).text.replaceAll(/"(-?\d+\.\d+)"/g, "$1");
      expect((await number[ask]({ size: 20 })).text).toBe(expected);
    }
    const ranking = await number.caller.get("/market-cap", { percentChange: true });
    expect(ranking.body.content[0].pricePercentChange.change24h).toEqual(expect.any(Number));
  });

  it("records may carry unknown properties in an order that differs from one to the next", async () => {
    const plain = await startWithQuirks({});
    const strange = await startWithQuirks({ extraProperties: true, reorderedProperties: true });
    const expected = (await plain.ticks({ size: 40 })).body.content;
    const { content } = (await strange.ticks({ size: 40 })).body;
    expect(content).toEqual(
      expected.map((record: object) => ({
        ...record,
        venueTier: 2,
        audit: { source: "simulator", flags: [] },
      })),
    );
    expect(new Set(content.map((record: object) => Object.keys(record).join())).size).toBeGreaterThan(3);
  });

  it.each([
    [0, "2026-03-01T12:00:00Z", "2026-03-01T23:59:59Z"],
    [3, "2026-03-01T12:00:00.000Z", "2026-03-01T23:59:59.999Z"],
    [6, "2026-03-01T12:00:00.000000Z", "2026-03-01T23:59:59.999000Z"],
  ] as const)("timestamps may have %i fraction digits", async (fractionDigits, tick, end) => {
    const { ticks, bars } = await startWithQuirks({ fractionDigits });
    expect((await ticks({ size: 1 })).body.content[0].timestamp).toBe(tick);
    expect((await bars({ size: 1 })).body.content[0].endTimestamp).toBe(end);
  });
});

describe("switches for daily bars", () => {
  const newestDay = async ({ bars }: QuirkFixture, timestamp: string) =>
    (await bars({ timestamp, size: 1 })).body.content[0].startTimestamp.slice(0, 10);

  it("the timestamp may be compared with a bar's start or its end", async () => {
    expect(await newestDay(await startWithQuirks({ ohlcvTimestamp: "start" }), "2026-02-10T06:00:00Z")).toBe(
      "2026-02-10",
    );
    const byEnd = await startWithQuirks({ ohlcvTimestamp: "end", barEnd: "midnight" });
    expect(await newestDay(byEnd, "2026-02-10T06:00:00Z")).toBe("2026-02-09");
    expect(await newestDay(byEnd, "2026-02-10T00:00:00Z")).toBe("2026-02-09");
    expect(await newestDay(byEnd, "2026-02-09T23:59:59.999Z")).toBe("2026-02-08");
  });

  it("a bar may end at midnight and carry a timestamp", async () => {
    const { bars } = await startWithQuirks({ barEnd: "midnight", barTimestamp: true });
    expect((await bars({ size: 1 })).body.content[0]).toMatchObject({
      timestamp: "2026-03-01T00:00:00.000Z",
      startTimestamp: "2026-03-01T00:00:00.000Z",
      endTimestamp: "2026-03-02T00:00:00.000Z",
    });
  });

  it("today's bar may be withheld until the day is over", async () => {
    const today = await startWithQuirks({ partialBar: false });
    expect(await newestDay(today, "2026-03-05T00:00:00Z")).toBe("2026-02-28");
    await today.caller.clock.advance(DAY_MS / 2);
    expect(await newestDay(today, "2026-03-05T00:00:00Z")).toBe("2026-03-01");
  });
});

describe("switches for what exists", () => {
  it("an index without data is answered with 404 or an empty page", async () => {
    const nothing = async (noData: Quirks["noData"]) => {
      const { caller, ticks } = await startWithQuirks({ noData });
      const libra = caller.simulator.universe.assets.find(({ symbol }) => symbol === "LIBRA");
      return ticks({ indexId: libra?.id });
    };
    expect((await nothing("404")).status).toBe(404);
    expect((await nothing("empty")).body.content).toEqual([]);
  });

  it("late ticks appear only after their delay", async () => {
    const { caller, ticks } = await startWithQuirks({ late: { perMille: 1000, seconds: 45 } });
    const newest = async () => (await ticks({ size: 1 })).body.content[0].timestamp.slice(11, 19);
    expect(await newest()).toBe("11:59:00");
    await caller.clock.advance(5000);
    expect(await newest()).toBe("11:59:30");
  });

  it("a few late ticks appear behind those that were on time", async () => {
    const { caller, id, ticks } = await startWithQuirks({ late: { perMille: 200, seconds: 600 } });
    const before = (await ticks({ size: 20 })).body.content;
    await caller.clock.advance(600_000);
    const after = (await ticks({ size: 20 })).body.content;
    expect(before).not.toEqual(after);
    expect(after.map(({ timestamp }: { timestamp: string }) => timestamp)).toEqual(
      after.map((_: unknown, at: number) => iso(caller.now - 610_000 - at * 30_000)),
    );
    const truth = caller.simulator.oracle.indexTicks(
      "GWA",
      id,
      caller.now - DAY_MS,
      caller.now - 600_000,
      caller.now,
    );
    expect(after).toEqual(truth.slice(-20).toReversed());
  });

  it("a few ticks are missing for good, and the bar of their day knows nothing of them", async () => {
    const { caller, id, ticks } = await startWithQuirks({ missingPerMille: 30 });
    const { oracle: truth } = caller.simulator;
    const start = Date.UTC(2026, 1, 20);
    const day = truth.indexTicks("GWA", id, start, start + DAY_MS, caller.now);
    expect(day.length).toBeGreaterThan(2880 * 0.95);
    expect(day.length).toBeLessThan(2880);
    const [bar] = truth.dailyBars("GWA", id, start, start + DAY_MS, caller.now);
    expect(Number(bar?.high)).toBe(Math.max(...day.map(({ price }) => Number(price))));
    const page = await ticks({ timestamp: iso(start + DAY_MS - 1), size: 2000 });
    expect(page.body.content).toEqual(day.slice(-2000).toReversed());
  });

  it("a few ticks are corrected later, under the same id", async () => {
    const { caller, ticks } = await startWithQuirks({ corrections: { perMille: 50, minutes: 90 } });
    const read = async () => (await ticks({ timestamp: "2026-03-01T12:00:00Z", size: 150 })).body.content;
    const before = await read();
    await caller.clock.advance(90 * 60_000);
    const after = await read();
    const changed = before.filter(
      (record: { price: string }, at: number) => record.price !== after[at].price,
    );
    expect(changed.length).toBeGreaterThan(1);
    expect(changed.length).toBeLessThan(30);
    expect(after.map(({ id }: { id: string }) => id)).toEqual(before.map(({ id }: { id: string }) => id));
  });
});
