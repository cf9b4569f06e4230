import { describe, expect, it } from "vitest";
import type { ExchangeTickRecord } from "../simulator/oracle.ts";
import {
  type Query,
  startRestClient,
  startSharedRestClient,
  UNKNOWN_UUID,
} from "../support/simulator/rest-client.ts";
import { comparable, itOfSimulator } from "../support/simulator/server-under-test.ts";

const client = await startSharedRestClient();

const tickers = async (query: Query = {}): Promise<ExchangeTickRecord[]> =>
  (await client.get("/exchange-ticker", query)).body.content;

describe("/exchange-ticker", () => {
  it('"With no parameters all tickers are returned"', async () => {
    const found = await tickers();
    expect(comparable(found)).toEqual(comparable(client.simulator.oracle.exchangeTicks(client.now)));
    expect(found.length).toBeGreaterThan(40);
    expect(new Set(found.map(({ exchangeId, marketId }) => exchangeId + marketId)).size).toBe(found.length);
  });

  it('"exchangeId: all ticks of that exchange; marketId: all ticks of that market"', async () => {
    const { exchanges, markets } = client.simulator.universe;
    const ofExchange = await tickers({ exchangeId: exchanges[1]?.id });
    expect(new Set(ofExchange.map(({ exchangeId }) => exchangeId))).toEqual(new Set([exchanges[1]?.id]));
    const ofMarket = await tickers({ marketId: markets[0]?.id });
    expect(new Set(ofMarket.map(({ marketId }) => marketId))).toEqual(new Set([markets[0]?.id]));
    expect(ofMarket).toHaveLength(6);
  });

  it('"exchangeId and marketId may be combined to select one market on one exchange"', async () => {
    const { exchanges, markets } = client.simulator.universe;
    const [exchangeId, marketId] = [exchanges[2]?.id ?? "", markets[0]?.id ?? ""];
    const expected = client.simulator.oracle.exchangeTick(exchangeId, marketId, client.now);
    const found = await tickers({ exchangeId, marketId });
    expect(comparable(found)).toEqual(comparable(expected ? [expected] : []));
  });

  it('"When baseSymbol is given, quoteSymbol must be given, and the reverse"', async () => {
    for (const [query, field] of [
      [{ baseSymbol: "BTC" }, "quoteSymbol"],
      [{ quoteSymbol: "USD" }, "baseSymbol"],
    ] as const) {
      const { status, body } = await client.get("/exchange-ticker", query);
      expect(status).toBe(400);
      expect(body.errors[0].field).toBe(field);
    }
    const { markets } = client.simulator.universe;
    const named = await tickers({ baseSymbol: "BTC", quoteSymbol: "USD" });
    expect(named).toEqual(await tickers({ marketId: markets[0]?.id }));
  });

  it('"Searching by symbols … can fail when duplicate symbols exist"', async () => {
    const { status, body } = await client.get("/exchange-ticker", { baseSymbol: "LUNA", quoteSymbol: "USD" });
    expect(status).toBe(400);
    expect(body.message).toMatch(/duplicate/i);
  });

  it("responds to an unknown exchange or market with 404", async () => {
    expect((await client.get("/exchange-ticker", { exchangeId: UNKNOWN_UUID })).status).toBe(404);
    expect((await client.get("/exchange-ticker", { marketId: UNKNOWN_UUID })).status).toBe(404);
  });

  itOfSimulator('"nextId is usable as startAfter for pagination"', async () => {
    const paged = await startRestClient({ quirks: { exchangeTickerPage: 7 } });
    expect((await paged.get("/exchange-ticker")).body.content).toHaveLength(7);
    const found = await paged.walk<ExchangeTickRecord>("/exchange-ticker");
    expect(found).toEqual(paged.simulator.oracle.exchangeTicks(paged.now));
  });

  itOfSimulator(
    '"When no trade occurred in a 30-second refresh period, the record is still refreshed and its lastMoved timestamp gives when the price was last updated"',
    async () => {
      const ownClient = await startRestClient();
      const { exchanges } = ownClient.simulator.universe;
      const exchangeId = exchanges.find(({ status }) => status === "MAINTENANCE")?.id;
      const read = async () => (await ownClient.get("/exchange-ticker", { exchangeId })).body.content[0];
      const before = await read();
      await ownClient.clock.advance(30_000);
      const after = await read();
      expect(after).toMatchObject({ last: before.last, lastMoved: before.lastMoved });
      expect(Date.parse(after.timestamp) - Date.parse(before.timestamp)).toBe(30_000);
      expect(Date.parse(after.lastMoved)).toBeLessThan(Date.parse(after.timestamp));
    },
  );

  it("quotes a bid below and an ask above the last price", async () => {
    for (const { bid, last, ask } of await tickers()) {
      expect(Number(bid)).toBeLessThan(Number(last));
      expect(Number(last)).toBeLessThan(Number(ask));
    }
  });
});
