import { describe, expect, it } from "vitest";
import { startRestClient, startSharedRestClient, UNKNOWN_UUID } from "../support/simulator/rest-client.ts";
import { itOfSimulator } from "../support/simulator/server-under-test.ts";

const client = await startSharedRestClient();

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const contentOf = async (path: string, query = {}) => (await client.get(path, query)).body.content;

describe("/asset", () => {
  it("lists assets with the documented fields and UUIDs", async () => {
    const assets = await contentOf("/asset");
    expect(assets).toHaveLength(12);
    for (const asset of assets) {
      expect(asset.id).toMatch(uuid);
      expect(["ACTIVE", "INACTIVE"]).toContain(asset.status);
      expect(["FIAT", "CRYPTO"]).toContain(asset.type);
      expect(asset.url).toMatch(/^https:/);
    }
    expect(assets[0]).toMatchObject({ symbol: "BTC", name: "Bitcoin", type: "CRYPTO" });
    expect(assets.some((asset: { contractAddress?: string }) => asset.contractAddress)).toBe(true);
  });

  it('"type (FIAT, CRYPTO), symbol (string), status (ACTIVE, INACTIVE); all optional filters"', async () => {
    const fiat = await contentOf("/asset", { type: "FIAT" });
    expect(fiat.map(({ symbol }: { symbol: string }) => symbol)).toEqual(["USD", "EUR"]);
    expect(await contentOf("/asset", { symbol: "ETH" })).toHaveLength(1);
    expect(await contentOf("/asset", { status: "INACTIVE", symbol: "LUNA" })).toHaveLength(1);
    expect(await contentOf("/asset", { symbol: "NOPE" })).toEqual([]);
  });

  it("has a symbol that two assets share", async () => {
    expect(await contentOf("/asset", { symbol: "LUNA" })).toHaveLength(2);
  });
});

describe("/market", () => {
  it('"baseAssetId (uuid), quoteAssetId (uuid); optional filters"', async () => {
    const markets = await contentOf("/market");
    expect(markets).toHaveLength(16);
    const shared = (market: { baseAssetId: string }) =>
      markets.filter((other: { baseAssetId: string }) => other.baseAssetId === market.baseAssetId).length > 1;
    const first = markets.find(shared);
    const sameBase = await contentOf("/market", { baseAssetId: first.baseAssetId });
    expect(sameBase.length).toBeGreaterThan(1);
    const both = { baseAssetId: first.baseAssetId, quoteAssetId: first.quoteAssetId };
    expect(await contentOf("/market", both)).toEqual([first]);
  });

  it("refers to base and quote assets that /asset lists", async () => {
    const ids = new Set((await contentOf("/asset")).map(({ id }: { id: string }) => id));
    for (const { baseAssetId, quoteAssetId } of await contentOf("/market")) {
      expect(ids).toContain(baseAssetId);
      expect(ids).toContain(quoteAssetId);
    }
  });
});

describe("/exchange", () => {
  it("lists exchanges with their markets and their own symbols", async () => {
    const exchanges = await contentOf("/exchange");
    const kraken = exchanges.find(({ name }: { name: string }) => name === "Kraken");
    expect(kraken.symbols[0]).toEqual({ assetId: expect.any(String), symbol: "XBT" });
    expect(kraken.markets[0]).toEqual({
      marketId: expect.any(String),
      marketStatus: expect.stringMatching(/^(IN)?ACTIVE$/),
      qualified: expect.any(Boolean),
    });
  });

  it('"status (ACTIVE, INACTIVE), name (string); optional": no filter selects MAINTENANCE', async () => {
    const statuses = (await contentOf("/exchange")).map(({ status }: { status: string }) => status);
    expect(statuses).toContain("MAINTENANCE");
    for (const { status } of await contentOf("/exchange", { status: "ACTIVE" }))
      expect(status).toBe("ACTIVE");
    expect((await client.get("/exchange", { status: "MAINTENANCE" })).status).toBe(400);
    expect(await contentOf("/exchange", { name: "Binance" })).toHaveLength(1);
  });
});

it.each(["/asset", "/market", "/exchange"])(
  '"%s/{id}" returns one, and 404 when "requested resource does not exist"',
  async (list) => {
    const [first] = await contentOf(list);
    expect((await client.get(`${list}/${first.id}`)).body).toEqual(first);
    expect((await client.get(`${list}/${UNKNOWN_UUID}`)).status).toBe(404);
  },
);

itOfSimulator(
  "the real size has 1,500 assets, 6,000 markets, 200 exchanges, seven of them with derivatives",
  async () => {
    const real = await startRestClient({ size: "real" });
    const { assets, markets, exchanges } = real.simulator.universe;
    expect([assets.length, markets.length, exchanges.length]).toEqual([1500, 6000, 200]);
    expect(exchanges.filter(({ derivatives }) => derivatives)).toHaveLength(7);
    expect(new Set([...assets, ...markets, ...exchanges].map(({ id }) => id)).size).toBe(7700);
  },
);
