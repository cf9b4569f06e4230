import { describe, expect, it } from "vitest";
import type { Subscription } from "../../../src/service/live/subscription-states.ts";
import {
  type FeedHarness,
  type FeedHarnessOptions,
  type FeedTokens,
  gwa,
  kraken,
  lx,
  startFeed,
  startSubscribedFeed,
} from "../../support/service/feed-harness.ts";
import {
  type Json,
  type ServerConnection,
  sendDefaultAnswer,
} from "../../support/service/websocket-server.ts";

const isSubscribe = ({ event }: Json) => String(event).startsWith("SUBSCRIBE_");
const market: Subscription = { source: "exchange", exchangeId: "kraken", marketId: "btc-usd" };
const btc: Subscription = { source: "index", indexType: "GWA", indexId: "btc" };

describe("E4: subscribing", () => {
  it("requests one subscription at a time", async () => {
    const waiting: [ServerConnection, Json][] = [];
    const feed = await startFeed(
      {
        handleMessage: (connection, message) =>
          isSubscribe(message) && waiting.push([connection, message]) > 0,
      },
      { subscriptions: [gwa, btc, kraken, market] },
    );
    for (let n = 1; n <= 4; n++) {
      await feed.waitUntil(() => waiting.length === n);
      await feed.clock.advance(1_000);
      expect(waiting).toHaveLength(n);
      const [connection, message] = waiting.at(-1) ?? [];
      if (connection && message) sendDefaultAnswer(connection, message);
    }
    await feed.waitUntil(() => feed.count("subscribed") === 4);
    expect(waiting.map(([, message]) => message)).toEqual([
      { event: "SUBSCRIBE_INDEX_TICKER", indexType: "GWA", requestId: 1 },
      { event: "SUBSCRIBE_INDEX_TICKER", indexId: "btc", requestId: 2 },
      { event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId: "kraken" },
      { event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId: "kraken", marketId: "btc-usd" },
    ]);
  });

  it("without a confirmation is tried three times, then reported as unconfirmed; its ticks are accepted", async () => {
    const feed = await startFeed(
      { handleMessage: (_, message) => isSubscribe(message) && message.indexType === "GWA" },
      { subscriptions: [gwa, lx] },
    );
    await feed.waitUntil(() => feed.server.connections.length === 1);
    feed.sendTick();
    const waited = await feed.advanceUntil(() => feed.count("unconfirmed") === 1, 60_000);
    expect(waited).toBeLessThanOrEqual(31_000);
    expect(feed.messagesOf("unconfirmed")).toEqual([
      { kind: "unconfirmed", subscription: gwa, reason: "no answer" },
    ]);
    expect(feed.messagesOf("subscribed").map(({ subscription }) => subscription)).toEqual([lx]);
    expect(feed.ticks).toHaveLength(1);
    expect(feed.server.upgrades).toBe(1);
    // The feed retries it from time to time.
    feed.server.behaviour.handleMessage = () => false;
    await feed.advanceUntil(() => feed.count("subscribed") === 2, 700_000);
  });

  it("ignores the confirmation of another subscription", async () => {
    const feed = await startFeed(
      {
        handleMessage: (connection, message) => {
          if (message.exchangeId !== "kraken") return false;
          connection.sendEvent("SUBSCRIBED_EXCHANGE_TICKER", { exchangeId: "elsewhere" });
          connection.sendEvent("SUBSCRIBED_INDEX_TICKER", { indexType: "LX", requestId: 999 });
          return true;
        },
      },
      { subscriptions: [kraken, gwa] },
    );
    await feed.advanceUntil(() => feed.count("unconfirmed") === 1, 60_000);
    expect(feed.messagesOf("unconfirmed")[0]?.subscription).toEqual(kraken);
    expect(feed.messagesOf("subscribed").map(({ subscription }) => subscription)).toEqual([gwa]);
  });

  it("accepts a late confirmation", async () => {
    const pending: Json[] = [];
    const feed = await startFeed(
      { handleMessage: (_, message) => isSubscribe(message) && pending.push(message) === 1 },
      { subscriptions: [gwa] },
    );
    await feed.waitUntil(() => pending.length === 1);
    await feed.clock.advance(9_000);
    feed.connection.sendEvent("SUBSCRIBED_INDEX_TICKER", { indexType: "GWA", requestId: 1 });
    await feed.waitUntil(() => feed.count("subscribed") === 1);
    await feed.clock.advance(60_000);
    expect(pending).toHaveLength(1);
  });
});

describe("E5: errors", () => {
  const startFailing = (code: unknown, options: FeedHarnessOptions = {}) =>
    startFeed(
      {
        handleMessage: (connection, message) => {
          if (!isSubscribe(message) || message.indexType !== "GWA") return false;
          connection.sendEvent("ERROR", { code, message: `no, ${connection.token} may not` });
          return true;
        },
      },
      { subscriptions: [gwa, lx], ...options },
    );
  const countRequests = (feed: FeedHarness, indexType: string) =>
    feed.server.connections
      .flatMap((connection) => connection.received)
      .filter((m) => m.indexType === indexType).length;

  it.each(["403", "404", 404, "400"])("with code %j park only that subscription", async (code) => {
    const feed = await startFailing(code);
    await feed.waitUntil(() => feed.count("subscribed") === 1);
    expect(feed.messagesOf("parked")).toEqual([
      { kind: "parked", subscription: gwa, code: String(code), message: "no, [secret] may not" },
    ]);
    expect(feed.messagesOf("subscribed")[0]?.subscription).toEqual(lx);
    // A new connection does not request it again before an hour has passed.
    feed.connection.socket.terminate();
    await feed.advanceUntil(() => feed.count("subscribed") === 2);
    await feed.clock.advance(3_400_000);
    expect(countRequests(feed, "GWA")).toBe(1);
    feed.server.behaviour.handleMessage = () => false;
    await feed.advanceUntil(() => feed.count("subscribed") === 3, 400_000);
  });

  it("with code 401 lead to a new token and a new connection", async () => {
    let isRefused = true;
    const feed = await startFeed({
      handleMessage: (connection, message) => {
        if (!isSubscribe(message) || !isRefused) return false;
        isRefused = false;
        connection.sendEvent("ERROR", { code: "401", message: "token" });
        return true;
      },
    });
    await feed.advanceUntil(() => feed.count("subscribed") === 1, 10_000);
    expect(feed.messagesOf("disconnected")[0]?.reason).toBe("error_401");
    expect(feed.tokens.issuedCount).toBe(2);
    expect(feed.server.connections.map(({ token }) => token)).toEqual(["canary+/=&?#%-1", "canary+/=&?#%-2"]);
  });

  it.each([
    ["requested first", [gwa, lx], 2],
    ["requested last", [lx, gwa], 1],
  ])(
    "with code 401 for one subscription %s park only that one, once others work with a new token",
    async (_, subscriptions, tokens) => {
      const feed = await startFailing("401", { subscriptions });
      await feed.advanceUntil(() => feed.count("parked") === 1, 10_000);
      expect(feed.messagesOf("parked")).toMatchObject([{ subscription: gwa, code: "401" }]);
      expect(feed.messagesOf("subscribed").map(({ subscription }) => subscription)).toEqual([lx]);
      // The feed retries it hourly; by then the token is no longer fresh, but still not the cause.
      await feed.clock.advance(3.5 * 3_600_000);
      expect(countRequests(feed, "GWA")).toBe(tokens + 3);
      expect([feed.server.upgrades, feed.tokens.issuedCount]).toEqual([tokens, tokens]);
    },
  );

  it("with code 401 for one subscription park only that one, even if the service issues the same old token again", async () => {
    const token = { text: "cached", scopes: undefined, firstSeenAt: -3_600_000, expiresAt: 80_000_000 };
    let refusals = 0;
    const tokens: FeedTokens = {
      get: async () => token,
      refresh: async () => token,
      reportRejected: () => void refusals++,
      reportAccepted: () => {},
    };
    const feed = await startFailing("401", { tokens });
    await feed.advanceUntil(() => feed.count("parked") === 1, 10_000);
    expect(feed.messagesOf("parked")).toMatchObject([{ subscription: gwa, code: "401" }]);
    await feed.clock.advance(3.5 * 3_600_000);
    expect([feed.server.upgrades, refusals]).toEqual([2, 1]);
    feed.server.behaviour.handleMessage = () => false;
    await feed.advanceUntil(() =>
      feed.messagesOf("subscribed").some(({ subscription }) => subscription === gwa),
    );
  });

  it.each(["500", "SOMETHING", undefined])(
    "with code %j are retried, then reported as unconfirmed",
    async (code) => {
      const feed = await startFailing(code);
      await feed.advanceUntil(() => feed.count("unconfirmed") === 1, 60_000);
      expect(feed.messagesOf("unconfirmed")[0]).toMatchObject({ subscription: gwa, reason: "refused" });
      expect(feed.messagesOf("subscribed")).toHaveLength(1);
      expect(feed.server.upgrades).toBe(1);
      const requests = feed.connection.received.filter((message) => message.indexType === "GWA");
      expect(requests).toHaveLength(3);
    },
  );

  it("without a request are reported and do not close the connection", async () => {
    const feed = await startSubscribedFeed();
    feed.connection.sendEvent("ERROR", { code: "503", message: "busy" });
    feed.connection.sendEvent("ERROR", { message: { odd: true } });
    const errors = () => feed.logLines.filter(([, message]) => message === "unexpected error from live feed");
    await feed.waitUntil(() => errors().length === 2);
    expect(errors().map(([fields]) => fields)).toEqual([
      { code: "503", message: "busy" },
      { code: "(none)", message: "" },
    ]);
    await feed.clock.advance(60_000);
    expect(feed.server.upgrades).toBe(1);
  });
});

describe("E17: ticks without a subscription", () => {
  it("are passed on like any other", async () => {
    const feed = await startSubscribedFeed();
    feed.sendTick({ exchangeId: "other", marketId: "m" });
    feed.connection.sendEvent("SUBSCRIBED_EXCHANGE_TICKER", { exchangeId: "other" });
    feed.connection.sendEvent("UNSUBSCRIBED_INDEX_TICKER", { indexType: "LX" });
    await feed.waitUntil(() => feed.ticks.length === 1 && feed.unknown.length === 1);
    expect(feed.unknown[0]).toMatchObject({ event: "UNSUBSCRIBED_INDEX_TICKER" });
  });
});
