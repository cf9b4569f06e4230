import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import {
  type ExchangeSubscription,
  type Subscription,
  SubscriptionStates,
} from "../../../src/service/live/subscription-states.ts";
import {
  type FeedHarness,
  gwa,
  kraken,
  lx,
  startSubscribedFeed,
} from "../../support/service/feed-harness.ts";
import { type Json, sendDefaultAnswer } from "../../support/service/websocket-server.ts";

const isSubscribe = ({ event }: Json) => String(event).startsWith("SUBSCRIBE_");
const market: Subscription = { source: "exchange", exchangeId: "kraken", marketId: "btc-usd" };
const listMarkets = (count: number): ExchangeSubscription[] =>
  Array.from({ length: count }, (_, n) => ({ source: "exchange", marketId: `market-${n}` }));
/** Passes the time; the index LX ticks every `step` seconds. */
async function passWithTicks(feed: FeedHarness, seconds: number, step: number, tick: Json = blx) {
  for (let second = 0; second < seconds; second += step) {
    feed.sendTick(tick);
    await feed.clock.advance(step * 1000);
  }
}
const blx = { indexType: "LX", indexId: "blx" };

describe("E13: exchange tickers that stop while the socket is alive", () => {
  const startSilent = (isMarketQuiet: () => Promise<boolean>, subscriptions: Subscription[] = [kraken]) =>
    startSubscribedFeed({}, { isMarketQuiet, subscriptions });

  it("are ignored if REST says that the market is quiet", async () => {
    let checks = 0;
    const feed = await startSilent(async () => ++checks > 0);
    await feed.clock.advance(74_000);
    expect(checks).toBe(0);
    await feed.clock.advance(300_000);
    expect(checks).toBeGreaterThanOrEqual(3);
    expect(checks).toBeLessThanOrEqual(5);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
    expect(feed.connection.receivedEvents("SUBSCRIBE_EXCHANGE_TICKER")).toHaveLength(1);
  });

  it("lead to a resubscribe, then a reconnect, then polling, until they return", async () => {
    const feed = await startSilent(async () => false);
    await feed.advanceUntil(() => feed.received("SUBSCRIBE_EXCHANGE_TICKER") === 2, 85_000);
    expect(feed.server.upgrades).toBe(1);
    await feed.advanceUntil(() => feed.server.upgrades === 2, 90_000);
    expect(feed.messagesOf("disconnected")[0]?.reason).toBe("no_ticks");
    await feed.advanceUntil(() => feed.count("unconfirmed") === 1, 90_000);
    const [unconfirmed] = feed.messagesOf("unconfirmed");
    expect(unconfirmed).toEqual({ kind: "unconfirmed", subscription: kraken, reason: "silent" });
    // No other ticks come either, so an occasional reconnect costs nothing.
    await feed.clock.advance(3_600_000);
    expect(feed.server.upgrades).toBeGreaterThan(2);
    expect(feed.server.upgrades).toBeLessThanOrEqual(8);
    const before = feed.count("subscribed");
    feed.sendTick({ exchangeId: "kraken", marketId: "m" });
    await feed.waitUntil(() => feed.count("subscribed") === before + 1);
  });

  it("of one subscription are noticed although others have ticks", async () => {
    const checks: Subscription[] = [];
    const isMarketQuiet = async (subscription: Subscription) => checks.push(subscription) > 0;
    const subscriptions = [gwa, market, kraken];
    const feed = await startSubscribedFeed({}, { isMarketQuiet, subscriptions });
    await passWithTicks(feed, 90, 15, { exchangeId: "kraken" });
    expect(checks).toEqual([market]);
  });

  it("of hundreds of subscriptions are all reported at once and resubscribed one by one", async () => {
    let checks = 0;
    const feed = await startSilent(async () => ++checks < 0, [lx, ...listMarkets(300)]);
    await passWithTicks(feed, 85, 5);
    expect(feed.messagesOf("unconfirmed")).toHaveLength(300);
    expect(checks).toBeLessThan(10);
    await feed.waitUntil(() => feed.received("SUBSCRIBE_EXCHANGE_TICKER") === 600);
    expect(feed.server.upgrades).toBe(1);
    feed.sendTick({ exchangeId: "kraken", marketId: "market-7" });
    await feed.waitUntil(() => feed.count("subscribed") === 302);
  });

  it("of markets that REST called quiet are missing since that check, not since the last tick", async () => {
    const markets = listMarkets(200);
    const lastTicks = new Set<number | undefined>();
    let staleMarket: Subscription | undefined;
    const isMarketQuiet = async (subscription: Subscription, lastTick: number | undefined) => {
      lastTicks.add(lastTick);
      return subscription !== staleMarket;
    };
    const feed = await startSubscribedFeed({}, { isMarketQuiet, subscriptions: [...markets, lx] });
    // One round of REST checks takes two minutes, and REST may lag by a period.
    const maxAge = 240 * MICROS_PER_SECOND;
    const reportedTooOld = () => {
      const now = feed.messagesOf("subscribed").at(-1)?.at ?? 0;
      return feed.messagesOf("unconfirmed").filter(({ missingSince = 0 }) => now - missingSince > maxAge);
    };
    const tickAll = async () => {
      for (const { marketId } of markets) feed.sendTick({ exchangeId: "kraken", marketId });
      const before = feed.ticks.length;
      await feed.waitUntil(() => feed.ticks.length >= before + markets.length);
    };
    await passWithTicks(feed, 1_500, 30);
    expect([...lastTicks]).toEqual([undefined]);
    await tickAll();
    expect(feed.count("unconfirmed")).toBeGreaterThan(0);
    expect(reportedTooOld()).toEqual([]);

    feed.messages.length = 0;
    await passWithTicks(feed, 1_500, 30);
    staleMarket = markets[7];
    await passWithTicks(feed, 210, 30);
    expect(feed.messagesOf("unconfirmed").map(({ subscription }) => subscription)).toContainEqual(
      staleMarket,
    );
    await tickAll();
    expect(reportedTooOld()).toEqual([]);
    // REST is still compared with the last received tick.
    expect(lastTicks.size).toBe(2);
  });

  it("are not due for a subscription that waits for its turn on a new connection", async () => {
    const checks: unknown[] = [];
    const isMarketQuiet = async (subscription: Subscription) => checks.push(subscription) < 0;
    const feed = await startSubscribedFeed({}, { isMarketQuiet, subscriptions: listMarkets(14) });
    const { clock, server } = feed;
    const served: unknown[] = [];
    server.behaviour.handleMessage = (connection, message) => {
      if (!isSubscribe(message)) return false;
      clock.after(8_000, () => {
        served.push(message.marketId);
        sendDefaultAnswer(connection, message);
      });
      return true;
    };
    server.lastConnection.socket.terminate();
    await feed.advanceUntil(() => feed.count("connected") === 2, 10_000);
    for (let second = 0; second < 150; second += 5) {
      for (const marketId of served) feed.sendTick({ exchangeId: "kraken", marketId });
      await clock.advance(5_000);
    }
    expect(served).toHaveLength(14);
    expect(checks).toEqual([]);
    expect(feed.messagesOf("unconfirmed")).toEqual([]);
    // It is subscribed now and gets no tick: its silence counts.
    await feed.advanceUntil(() => checks.length > 0, 90_000);
  });

  it("are checked again after REST did not answer", async () => {
    let checks = 0;
    const feed = await startSilent(() => (++checks === 1 ? new Promise(() => {}) : Promise.resolve(false)));
    await feed.advanceUntil(() => checks === 2, 200_000);
    await feed.advanceUntil(() => feed.received("SUBSCRIBE_EXCHANGE_TICKER") === 2, 1_000);
  });

  it("have no effect while REST cannot answer", async () => {
    const feed = await startSilent(async () => {
      throw new Error("no answer");
    });
    await feed.clock.advance(600_000);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
  });
});

describe("E13: index ticks that stop, as the head poller reports it", () => {
  const startWatched = async (subscriptions = new SubscriptionStates([gwa])) => {
    const isMarketQuiet = async () => {
      throw new Error("an index has a history: the head poller compares it");
    };
    const feed = await startSubscribedFeed({}, { isMarketQuiet, subscriptions });
    const since = feed.messagesOf("subscribed").at(-1)?.at ?? 0;
    const report = () => subscriptions.reportSilent(gwa, since);
    const tick = () => feed.sendTick({ indexType: "GWA", indexId: "eth" });
    const requests = () => feed.received("SUBSCRIBE_INDEX_TICKER");
    return { feed, report, tick, requests };
  };

  it("H6: of one index renew the subscription, while the others of its type speak", async () => {
    const { feed, report, requests } = await startWatched();
    await passWithTicks(feed, 90, 30, { indexType: "GWA", indexId: "eth" });
    report();
    await feed.waitUntil(() => requests() === 2);
    expect(feed.messagesOf("unconfirmed")).toEqual([]);
    expect(feed.server.upgrades).toBe(1);
  });

  it("lead to a resubscribe, then a reconnect, then polling, until they return", async () => {
    const { feed, report, tick, requests } = await startWatched();
    await feed.clock.advance(80_000);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
    report();
    await feed.waitUntil(() => requests() === 2);
    expect(feed.messagesOf("unconfirmed")).toMatchObject([{ subscription: gwa, reason: "silent" }]);
    await feed.clock.advance(60_000);
    report();
    expect(feed.server.upgrades).toBe(1);
    await feed.advanceUntil(() => feed.server.upgrades === 2, 30_000);
    expect(feed.messagesOf("disconnected")[0]?.reason).toBe("no_ticks");
    await feed.clock.advance(3_600_000);
    expect(feed.server.upgrades).toBeGreaterThan(2);
    expect(feed.server.upgrades).toBeLessThanOrEqual(8);
    expect(feed.messagesOf("subscribed")).toHaveLength(1);
    tick();
    await feed.waitUntil(() => feed.count("subscribed") === 2);
  });

  it("while no subscription gets any: all are reported at once", async () => {
    const { feed, report } = await startWatched(new SubscriptionStates([gwa, lx, kraken]));
    await feed.clock.advance(80_000);
    report();
    await feed.waitUntil(() => feed.count("unconfirmed") === 3);
  });
});
