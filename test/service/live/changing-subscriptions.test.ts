import { describe, expect, it } from "vitest";
import { type Subscription, SubscriptionStates } from "../../../src/service/live/subscription-states.ts";
import { gwa, kraken, lx, startFeed, startSubscribedFeed } from "../../support/service/feed-harness.ts";
import type { Json } from "../../support/service/websocket-server.ts";

const eventsOf = (received: readonly Json[]) =>
  received
    .filter(({ event }) => String(event).includes("SUBSCRIBE"))
    .map(({ event, indexType, indexId, exchangeId, marketId }) =>
      [event, indexType, indexId, exchangeId, marketId].filter((part) => part !== undefined).join(" "),
    );
const gwaAndLx = ["SUBSCRIBE_INDEX_TICKER GWA", "SUBSCRIBE_INDEX_TICKER LX"];
const index = (indexId: string): Subscription => ({ source: "index", indexType: "GWA", indexId });

describe("changing subscriptions while the feed runs", () => {
  it("subscribes to additions, unsubscribes removals, and leaves the rest alone", async () => {
    const list = new SubscriptionStates([gwa, kraken]);
    const feed = await startSubscribedFeed({}, { subscriptions: list });
    const before = feed.connection.received.length;
    list.replace([gwa, lx]);
    await feed.advanceUntil(() => feed.count("subscribed") === 3, 5_000);
    expect(eventsOf(feed.connection.received.slice(before))).toEqual([
      "UNSUBSCRIBE_EXCHANGE_TICKER kraken",
      "SUBSCRIBE_INDEX_TICKER LX",
    ]);
    expect(feed.messagesOf("subscribed").at(-1)?.subscription).toEqual(lx);
    expect(feed.server.upgrades).toBe(1);
    // A new connection starts with the current subscriptions.
    feed.connection.socket.terminate();
    await feed.advanceUntil(() => feed.server.connections.length === 2 && feed.count("subscribed") === 5);
    expect(eventsOf(feed.connection.received)).toEqual(gwaAndLx);
  });

  it("E3: sends nothing of a list that changes before CONNECTED", async () => {
    const list = new SubscriptionStates([gwa]);
    const feed = await startFeed({ greet: () => {} }, { subscriptions: list });
    await feed.waitUntil(() => feed.server.connections.length === 1);
    list.replace([gwa, lx]);
    await feed.clock.advance(5_000);
    expect(feed.connection.received).toEqual([]);
    feed.connection.sendEvent("CONNECTED");
    await feed.waitUntil(() => feed.count("subscribed") === 2);
    expect(eventsOf(feed.connection.received)).toEqual(gwaAndLx);
  });

  it("does not attribute the ERROR after an unsubscribe to a subscription", async () => {
    const list = new SubscriptionStates([gwa, kraken]);
    const feed = await startSubscribedFeed(
      {
        handleMessage(connection, { event }) {
          if (event === "UNSUBSCRIBE_EXCHANGE_TICKER")
            connection.sendEvent("ERROR", { code: "404", message: "no such" });
          return false;
        },
      },
      { subscriptions: list },
    );
    list.replace([gwa, lx]);
    await feed.advanceUntil(() => feed.count("subscribed") === 3, 5_000);
    expect(feed.messagesOf("parked")).toEqual([]);
    expect(feed.logLines).toContainEqual([
      { code: "404", message: "no such" },
      "unexpected error from live feed",
    ]);
  });

  it("unsubscribes a removal in flight once its confirmation has come", async () => {
    const list = new SubscriptionStates([gwa]);
    const feed = await startSubscribedFeed(
      {
        handleMessage: (_, { event, exchangeId }) =>
          event === "SUBSCRIBE_EXCHANGE_TICKER" && exchangeId === "kraken",
      },
      { subscriptions: list },
    );
    list.replace([gwa, kraken]);
    await feed.waitUntil(() => feed.received("SUBSCRIBE_EXCHANGE_TICKER") === 1);
    list.replace([gwa]);
    feed.connection.sendEvent("SUBSCRIBED_EXCHANGE_TICKER", { exchangeId: "kraken" });
    await feed.advanceUntil(() => feed.received("UNSUBSCRIBE_EXCHANGE_TICKER") === 1, 5_000);
    expect(feed.messagesOf("subscribed").map(({ subscription }) => subscription)).toEqual([gwa]);
  });

  it("requests a subscription without an answer again after thousands of others", async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => index(`asset-${n}`));
    const feed = await startFeed(
      { handleMessage: (_, { indexId }) => indexId === "asset-0" },
      { subscriptions: [...many, kraken] },
    );
    await feed.waitUntil(
      () => feed.server.connections[0]?.receivedEvents("SUBSCRIBE_INDEX_TICKER").length === 1,
    );
    await feed.clock.advance(10_000);
    await feed.waitUntil(() => feed.count("subscribed") === 1_000);
    const lastRequestIndex = () =>
      feed.connection.received.findLastIndex(({ indexId }) => indexId === "asset-0");
    await feed.waitUntil(() => lastRequestIndex() > 0);
    expect(lastRequestIndex()).toBeGreaterThan(999);
    await feed.advanceUntil(() => feed.count("unconfirmed") === 1, 60_000);
    expect(feed.server.upgrades).toBe(1);
  });
});
