import { describe, expect, it } from "vitest";
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
});
