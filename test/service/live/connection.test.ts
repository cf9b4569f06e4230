import { describe, expect, it } from "vitest";
import { parseTimestamp } from "../../../src/model/time.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import {
  FakeTokens,
  FeedReader,
  gwa,
  startFeed,
  startSubscribedFeed,
} from "../../support/service/feed-harness.ts";

const tick = (n: number) => ({ indexType: "GWA", indexId: "btc", price: String(n) });

describe("the live feed", () => {
  it("reports connected, then subscribed, and passes ticks on verbatim and in order", async () => {
    const feed = await startSubscribedFeed();
    feed.connection.socket.send('{ "price":"1.50", "indexType":"GWA","event" : "INDEX_TICKER"}');
    feed.sendTick(tick(2));
    await feed.waitUntil(() => feed.ticks.length === 2);
    expect(feed.messages.slice(0, 2)).toEqual([
      { kind: "connected", at: parseTimestamp("2026-03-01T12:00:00Z") },
      { kind: "subscribed", subscription: gwa, at: parseTimestamp("2026-03-01T12:00:00Z") },
    ]);
    expect(feed.ticks[0]).toBe('{ "price":"1.50", "indexType":"GWA","event" : "INDEX_TICKER"}');
    expect(feed.connection.received).toEqual([
      { event: "SUBSCRIBE_INDEX_TICKER", indexType: "GWA", requestId: 1 },
    ]);
  });

  it("reports a lost connection in order among the ticks, with the time of the last message", async () => {
    const feed = await startSubscribedFeed();
    feed.sendTick(tick(1));
    await feed.waitUntil(() => feed.ticks.length === 1);
    feed.connection.socket.terminate();
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    await feed.advanceUntil(() => feed.count("subscribed") === 2, 5_000);
    expect(feed.kinds.join(" ")).toBe("connected subscribed update disconnected connected subscribed");
    expect(feed.messagesOf("disconnected")[0]).toEqual({
      kind: "disconnected",
      reason: "closed_1006",
      since: parseTimestamp("2026-03-01T12:00:00Z"),
    });
  });

  it("on stop, delivers the received messages, closes the socket and leaves no timer", async () => {
    const feed = await startSubscribedFeed();
    feed.isReading = false;
    for (let n = 0; n < 10; n++) feed.sendTick(tick(n));
    await feed.clock.advance(1);
    await feed.stop();
    expect(feed.ticks).toHaveLength(10);
    expect(feed.messagesOf("disconnected")).toEqual([]);
    expect(feed.clock.timerCount).toBe(0);
    expect(feed.clock.busyCount).toBe(0);
  });

  it("never sends a token unencrypted to another machine", async () => {
    const clock = new ManualClock();
    const feed = new FeedReader(clock, { wsUrl: "ws://feed.example/v3", tokens: new FakeTokens(clock) });
    await expect(feed.stop()).rejects.toMatchObject({ code: "bad_address", family: "operator" });
  });
});

describe("E1: a frozen server", () => {
  it("is disconnected after 45 seconds of silence, with a PING every 15 seconds", async () => {
    const feed = await startSubscribedFeed({ handleMessage: (_, { event }) => event === "PING" });
    const waited = await feed.advanceUntil(() => feed.count("disconnected") === 1, 60_000);
    expect(waited).toBeGreaterThanOrEqual(45_000);
    expect(waited).toBeLessThan(52_000);
    expect(feed.messagesOf("disconnected")[0]?.reason).toBe("silent");
    expect(feed.server.connections[0]?.receivedEvents("PING").length).toBeGreaterThanOrEqual(2);
    await feed.advanceUntil(() => feed.count("connected") === 2, 5_000);
  });

  it("stays connected while it answers", async () => {
    const feed = await startSubscribedFeed();
    await feed.clock.advance(600_000);
    expect(feed.server.upgrades).toBe(1);
    expect(feed.received("PING")).toBeGreaterThanOrEqual(39);
  });

  it("is disconnected at once after this machine has slept", async () => {
    const feed = await startSubscribedFeed();
    feed.clock.suspend(25 * 3_600_000);
    await feed.clock.advance(5_000);
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    expect(feed.messagesOf("disconnected")[0]?.reason).toBe("suspended");
    await feed.advanceUntil(() => feed.count("connected") === 2, 5_000);
    expect(feed.tokens.issuedCount).toBe(2);
  });
});

describe("E2: a service that accepts and closes at once", () => {
  it("is retried with growing delays and the same token", async () => {
    const feed = await startFeed({
      greet: (connection) => {
        connection.sendEvent("CONNECTED");
        connection.socket.close(1011);
      },
    });
    await feed.clock.advance(600_000);
    expect(feed.server.upgrades).toBeGreaterThan(12);
    expect(feed.server.upgrades).toBeLessThan(50);
    expect(feed.tokens.issuedCount).toBe(1);
  });

  it("resets the backoff only after a stable minute with ticks", async () => {
    let closesAtOnce = true;
    const feed = await startFeed({
      greet: (connection) => {
        connection.sendEvent("CONNECTED");
        if (closesAtOnce) connection.socket.close(1001);
      },
    });
    await feed.advanceUntil(() => feed.server.upgrades >= 9);
    closesAtOnce = false;
    await feed.advanceUntil(() => feed.count("subscribed") > 0);
    // A minute without a tick proves nothing.
    await feed.clock.advance(61_000);
    feed.connection.socket.close(1001);
    const unproven = feed.server.upgrades;
    expect(await feed.advanceUntil(() => feed.server.upgrades > unproven)).toBeGreaterThan(1_000);
    await feed.waitUntil(() => !feed.connection.isClosed);
    await feed.clock.advance(30_000);
    feed.sendTick(tick(1));
    await feed.clock.advance(31_000);
    const proven = feed.server.upgrades;
    feed.connection.socket.close(1001);
    await feed.waitUntil(() => feed.messages.at(-1)?.kind === "disconnected");
    expect(await feed.advanceUntil(() => feed.server.upgrades > proven)).toBeLessThanOrEqual(1_500);
  });
});

describe("E3: the greeting", () => {
  it("that never comes times out after ten seconds", async () => {
    const feed = await startFeed({ greet: () => {} });
    await feed.waitUntil(() => feed.server.connections.length === 1);
    const waited = await feed.advanceUntil(() => feed.count("retrying") === 1, 20_000);
    expect(waited).toBe(10_000);
    expect(feed.messagesOf("retrying")[0]).toMatchObject({ reason: "no_greeting", attempt: 1 });
    expect(feed.server.connections[0]?.received).toEqual([]);
  });

  it("that comes twice changes nothing", async () => {
    const feed = await startSubscribedFeed({
      greet: (connection) => {
        connection.sendEvent("CONNECTED");
        connection.sendEvent("CONNECTED");
      },
    });
    await feed.clock.advance(1_000);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
    expect(feed.connection.receivedEvents("SUBSCRIBE_INDEX_TICKER")).toHaveLength(1);
  });
});

describe("E6 and E7: PINGs from the service", () => {
  it("are answered with their requestId, if they have one", async () => {
    const feed = await startSubscribedFeed();
    feed.connection.sendEvent("PING", { requestId: 7 });
    feed.connection.sendEvent("PING");
    feed.connection.sendEvent("PING", { requestId: "abc" });
    await feed.waitUntil(() => feed.received("PONG") === 3);
    const pongs = feed.connection.receivedEvents("PONG").map(({ timestamp, ...rest }) => {
      expect(parseTimestamp(String(timestamp))).toBeDefined();
      return rest;
    });
    expect(pongs).toEqual([
      { event: "PONG", requestId: 7 },
      { event: "PONG" },
      { event: "PONG", requestId: "abc" },
    ]);
  });

  it("are answered on the protocol level too", async () => {
    const feed = await startSubscribedFeed();
    let pongs = 0;
    feed.connection.socket.on("pong", () => pongs++);
    feed.connection.socket.ping("are you there");
    await feed.waitUntil(() => pongs === 1);
  });
});
