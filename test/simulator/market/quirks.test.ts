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
  readonly client: RestClient;
  readonly id: string;
  ticks(query?: Query): Promise<RestResponse>;
  bars(query?: Query): Promise<RestResponse>;
}

async function startWithQuirks(quirks: Partial<Quirks>, start?: string): Promise<QuirkFixture> {
  const client = await startRestClient({ quirks }, start);
  const id = client.simulator.universe.assets[0]?.id ?? "";
  const timestamp = iso(client.now);
  return {
    client,
    id,
    ticks: (query) => client.get("/index-ticker", { indexType: "GWA", indexId: id, timestamp, ...query }),
    bars: (query) => client.get("/ohlcv", { indexType: "GWA", indexId: id, timestamp, ...query }),
  };
}

describe("quirks of the last page", () => {
  const lastPage = { timestamp: "2014-04-02T12:00:00Z", size: 5 };

  it.each([
    ["null", (body: object, _id: string) => expect(body).toHaveProperty("nextId", null)],
    ["empty", (body: object) => expect(body).toHaveProperty("nextId", "")],
    ["absent", (body: object) => expect(body).not.toHaveProperty("nextId")],
    ["own-id", (body: object, id: string) => expect(body).toHaveProperty("nextId", id)],
  ] as const)("sends nextId of the last page as: %s", async (mode, check) => {
    const { bars } = await startWithQuirks({ lastPage: mode });
    const { body } = await bars(lastPage);
    expect(body.content).toHaveLength(2);
    check(body, body.content[1].id);
    expect((await bars({ timestamp: "2014-04-02T12:00:00Z", size: 1 })).body.nextId).toBe(body.content[0].id);
  });

  it("sends an empty page without nextId after a last page with its own id", async () => {
    const { bars } = await startWithQuirks({ lastPage: "own-id" });
    const { body } = await bars(lastPage);
    expect((await bars({ startAfter: body.nextId })).body).toEqual({ content: [], nextId: null });
  });
});

describe("quirks of cursors", () => {
  it("an inclusive cursor repeats its record", async () => {
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
    const { client, ticks } = await startWithQuirks({ sizeBesideStartAfter: mode });
    const startAfter = (await ticks({ size: 1 })).body.content[0].id;
    const rows = async (query: Query) => (await ticks(query)).body.content.length;
    expect(await rows({ startAfter, size: 4, timestamp: undefined })).toBe(alone);
    expect(await rows({ startAfter, size: 4, timestamp: iso(client.now) })).toBe(besideTimestamp);
  });

  it("can exclude a record at exactly the timestamp", async () => {
    const { ticks, bars } = await startWithQuirks({ upperBound: "exclusive" });
    const newest = await ticks({ timestamp: "2026-03-01T11:00:00Z", size: 1 });
    expect(newest.body.content[0].timestamp).toBe("2026-03-01T10:59:30.000Z");
    const bar = await bars({ timestamp: "2026-02-01T00:00:00Z", size: 1 });
    expect(bar.body.content[0].startTimestamp).toBe("2026-01-31T00:00:00.000Z");
  });
});

describe("quirks of the record format", () => {
  it("ids can be long, with slashes, percent signs and non-ASCII letters", async () => {
    const { client, id, ticks } = await startWithQuirks({ ids: "opaque" });
    expect(id).toMatch(/\/.*%.*∆/);
    expect(id.length).toBeGreaterThan(150);
    expect((await client.get(`/asset/${encodeURIComponent(id)}`)).body.symbol).toBe("BTC");
    const { body } = await ticks({ size: 2 });
    const next = await ticks({ startAfter: body.nextId, size: 1 });
    expect(Date.parse(next.body.content[0].timestamp)).toBe(client.now - 70_000);
    expect((await ticks({ indexId: "nonsense" })).status).toBe(404);
  });
});

describe("quirks of daily bars", () => {
  const newestDay = async ({ bars }: QuirkFixture, timestamp: string) =>
    (await bars({ timestamp, size: 1 })).body.content[0].startTimestamp.slice(0, 10);

  it("the timestamp can refer to the start or the end of a bar", async () => {
    expect(await newestDay(await startWithQuirks({ ohlcvTimestamp: "start" }), "2026-02-10T06:00:00Z")).toBe(
      "2026-02-10",
    );
    const byEnd = await startWithQuirks({ ohlcvTimestamp: "end", barEnd: "midnight" });
    expect(await newestDay(byEnd, "2026-02-10T06:00:00Z")).toBe("2026-02-09");
    expect(await newestDay(byEnd, "2026-02-10T00:00:00Z")).toBe("2026-02-09");
    expect(await newestDay(byEnd, "2026-02-09T23:59:59.999Z")).toBe("2026-02-08");
  });

  it("a bar can end at midnight and have a timestamp", async () => {
    const { bars } = await startWithQuirks({ barEnd: "midnight", barTimestamp: true });
    expect((await bars({ size: 1 })).body.content[0]).toMatchObject({
      timestamp: "2026-03-01T00:00:00.000Z",
      startTimestamp: "2026-03-01T00:00:00.000Z",
      endTimestamp: "2026-03-02T00:00:00.000Z",
    });
  });

  it("today's bar can be withheld until the day is over", async () => {
    const today = await startWithQuirks({ partialBar: false });
    expect(await newestDay(today, "2026-03-05T00:00:00Z")).toBe("2026-02-28");
    await today.client.clock.advance(DAY_MS / 2);
    expect(await newestDay(today, "2026-03-05T00:00:00Z")).toBe("2026-03-01");
  });
});

describe("quirks of missing and late data", () => {
  it("responds for an index without data with 404 or an empty page", async () => {
    const nothing = async (noData: Quirks["noData"]) => {
      const { client, ticks } = await startWithQuirks({ noData });
      const libra = client.simulator.universe.assets.find(({ symbol }) => symbol === "LIBRA");
      return ticks({ indexId: libra?.id });
    };
    expect((await nothing("404")).status).toBe(404);
    expect((await nothing("empty")).body.content).toEqual([]);
  });

  it("late ticks appear only after their delay", async () => {
    const { client, ticks } = await startWithQuirks({ late: { perMille: 1000, seconds: 45 } });
    const newest = async () => (await ticks({ size: 1 })).body.content[0].timestamp.slice(11, 19);
    expect(await newest()).toBe("11:59:00");
    await client.clock.advance(5000);
    expect(await newest()).toBe("11:59:30");
  });

  it("late ticks appear behind newer ticks", async () => {
    const { client, id, ticks } = await startWithQuirks({ late: { perMille: 200, seconds: 600 } });
    const before = (await ticks({ size: 20 })).body.content;
    await client.clock.advance(600_000);
    const after = (await ticks({ size: 20 })).body.content;
    expect(before).not.toEqual(after);
    expect(after.map(({ timestamp }: { timestamp: string }) => timestamp)).toEqual(
      after.map((_: unknown, at: number) => iso(client.now - 610_000 - at * 30_000)),
    );
    const expectedTicks = client.simulator.oracle.indexTicks(
      "GWA",
      id,
      client.now - DAY_MS,
      client.now - 600_000,
      client.now,
    );
    expect(after).toEqual(expectedTicks.slice(-20).toReversed());
  });

  it("missing ticks never appear, and the daily bar excludes them", async () => {
    const { client, id, ticks } = await startWithQuirks({ missingPerMille: 30 });
    const { oracle } = client.simulator;
    const start = Date.UTC(2026, 1, 20);
    const day = oracle.indexTicks("GWA", id, start, start + DAY_MS, client.now);
    expect(day.length).toBeGreaterThan(2880 * 0.95);
    expect(day.length).toBeLessThan(2880);
    const [bar] = oracle.dailyBars("GWA", id, start, start + DAY_MS, client.now);
    expect(Number(bar?.high)).toBe(Math.max(...day.map(({ price }) => Number(price))));
    const page = await ticks({ timestamp: iso(start + DAY_MS - 1), size: 2000 });
    expect(page.body.content).toEqual(day.slice(-2000).toReversed());
  });

  it("a listing day and closed days leave out records", async () => {
    const on = "2026-02-25";
    const quirks = { listed: { perMille: 1000, on }, closedDays: 2 };
    const { client, id } = await startWithQuirks(quirks);
    const { oracle } = client.simulator;
    const ticks = oracle.indexTicks("GWA", id, Date.UTC(2026, 0, 1), client.now, client.now);
    const times = ticks.map(({ timestamp }) => Date.parse(timestamp));
    // 2026-02-26 is a Thursday.
    const openDays = [on, "2026-02-28", "2026-03-01"];
    expect([...new Set(times.map((time) => iso(time).slice(0, 10)))]).toEqual(openDays);
    const bars = oracle.dailyBars("GWA", id, Date.UTC(2026, 0, 1), client.now, client.now);
    expect(bars[0]?.startTimestamp).toMatch(on);
  });

  it("an exchange lists so many strikes for each expiry of its options", async () => {
    const { client } = await startWithQuirks({ optionStrikes: 2 });
    const { oracle, universe } = client.simulator;
    const exchange = universe.exchanges.find(({ derivatives }) => derivatives);
    const options = oracle.contracts("options", exchange?.id ?? "", "ACTIVE", client.now);
    const expiries = Map.groupBy(options, ({ marketId, expiration }) => `${marketId} ${expiration}`);
    const countStrikes = (listed: typeof options) =>
      new Set(listed.map((option) => option.optionStrike)).size;
    expect(new Set([...expiries.values()].map(countStrikes))).toEqual(new Set([2]));
  });

  it("ticks are corrected later under the same id", async () => {
    const { client, ticks } = await startWithQuirks({ corrections: { perMille: 50, minutes: 90 } });
    const read = async () => (await ticks({ timestamp: "2026-03-01T12:00:00Z", size: 150 })).body.content;
    const before = await read();
    await client.clock.advance(90 * 60_000);
    const after = await read();
    const changed = before.filter(
      (record: { price: string }, at: number) => record.price !== after[at].price,
    );
    expect(changed.length).toBeGreaterThan(1);
    expect(changed.length).toBeLessThan(30);
    expect(after.map(({ id }: { id: string }) => id)).toEqual(before.map(({ id }: { id: string }) => id));
  });
});
