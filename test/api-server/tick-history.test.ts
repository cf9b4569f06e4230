import { describe, expect, it } from "vitest";
import {
  DAY_MS,
  iso,
  type Query,
  startRestClient,
  startSharedRestClient,
  UNKNOWN_UUID,
} from "../support/simulator/rest-client.ts";
import { comparable, itOfSimulator } from "../support/simulator/server-under-test.ts";
import { timeLimit } from "../support/time-limit.ts";

const client = await startSharedRestClient();
const btc = client.simulator.universe.assets[0]?.id ?? "";

const ticks = (query: Query) => client.get("/index-ticker", { indexType: "GWA", indexId: btc, ...query });
const times = (content: { timestamp: string }[]) => content.map(({ timestamp }) => timestamp.slice(11, 19));

describe("/index-ticker", () => {
  it("serves records with id, indexId, indexType, price, volume, timestamp", async () => {
    const { body } = await ticks({ timestamp: iso(client.now), size: 1 });
    const figure = expect.stringMatching(/^\d+\.\d+$/);
    const names = { id: expect.any(String), indexId: btc, indexType: "GWA" };
    const record = { ...names, price: figure, volume: figure, timestamp: "2026-03-01T12:00:00.000Z" };
    expect(body.content).toEqual([record]);
  });

  it('"Without it, the most recent calculated value is returned"; "size is ignored when no timestamp is provided"', async () => {
    for (const query of [{}, { size: 50 }])
      expect(times((await ticks(query)).body.content)).toEqual(["12:00:00"]);
  });

  it('"return indices up to that time, going backwards"', async () => {
    const { body } = await ticks({ timestamp: "2026-03-01T11:00:15Z", size: 3 });
    expect(times(body.content)).toEqual(["11:00:00", "10:59:30", "10:59:00"]);
  });

  itOfSimulator('"refreshed every 30 seconds": a new record appears with each refresh', async () => {
    const ownClient = await startRestClient();
    const newest = async () => times((await ownClient.get("/index-ticker", { indexId: btc })).body.content);
    expect(await newest()).toEqual(["12:00:00"]);
    await ownClient.clock.advance(19_999);
    expect(await newest()).toEqual(["12:00:00"]);
    await ownClient.clock.advance(1);
    expect(await newest()).toEqual(["12:00:30"]);
  });

  it('"size (integer 1..2000, default 10)"', async () => {
    const timestamp = iso(client.now);
    expect((await ticks({ timestamp })).body.content).toHaveLength(10);
    expect((await ticks({ timestamp, size: 2000 })).body.content).toHaveLength(2000);
    for (const size of [0, 2001, -1, "1.5", "ten", ""]) {
      const { status, body } = await ticks({ timestamp, size });
      expect(status).toBe(400);
      const errors = [{ object: "index-ticker", field: "size", rejectedValue: String(size) }];
      expect(body).toMatchObject({ status: "BAD_REQUEST", message: "Validation error", errors });
    }
  });

  it('"startAfter returns records after the named record id"', async () => {
    const { body: first } = await ticks({ timestamp: iso(client.now), size: 4 });
    const { body: after } = await ticks({ startAfter: first.content[1].id });
    expect(after.content.slice(0, 2)).toEqual(first.content.slice(2));
  });

  it('"When both startAfter and timestamp are given, timestamp is ignored"', async () => {
    const { body: first } = await ticks({ timestamp: iso(client.now), size: 1 });
    const both = { startAfter: first.content[0].id, timestamp: "2026-01-01T00:00:00Z" };
    const { body } = await ticks({ ...both, size: 2 });
    expect(times(body.content)).toEqual(["11:59:30", "11:59:00"]);
  });

  it('"nextId is the value to pass as startAfter for the next page": a walk returns every record once', async () => {
    const timestamp = iso(client.now);
    const found: { id: string }[] = [];
    let startAfter: string | undefined;
    for (let page = 0; page < 3; page++) {
      const { body } = await ticks({ timestamp, size: 700, startAfter });
      found.push(...body.content);
      startAfter = body.nextId;
    }
    const from = client.now - 2099 * 30_000 - 10_000;
    const expectedTicks = client.simulator.oracle.indexTicks("GWA", btc, from, client.now + 1, client.now);
    expect(comparable(found)).toEqual(comparable(expectedTicks.toReversed()));
  });

  it('"indexId meaning depends on indexType": a market id for MWA, an asset id for GWA, a fixed id for LX', async () => {
    const { markets, liquidIndexes } = client.simulator.universe;
    const newest = (indexType: string, indexId: string | undefined) =>
      client.get("/index-ticker", { indexType, indexId });
    expect((await newest("MWA", markets[0]?.id)).body.content[0].indexType).toBe("MWA");
    expect((await newest("MWA", btc)).status).toBe(404);
    expect((await newest("GWA", UNKNOWN_UUID)).status).toBe(404);
    expect(liquidIndexes.map(({ name }) => name)).toEqual(["BLX", "ELX", "XRPLX"]);
    const [blx] = (await newest("LX", liquidIndexes[0]?.id)).body.content;
    expect(blx).toMatchObject({ indexType: "LX", tickVolume: expect.stringMatching(/^\d+\.\d+$/) });
  });

  it("walks across all indexes of a type, one timestamp after another", async () => {
    const query = { indexType: "MWA", timestamp: iso(client.now), size: 20 };
    const { body: first } = await client.get("/index-ticker", query);
    const { body: second } = await client.get("/index-ticker", { ...query, startAfter: first.nextId });
    const all = [...first.content, ...second.content];
    const activeCount = 15;
    expect(new Set(all.slice(0, activeCount).map(({ indexId }) => indexId)).size).toBe(activeCount);
    expect(times(all)).toEqual(
      all.map((_, at) => iso(client.now - 10_000 - Math.floor(at / activeCount) * 30_000).slice(11, 19)),
    );
  });

  it("returns the newest record of each index without parameters, inactive ones included", async () => {
    const { body } = await client.get("/index-ticker");
    const types = body.content.map(({ indexType }: { indexType: string }) => indexType);
    const count = (type: string) => types.filter((each: string) => each === type).length;
    expect([count("GWA"), count("LX")]).toEqual([11, 3]);
  });

  it("rejects a timestamp that is not UTC, and lists all errors at once", async () => {
    const query = { timestamp: "2026-03-01T12:00:00+02:00", indexType: "NX", size: "0" };
    const { status, body } = await ticks(query);
    expect(status).toBe(400);
    const fields = body.errors.map(({ field }: { field: string }) => field);
    expect(fields.toSorted()).toEqual(["indexType", "size", "timestamp"]);
  });
});

describe("the intraday window", () => {
  itOfSimulator('"limited to a trailing window of 200 days", which moves', async () => {
    const ownClient = await startRestClient();
    const edge = ownClient.now - 200 * DAY_MS;
    const oldest = async () => {
      const query = { indexId: btc, timestamp: iso(edge + 120_000), size: 2000 };
      return times((await ownClient.get("/index-ticker", query)).body.content).at(-1);
    };
    expect(await oldest()).toBe("12:00:30");
    await ownClient.clock.advance(60_000);
    expect(await oldest()).toBe("12:01:30");
  });

  it("drops records that leave the window", async () => {
    const ownClient = await startRestClient();
    const query = { indexId: btc, timestamp: iso(ownClient.now - 200 * DAY_MS + 300_000), size: 5 };
    const before = (await ownClient.get("/index-ticker", query)).body;
    await ownClient.clock.advance(240_000);
    const after = (await ownClient.get("/index-ticker", query)).body;
    expect(after).toEqual({ content: before.content.slice(0, 2), nextId: null });
  });

  itOfSimulator("responds to a cursor that has left the window with 404", async () => {
    const ownClient = await startRestClient();
    const query = { indexId: btc, timestamp: iso(ownClient.now - 200 * DAY_MS + 60_000), size: 1 };
    const { body } = await ownClient.get("/index-ticker", query);
    const after = { indexId: btc, startAfter: body.content[0].id };
    expect((await ownClient.get("/index-ticker", after)).status).toBe(200);
    await ownClient.clock.advance(90_000);
    expect((await ownClient.get("/index-ticker", after)).status).toBe(404);
  });

  itOfSimulator('"from 1 June 2019 onward": nothing intraday is older', async () => {
    const early = await startRestClient({}, "2019-06-03T00:00:00Z");
    const { body } = await early.get("/index-ticker", { indexId: btc, timestamp: "2019-06-01T00:01:00Z" });
    expect(times(body.content)).toEqual(["00:01:00", "00:00:30", "00:00:00"]);
    expect(body.nextId).toBeNull();
  });

  itOfSimulator("responds to a cursor at the oldest edge quickly", async () => {
    const edge = client.now - 200 * DAY_MS;
    const far = client.simulator.oracle.indexTicks("GWA", btc, edge, edge + 600_000, client.now);
    const before = process.threadCpuUsage();
    const { body } = await ticks({ startAfter: far.at(-1)?.id });
    expect(process.threadCpuUsage(before).user).toBeLessThan(timeLimit(250_000));
    expect(body.content).toEqual(far.slice(-11, -1).toReversed());
  });
});
