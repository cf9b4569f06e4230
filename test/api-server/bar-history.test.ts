import { describe, expect, it } from "vitest";
import { iso, type Query, startRestClient, startSharedRestClient } from "../support/simulator/rest-client.ts";
import { comparable, itOfSimulator } from "../support/simulator/server-under-test.ts";

const client = await startSharedRestClient();
const btc = client.simulator.universe.assets[0]?.id ?? "";

const bars = (query: Query) => client.get("/ohlcv", { indexType: "GWA", indexId: btc, ...query });
const days = (content: { startTimestamp: string }[]) => content.map((bar) => bar.startTimestamp.slice(0, 10));

describe("/ohlcv", () => {
  it("serves bars with open, high, low, close, volume and their day", async () => {
    const { body } = await bars({ timestamp: "2026-02-28T12:00:00Z", size: 1 });
    const figure = expect.stringMatching(/^\d+\.\d+$/);
    const figures = ["open", "high", "low", "close", "volume", "volumeUsd", "vwap", "twap"];
    expect(body.content).toEqual([
      {
        ...{ id: expect.any(String), indexId: btc, indexType: "GWA" },
        ...Object.fromEntries(figures.map((name) => [name, figure])),
        ...{ startTimestamp: "2026-02-28T00:00:00.000Z", endTimestamp: "2026-02-28T23:59:59.999Z" },
      },
    ]);
  });

  it('"timestamp returns all values up to it", and nextId leads to the next page', async () => {
    const query = { timestamp: "2026-03-01T00:00:00Z", size: 2 };
    const { body: first } = await bars(query);
    expect(days(first.content)).toEqual(["2026-03-01", "2026-02-28"]);
    const { body: second } = await bars({ ...query, startAfter: first.nextId });
    expect(days(second.content)).toEqual(["2026-02-27", "2026-02-26"]);
  });

  it('"size is ignored when no timestamp is provided": the most recent bar is returned', async () => {
    expect(days((await bars({ size: 5 })).body.content)).toEqual(["2026-03-01"]);
  });

  it('"interval (string, default and only value 1d)"', async () => {
    expect((await bars({ interval: "1d" })).status).toBe(200);
    const { status, body } = await bars({ interval: "1h" });
    expect(status).toBe(400);
    expect(body.errors[0].field).toBe("interval");
  });

  it('"OHLCV endpoints can return the full historic dataset", every day once, back to the first', async () => {
    const query = { indexType: "GWA", indexId: btc, timestamp: iso(client.now), size: 2000 };
    const found = await client.walk<{ startTimestamp: string }>("/ohlcv", query);
    expect(days(found).at(-1)).toBe("2014-04-01");
    expect(found).toHaveLength((Date.UTC(2026, 2, 1) - Date.UTC(2014, 3, 1)) / 86_400_000 + 1);
    expect(new Set(days(found)).size).toBe(found.length);
    const expected = client.simulator.oracle.dailyBars("GWA", btc, 0, client.now, client.now);
    expect(comparable(found)).toEqual(comparable(expected.toReversed()));
  });

  it("ends the bars of an inactive asset on its last day", async () => {
    const inactive = client.simulator.universe.assets.find(({ status }) => status === "INACTIVE");
    const { body } = await bars({ indexId: inactive?.id });
    expect(days(body.content)).toEqual(["2025-11-29"]);
  });

  itOfSimulator("updates today's bar during the day, and not after it", async () => {
    const ownClient = await startRestClient();
    const today = async () => {
      const query = { indexId: btc, timestamp: "2026-03-01T00:00:00Z", size: 1 };
      return (await ownClient.get("/ohlcv", query)).body.content[0];
    };
    const noon = await today();
    await ownClient.clock.advance(6 * 3_600_000);
    const evening = await today();
    expect(evening).toMatchObject({ id: noon.id, open: noon.open });
    expect(evening.close).not.toBe(noon.close);
    await ownClient.clock.advance(6 * 3_600_000);
    const done = await today();
    await ownClient.clock.advance(3 * 3_600_000);
    expect(await today()).toEqual(done);
  });
});
