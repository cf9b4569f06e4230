import { describe, expect, it } from "vitest";
import { parseInstant } from "../../../src/model/time.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { silentLog } from "../../../src/runtime/log.ts";
import { followFeed } from "../../../src/service/live/feed.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { CountedTokens, follow, followSubscribed, gwa } from "../../support/service/feed-harness.ts";

const tick = (n: number) => ({ indexType: "GWA", indexId: "btc", price: String(n) });

const unused = {
  tokens: new CountedTokens(new TurnedClock()),
  subscriptions: [gwa],
  clock: systemClock,
  random: () => 0,
  log: silentLog,
  observe: () => {},
  refreshSeconds: 30,
  isQuiet: async () => true,
};

describe("the live feed", () => {
  it("tells that it is connected, then subscribed, and hands on ticks verbatim in order", async () => {
    const feed = await followSubscribed();
    feed.server.peer.socket.send('{ "price":"1.50", "indexType":"GWA","event" : "INDEX_TICKER"}');
    feed.server.peer.say("INDEX_TICKER", tick(2));
    await feed.until(() => feed.ticks.length === 2);
    expect(feed.messages.slice(0, 2)).toEqual([
      { kind: "connected", at: parseInstant("2026-03-01T12:00:00Z") },
      { kind: "subscribed", subscription: gwa, at: parseInstant("2026-03-01T12:00:00Z") },
    ]);
    expect(feed.ticks[0]).toBe('{ "price":"1.50", "indexType":"GWA","event" : "INDEX_TICKER"}');
    expect(feed.server.peer.received).toEqual([
      { event: "SUBSCRIBE_INDEX_TICKER", indexType: "GWA", requestId: 1 },
    ]);
  });

  it("tells of a lost connection in its place among the ticks, and since when nothing was heard", async () => {
    const feed = await followSubscribed();
    feed.server.peer.say("INDEX_TICKER", tick(1));
    await feed.until(() => feed.ticks.length === 1);
    feed.server.peer.socket.terminate();
    await feed.until(() => feed.of("disconnected").length === 1);
    await feed.elapseUntil(() => feed.of("subscribed").length === 2, 5_000);
    expect(feed.kinds).toEqual([
      "connected",
      "subscribed",
      "update",
      "disconnected",
      "connected",
      "subscribed",
    ]);
    expect(feed.of("disconnected")[0]).toEqual({
      kind: "disconnected",
      reason: "closed_1006",
      since: parseInstant("2026-03-01T12:00:00Z"),
    });
  });

  it("delivers what it has heard before it ends, closes its socket, and leaves no timer behind", async () => {
    const feed = await followSubscribed();
    feed.isReading = false;
    for (let n = 0; n < 10; n++) feed.server.peer.say("INDEX_TICKER", tick(n));
    await feed.clock.advance(1);
    await feed.stop();
    expect(feed.ticks).toHaveLength(10);
    expect(feed.of("disconnected")).toEqual([]);
    expect(feed.clock.timers).toBe(0);
    expect(feed.clock.held).toBe(0);
  });

  it("never sends a token in the clear to another machine", async () => {
    const feed = followFeed({ ...unused, wsUrl: "ws://feed.example/v3" });
    await expect(feed.next()).rejects.toMatchObject({ code: "bad_address", family: "operator" });
  });
});

describe("E1: a peer that is frozen", () => {
  it("is given up after 45 seconds without a word, and PINGs were sent every 15", async () => {
    const feed = await followSubscribed({ answer: (_, { event }) => event === "PING" });
    const waited = await feed.elapseUntil(() => feed.of("disconnected").length === 1, 60_000);
    expect(waited).toBeGreaterThanOrEqual(45_000);
    expect(waited).toBeLessThan(52_000);
    expect(feed.of("disconnected")[0]?.reason).toBe("silent");
    expect(feed.server.peers[0]?.asked("PING").length).toBeGreaterThanOrEqual(2);
    await feed.elapseUntil(() => feed.of("connected").length === 2, 5_000);
  });

  it("is not given up while it answers", async () => {
    const feed = await followSubscribed();
    await feed.clock.advance(600_000);
    expect(feed.server.upgrades).toBe(1);
    expect(feed.server.peer.asked("PING").length).toBeGreaterThanOrEqual(39);
  });

  it("is given up at once when the machine has slept", async () => {
    const feed = await followSubscribed();
    feed.clock.suspend(25 * 3_600_000);
    await feed.clock.advance(5_000);
    await feed.until(() => feed.of("disconnected").length === 1);
    expect(feed.of("disconnected")[0]?.reason).toBe("suspended");
    await feed.elapseUntil(() => feed.of("connected").length === 2, 5_000);
    expect(feed.tokens.granted).toBe(2);
  });
});

describe("E2: a service that accepts and closes at once", () => {
  it("is asked ever more rarely, with one and the same token", async () => {
    const feed = await follow({
      greet: (peer) => {
        peer.say("CONNECTED");
        peer.socket.close(1011);
      },
    });
    await feed.clock.advance(600_000);
    expect(feed.server.upgrades).toBeGreaterThan(12);
    expect(feed.server.upgrades).toBeLessThan(50);
    expect(feed.tokens.granted).toBe(1);
  });

  it("gets its first try back only after a stable minute with ticks", async () => {
    let closesAtOnce = true;
    const feed = await follow({
      greet: (peer) => {
        peer.say("CONNECTED");
        if (closesAtOnce) peer.socket.close(1001);
      },
    });
    await feed.elapseUntil(() => feed.server.upgrades >= 9);
    closesAtOnce = false;
    await feed.elapseUntil(() => feed.of("subscribed").length > 0);
    // A minute without a tick proves nothing.
    await feed.clock.advance(61_000);
    feed.server.peer.socket.close(1001);
    const unproven = feed.server.upgrades;
    expect(await feed.elapseUntil(() => feed.server.upgrades > unproven)).toBeGreaterThan(1_000);
    await feed.until(() => !feed.server.peer.isClosed);
    await feed.clock.advance(30_000);
    feed.server.peer.say("INDEX_TICKER", tick(1));
    await feed.clock.advance(31_000);
    const proven = feed.server.upgrades;
    feed.server.peer.socket.close(1001);
    await feed.until(() => feed.messages.at(-1)?.kind === "disconnected");
    expect(await feed.elapseUntil(() => feed.server.upgrades > proven)).toBeLessThanOrEqual(1_500);
  });
});

describe("E3: the greeting", () => {
  it("that never comes ends the attempt after ten seconds", async () => {
    const feed = await follow({ greet: () => {} });
    await feed.until(() => feed.server.peers.length === 1);
    const waited = await feed.elapseUntil(() => feed.of("retrying").length === 1, 20_000);
    expect(waited).toBe(10_000);
    expect(feed.of("retrying")[0]).toMatchObject({ reason: "no_greeting", attempt: 1 });
    expect(feed.server.peers[0]?.received).toEqual([]);
  });

  it("that comes late is waited for before anything is asked", async () => {
    const feed = await follow({ greet: () => {} });
    await feed.until(() => feed.server.peers.length === 1);
    await feed.clock.advance(9_000);
    expect(feed.server.peer.received).toEqual([]);
    feed.server.peer.say("CONNECTED");
    await feed.until(() => feed.of("subscribed").length === 1);
  });

  it("that comes twice changes nothing", async () => {
    const feed = await followSubscribed({
      greet: (peer) => {
        peer.say("CONNECTED");
        peer.say("CONNECTED");
      },
    });
    await feed.clock.advance(1_000);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
    expect(feed.server.peer.asked("SUBSCRIBE_INDEX_TICKER")).toHaveLength(1);
  });
});

describe("E6 and E7: PINGs of the service", () => {
  it("are answered with their requestId, and without one if they had none", async () => {
    const feed = await followSubscribed();
    feed.server.peer.say("PING", { requestId: 7 });
    feed.server.peer.say("PING");
    feed.server.peer.say("PING", { requestId: "abc" });
    await feed.until(() => feed.server.peer.asked("PONG").length === 3);
    const pongs = feed.server.peer.asked("PONG").map(({ timestamp, ...rest }) => {
      expect(parseInstant(String(timestamp))).toBeDefined();
      return rest;
    });
    expect(pongs).toEqual([
      { event: "PONG", requestId: 7 },
      { event: "PONG" },
      { event: "PONG", requestId: "abc" },
    ]);
  });

  it("are answered while the reader is busy with something else", async () => {
    const feed = await followSubscribed();
    feed.isReading = false;
    for (let n = 0; n < 100; n++) {
      feed.server.peer.say("INDEX_TICKER", tick(n));
      feed.server.peer.say("PING", { requestId: n });
    }
    await feed.until(() => feed.server.peer.asked("PONG").length === 100);
  });

  it("are answered on the protocol's level too", async () => {
    const feed = await followSubscribed();
    let pongs = 0;
    feed.server.peer.socket.on("pong", () => pongs++);
    feed.server.peer.socket.ping("are you there");
    await feed.until(() => pongs === 1);
  });
});
