import { describe, expect, it } from "vitest";
import type { MarketCapRecord } from "../simulator/oracle.ts";
import { startRestClient, startSharedRestClient, UNKNOWN_UUID } from "../support/simulator/rest-client.ts";
import { comparable, itOfSimulator } from "../support/simulator/server-under-test.ts";

const client = await startSharedRestClient();

describe("/market-cap", () => {
  it('"ranked by market capitalisation"', async () => {
    const { body } = await client.get("/market-cap");
    const ranking: MarketCapRecord[] = body.content;
    expect(comparable(ranking)).toEqual(comparable(client.simulator.oracle.marketCaps(client.now)));
    expect(ranking.map(({ marketCapRank }) => marketCapRank)).toEqual(ranking.map((_, at) => at + 1));
    const caps = ranking.map(({ marketCap }) => Number(marketCap));
    expect(caps).toEqual(caps.toSorted((one, other) => other - one));
    expect(ranking.map(({ volumeRank }) => volumeRank).toSorted((a, b) => a - b)).toEqual(
      ranking.map((_, at) => at + 1),
    );
    expect(ranking[0]).not.toHaveProperty("pricePercentChange");
  });

  itOfSimulator('"the latest ranking at most 5 minutes old"', async () => {
    const ownClient = await startRestClient({}, "2026-03-01T12:04:59Z");
    const stamp = async () => (await ownClient.get("/market-cap")).body.content[0].timestamp;
    expect(await stamp()).toBe("2026-03-01T12:00:00.000Z");
    await ownClient.clock.advance(1000);
    expect(await stamp()).toBe("2026-03-01T12:05:00.000Z");
  });

  it('"When percentChange is true, the response also carries the percentage movement over 24h, 7d and 30d"', async () => {
    const { body } = await client.get("/market-cap", { percentChange: true });
    const percent = expect.stringMatching(/^-?\d+(\.\d{1,4})?$/);
    const change = { change24h: percent, change7d: percent, change30d: percent };
    const figures = ["marketCap", "totalMarketCap", "volume", "price"];
    const changes = figures.map((name) => [`${name}PercentChange`, change]);
    expect(body.content[0]).toMatchObject(Object.fromEntries(changes));
    const btc = client.simulator.universe.assets[0]?.id ?? "";
    const at = Date.parse(body.content[0].timestamp);
    const priceAt = (ms: number) =>
      Number(client.simulator.oracle.indexTicks("GWA", btc, ms, ms + 1, client.now)[0]?.price);
    const movement = (priceAt(at) / priceAt(at - 86_400_000) - 1) * 100;
    const ofBtc = body.content.find(({ assetId }: MarketCapRecord) => assetId === btc);
    expect(Number(ofBtc.pricePercentChange.change24h)).toBeCloseTo(movement, 3);
    expect((await client.get("/market-cap", { percentChange: "perhaps" })).status).toBe(400);
  });

  it('"assetId (uuid, optional)" selects one asset, with its rank among all', async () => {
    const ranking: MarketCapRecord[] = (await client.get("/market-cap")).body.content;
    const third = ranking[2];
    const { body } = await client.get("/market-cap", { assetId: third?.assetId });
    expect(body.content).toEqual([third]);
    expect((await client.get("/market-cap", { assetId: UNKNOWN_UUID })).status).toBe(404);
  });

  it("ranks no fiat currency, no ended asset, and no asset without a price", async () => {
    const ranked = new Set(client.simulator.oracle.marketCaps(client.now).map(({ assetId }) => assetId));
    const { assets } = client.simulator.universe;
    const symbols = assets.filter(({ id }) => ranked.has(id)).map(({ symbol }) => symbol);
    expect(symbols).toEqual(["BTC", "ETH", "USDT", "XRP", "SOL", "DOGE", "LTC", "LUNA"]);
  });
});
