import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { itOfSimulator } from "../support/simulator/server-under-test.ts";
import { WebSocketFixture, type WebSocketMessage } from "../support/simulator/websocket-client.ts";

let fixture: WebSocketFixture;
beforeAll(async () => {
  fixture = await WebSocketFixture.start({ pingSeconds: 0 });
});
afterEach(() => fixture.clear());
afterAll(() => fixture.stop());

const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const universe = () => fixture.simulator.universe;

/** All ticks of the next refresh. */
async function nextTicks(
  client: Awaited<ReturnType<WebSocketFixture["connect"]>>,
  event: string,
): Promise<WebSocketMessage[]> {
  const before = client.messagesOf(event).length;
  await fixture.clock.runUntil(client.waitFor(event, before + 1));
  // The PONG comes after everything that was sent before it.
  const pongs = client.messagesOf("PONG").length;
  client.send({ event: "PING" });
  await client.waitFor("PONG", pongs + 1);
  return client.messagesOf(event).slice(before);
}

describe("index tickers", () => {
  it("“SUBSCRIBED_INDEX_TICKER: indexType, timestamp, requestId (echo, optional)”", async () => {
    const client = await fixture.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX", requestId: 5 });
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexId: universe().assets[0]?.id });
    const confirmed = { event: "SUBSCRIBED_INDEX_TICKER", timestamp: expect.stringMatching(utc) };
    expect(await client.waitFor("SUBSCRIBED_INDEX_TICKER", 2)).toEqual([
      { ...confirmed, indexType: "LX", requestId: 5 },
      { ...confirmed, indexType: "GWA" },
    ]);
  });

  it("“INDEX_TICKER (LX): id, indexId, indexType, name, price, volume, tickVolume, timestamp”", async () => {
    const client = await fixture.connectAndSubscribe("LX");
    const ticks = await nextTicks(client, "INDEX_TICKER");
    const names = "event name id indexId indexType price volume tickVolume timestamp".split(" ").sort();
    expect(ticks.map(({ name }) => name)).toEqual(["BLX", "ELX", "XRPLX"]);
    for (const tick of ticks) {
      expect(Object.keys(tick).sort()).toEqual(names);
      expect(Object.values(tick).every((value) => typeof value === "string")).toBe(true);
    }
  });

  it("“INDEX_TICKER (GWA / MWA): id, indexId, indexType, price, volume, timestamp”; “indexType alone subscribes to all indices of that type”", async () => {
    const client = await fixture.connectAndSubscribe("MWA");
    const ticks = await nextTicks(client, "INDEX_TICKER");
    const isActive = ({ status }: { status: string }) => status === "ACTIVE";
    const active = universe().markets.filter(({ base, quote }) => isActive(base) && isActive(quote));
    expect(new Set(ticks.map(({ indexId }) => indexId))).toEqual(new Set(active.map(({ id }) => id)));
    expect(ticks.length).toBe(active.length);
    const names = "event id indexId indexType price timestamp volume".split(" ");
    for (const tick of ticks) expect(Object.keys(tick).sort()).toEqual(names);
  });

  it("“indexId for MWA is a market id; for GWA an asset id”: one index, one tick per refresh, the same record as REST", async () => {
    const client = await fixture.connect();
    const id = universe().markets[3]?.id;
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexId: id });
    await client.waitFor("SUBSCRIBED_INDEX_TICKER");
    const [tick, ...more] = await nextTicks(client, "INDEX_TICKER");
    const { event: _, ...record } = tick ?? {};
    const { body } = await fixture.rest.get("/index-ticker", { indexType: "MWA", indexId: id });
    expect(more).toEqual([]);
    expect(body.content).toEqual([record]);
    expect(Date.parse(String(tick?.timestamp))).toBe(fixture.clock.now());
  });

  it("sends ticks every refreshSeconds at their timestamps, and none before the subscription", async () => {
    const client = await fixture.connectAndSubscribe("LX");
    await fixture.clock.runUntil(client.waitFor("INDEX_TICKER", 9));
    const times = client.messagesOf("INDEX_TICKER").map(({ timestamp }) => Date.parse(String(timestamp)));
    const distinct = [...new Set(times)];
    expect(distinct.every((time) => time % 30_000 === 0)).toBe(true);
    expect(distinct.slice(1).map((time, at) => time - (distinct[at] ?? 0))).toEqual([30_000, 30_000]);
  });

  it("“A client may hold several subscriptions at once”; sends a tick of two subscriptions once", async () => {
    const client = await fixture.connectAndSubscribe("LX");
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexId: universe().liquidIndexes[0]?.id });
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexId: universe().assets[0]?.id });
    await client.waitFor("SUBSCRIBED_INDEX_TICKER", 3);
    const ticks = await nextTicks(client, "INDEX_TICKER");
    expect(ticks.map(({ indexType }) => indexType).sort()).toEqual(["GWA", "LX", "LX", "LX"]);
  });

  it("“A subscribed client receives ticks until it sends the matching UNSUBSCRIBE message”", async () => {
    const client = await fixture.connectAndSubscribe("LX");
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "GWA", requestId: 1 });
    await client.waitFor("SUBSCRIBED_INDEX_TICKER", 2);
    client.send({ event: "UNSUBSCRIBE_INDEX_TICKER", indexType: "GWA", requestId: 2 });
    const ticks = await nextTicks(client, "INDEX_TICKER");
    expect(new Set(ticks.map(({ indexType }) => indexType))).toEqual(new Set(["LX"]));
  });

  itOfSimulator("has no timer when no client is subscribed", async () => {
    const client = await fixture.connectAndSubscribe("LX");
    client.send({ event: "UNSUBSCRIBE_INDEX_TICKER", indexType: "LX" });
    client.send({ event: "PING" });
    await client.waitFor("PONG");
    await fixture.clock.advance(60_000);
    expect(fixture.clock.timerCount).toBe(0);
  });
});

describe("exchange tickers", () => {
  const ofExchangeTicks = { event: "SUBSCRIBED_EXCHANGE_TICKER", timestamp: expect.stringMatching(utc) };
  const subscribe = async (body: Record<string, unknown>) => {
    const client = await fixture.connect();
    client.send({ event: "SUBSCRIBE_EXCHANGE_TICKER", ...body });
    const [confirmed] = await client.waitFor("SUBSCRIBED_EXCHANGE_TICKER");
    return { client, confirmed };
  };
  const rest = async (query: string) => {
    const { body } = await fixture.rest.get(`/exchange-ticker?${query}`);
    return body.content.map(({ lastMoved: _, ...record }: Record<string, unknown>) => ({
      event: "EXCHANGE_TICKER",
      ...record,
    }));
  };

  it("“exchangeId alone: all ticks of that exchange”, the same records as REST, without lastMoved", async () => {
    const exchangeId = universe().exchanges[0]?.id;
    const { client, confirmed } = await subscribe({ exchangeId, requestId: 3 });
    expect(confirmed).toEqual({ ...ofExchangeTicks, exchangeId });
    const ticks = await nextTicks(client, "EXCHANGE_TICKER");
    expect(ticks.length).toBeGreaterThan(3);
    expect(ticks).toEqual(await rest(`exchangeId=${exchangeId}`));
    const names = "ask bid event exchangeId id last marketId timestamp volume".split(" ");
    for (const tick of ticks) expect(Object.keys(tick).sort()).toEqual(names);
  });

  it.each(["marketId", "marketName"])(
    "“marketId or marketName alone: all ticks of that market across exchanges”: %s",
    async (by) => {
      const market = universe().markets[0];
      const name = `${market?.base.symbol}_${market?.quote.symbol}`;
      const body = by === "marketId" ? { marketId: market?.id } : { marketName: name };
      const { client, confirmed } = await subscribe(body);
      expect(confirmed).toEqual({ ...ofExchangeTicks, marketId: market?.id });
      const ticks = await nextTicks(client, "EXCHANGE_TICKER");
      expect(ticks.length).toBeGreaterThan(2);
      expect(ticks).toEqual(await rest(`marketId=${market?.id}`));
    },
  );

  it("“exchangeId with marketId: that market on that exchange”", async () => {
    const exchange = universe().exchanges[0];
    const market = exchange?.markets[1];
    const { client, confirmed } = await subscribe({ exchangeId: exchange?.id, marketId: market?.id });
    expect(confirmed).toMatchObject({ exchangeId: exchange?.id, marketId: market?.id });
    const ticks = await nextTicks(client, "EXCHANGE_TICKER");
    expect(ticks).toMatchObject([{ exchangeId: exchange?.id, marketId: market?.id }]);
  });

  it("“the UNSUBSCRIBE_* message with the same body as the subscribe except the event”", async () => {
    const marketId = universe().markets[0]?.id;
    const exchangeId = universe().exchanges[1]?.id;
    const { client } = await subscribe({ exchangeId, marketId });
    client.send({ event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId: universe().exchanges[0]?.id });
    await client.waitFor("SUBSCRIBED_EXCHANGE_TICKER", 2);
    client.send({ event: "UNSUBSCRIBE_EXCHANGE_TICKER", marketId, exchangeId });
    const ticks = await nextTicks(client, "EXCHANGE_TICKER");
    expect(new Set(ticks.map((tick) => tick.exchangeId))).toEqual(new Set([universe().exchanges[0]?.id]));
  });
});
