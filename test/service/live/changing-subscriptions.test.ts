import { describe, expect, it } from "vitest";
import type { Subscription } from "../../../src/service/live/messages.ts";
import { SubscriptionList } from "../../../src/service/live/subscription-status.ts";
import { follow, followSubscribed, gwa, kraken, lx } from "../../support/service/feed-harness.ts";
import type { Json } from "../../support/service/websocket-server.ts";

const eventsOf = (received: readonly Json[]) =>
  received
    .filter(({ event }) => String(event).includes("SUBSCRIBE"))
    .map(({ event, indexType, indexId, exchangeId, marketId }) =>
      [event, indexType, indexId, exchangeId, marketId].filter((part) => part !== undefined).join(" "),
    );
const index = (indexId: string): Subscription => ({ source: "index", indexType: "GWA", indexId });

describe("subscriptions that change while the feed runs", () => {
  it("are asked for where they are new and left where they are gone; the others are not touched", async () => {
    const list = new SubscriptionList([gwa, kraken]);
    const feed = await followSubscribed({}, { subscriptions: list });
    const before = feed.server.peer.received.length;
    list.renew([gwa, lx]);
    await feed.elapseUntil(() => feed.of("subscribed").length === 3, 5_000);
    expect(eventsOf(feed.server.peer.received.slice(before))).toEqual([
      "UNSUBSCRIBE_EXCHANGE_TICKER kraken",
      "SUBSCRIBE_INDEX_TICKER LX",
    ]);
    expect(feed.of("subscribed").at(-1)?.subscription).toEqual(lx);
    expect(feed.server.upgrades).toBe(1);
    // A new connection begins with what is wanted now.
    feed.server.peer.socket.terminate();
    await feed.elapseUntil(() => feed.server.peers.length === 2 && feed.of("subscribed").length === 5);
    expect(eventsOf(feed.server.peer.received)).toEqual([
      "SUBSCRIBE_INDEX_TICKER GWA",
      "SUBSCRIBE_INDEX_TICKER LX",
    ]);
  });

  it("are not blamed for the ERROR that an unsubscribe earns", async () => {
    const list = new SubscriptionList([gwa, kraken]);
    const feed = await followSubscribed(
      {
        answer(peer, { event }) {
          if (event === "UNSUBSCRIBE_EXCHANGE_TICKER") peer.say("ERROR", { code: "404", message: "no such" });
          return false;
        },
      },
      { subscriptions: list },
    );
    list.renew([gwa, lx]);
    await feed.elapseUntil(() => feed.of("subscribed").length === 3, 5_000);
    expect(feed.of("parked")).toEqual([]);
    expect(feed.of("error")).toHaveLength(1);
  });

  it("that go while their answer is on its way are left as soon as it has come", async () => {
    const list = new SubscriptionList([gwa]);
    const feed = await followSubscribed(
      {
        answer: (_, { event, exchangeId }) =>
          event === "SUBSCRIBE_EXCHANGE_TICKER" && exchangeId === "kraken",
      },
      { subscriptions: list },
    );
    list.renew([gwa, kraken]);
    await feed.until(() => feed.server.peer.asked("SUBSCRIBE_EXCHANGE_TICKER").length === 1);
    list.renew([gwa]);
    feed.server.peer.say("SUBSCRIBED_EXCHANGE_TICKER", { exchangeId: "kraken" });
    await feed.elapseUntil(() => feed.server.peer.asked("UNSUBSCRIBE_EXCHANGE_TICKER").length === 1, 5_000);
    expect(feed.of("subscribed").map(({ subscription }) => subscription)).toEqual([gwa]);
  });

  it("may be thousands: one that never answers is asked again after all the others", async () => {
    const many = Array.from({ length: 1_000 }, (_, n) => index(`asset-${n}`));
    const feed = await follow(
      { answer: (_, { indexId }) => indexId === "asset-0" },
      { subscriptions: [...many, kraken] },
    );
    await feed.until(() => feed.server.peers[0]?.asked("SUBSCRIBE_INDEX_TICKER").length === 1);
    await feed.clock.advance(10_000);
    await feed.until(() => feed.of("subscribed").length === 1_000);
    const askedAgain = () => feed.server.peer.received.findLastIndex(({ indexId }) => indexId === "asset-0");
    await feed.until(() => askedAgain() > 0);
    expect(askedAgain()).toBeGreaterThan(999);
    await feed.elapseUntil(() => feed.of("unconfirmed").length === 1, 60_000);
    expect(feed.server.upgrades).toBe(1);
  });
});
