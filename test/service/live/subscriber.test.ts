import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import type { FeedTokens } from "../../../src/service/live/feed.ts";
import type { Subscription } from "../../../src/service/live/messages.ts";
import {
  type Following,
  type FollowOptions,
  follow,
  followSubscribed,
  gwa,
  kraken,
  lx,
} from "../../support/service/feed-harness.ts";
import { answer, type Json, type Peer } from "../../support/service/websocket-server.ts";

const isSubscribe = ({ event }: Json) => String(event).startsWith("SUBSCRIBE_");
const market: Subscription = { source: "exchange", exchangeId: "kraken", marketId: "btc-usd" };
const btc: Subscription = { source: "index", indexType: "GWA", indexId: "btc" };

describe("E4: subscribing", () => {
  it("asks for one subscription at a time", async () => {
    const waiting: [Peer, Json][] = [];
    const feed = await follow(
      { answer: (peer, message) => isSubscribe(message) && waiting.push([peer, message]) > 0 },
      { subscriptions: [gwa, btc, kraken, market] },
    );
    for (let n = 1; n <= 4; n++) {
      await feed.until(() => waiting.length === n);
      await feed.clock.advance(1_000);
      expect(waiting).toHaveLength(n);
      const [peer, message] = waiting.at(-1) ?? [];
      if (peer && message) answer(peer, message);
    }
    await feed.until(() => feed.of("subscribed").length === 4);
    expect(waiting.map(([, message]) => message)).toEqual([
      { event: "SUBSCRIBE_INDEX_TICKER", indexType: "GWA", requestId: 1 },
      { event: "SUBSCRIBE_INDEX_TICKER", indexId: "btc", requestId: 2 },
      { event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId: "kraken" },
      { event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId: "kraken", marketId: "btc-usd" },
    ]);
  });

  it("that is never confirmed is tried three times and then left to REST, while its ticks are taken", async () => {
    const feed = await follow(
      { answer: (_, message) => isSubscribe(message) && message.indexType === "GWA" },
      { subscriptions: [gwa, lx] },
    );
    await feed.until(() => feed.server.peers.length === 1);
    feed.server.peer.say("INDEX_TICKER", { indexType: "GWA", indexId: "btc" });
    const waited = await feed.elapseUntil(() => feed.of("unconfirmed").length === 1, 60_000);
    expect(waited).toBeLessThanOrEqual(31_000);
    expect(feed.of("unconfirmed")).toEqual([{ kind: "unconfirmed", subscription: gwa, reason: "no answer" }]);
    expect(feed.of("subscribed").map(({ subscription }) => subscription)).toEqual([lx]);
    expect(feed.ticks).toHaveLength(1);
    expect(feed.server.upgrades).toBe(1);
    // It is asked for again from time to time, and may succeed yet.
    feed.server.manners.answer = () => false;
    await feed.elapseUntil(() => feed.of("subscribed").length === 2, 700_000);
  });

  it("takes no answer for another subscription as its own", async () => {
    const feed = await follow(
      {
        answer: (peer, message) => {
          if (message.exchangeId !== "kraken") return false;
          peer.say("SUBSCRIBED_EXCHANGE_TICKER", { exchangeId: "elsewhere" });
          peer.say("SUBSCRIBED_INDEX_TICKER", { indexType: "LX", requestId: 999 });
          return true;
        },
      },
      { subscriptions: [kraken, gwa] },
    );
    await feed.elapseUntil(() => feed.of("unconfirmed").length === 1, 60_000);
    expect(feed.of("unconfirmed")[0]?.subscription).toEqual(kraken);
    expect(feed.of("subscribed").map(({ subscription }) => subscription)).toEqual([gwa]);
  });

  it("takes a confirmation that comes late for what it is", async () => {
    const held: Json[] = [];
    const feed = await follow(
      { answer: (_, message) => isSubscribe(message) && held.push(message) === 1 },
      { subscriptions: [gwa] },
    );
    await feed.until(() => held.length === 1);
    await feed.clock.advance(9_000);
    feed.server.peer.say("SUBSCRIBED_INDEX_TICKER", { indexType: "GWA", requestId: 1 });
    await feed.until(() => feed.of("subscribed").length === 1);
    await feed.clock.advance(60_000);
    expect(held).toHaveLength(1);
  });
});

describe("E5: errors", () => {
  const failing = (code: unknown, options: FollowOptions = {}) =>
    follow(
      {
        answer: (peer, message) => {
          if (!isSubscribe(message) || message.indexType !== "GWA") return false;
          peer.say("ERROR", { code, message: `no, ${peer.token} may not` });
          return true;
        },
      },
      { subscriptions: [gwa, lx], ...options },
    );
  const asksFor = (feed: Following, indexType: string) =>
    feed.server.peers.flatMap((peer) => peer.received).filter((m) => m.indexType === indexType).length;

  it.each(["403", "404", 404, "400"])("with code %j park that subscription alone", async (code) => {
    const feed = await failing(code);
    await feed.until(() => feed.of("subscribed").length === 1);
    expect(feed.of("parked")).toEqual([
      { kind: "parked", subscription: gwa, code: String(code), message: "no, [secret] may not" },
    ]);
    expect(feed.of("subscribed")[0]?.subscription).toEqual(lx);
    // Neither time nor a new connection makes it ask again before an hour is over.
    feed.server.peer.socket.terminate();
    await feed.elapseUntil(() => feed.of("subscribed").length === 2);
    await feed.clock.advance(3_400_000);
    expect(asksFor(feed, "GWA")).toBe(1);
    feed.server.manners.answer = () => false;
    await feed.elapseUntil(() => feed.of("subscribed").length === 3, 400_000);
  });

  it("with code 401 earn a new token and a new connection", async () => {
    let isRefused = true;
    const feed = await follow({
      answer: (peer, message) => {
        if (!isSubscribe(message) || !isRefused) return false;
        isRefused = false;
        peer.say("ERROR", { code: "401", message: "token" });
        return true;
      },
    });
    await feed.elapseUntil(() => feed.of("subscribed").length === 1, 10_000);
    expect(feed.of("disconnected")[0]?.reason).toBe("error_401");
    expect(feed.tokens.granted).toBe(2);
    expect(feed.server.peers.map(({ token }) => token)).toEqual(["canary+/=&?#%-1", "canary+/=&?#%-2"]);
  });

  it.each([
    ["that is asked for first", [gwa, lx], 2],
    ["that is asked for last", [lx, gwa], 1],
  ])(
    "with code 401 for one subscription %s park it alone once others have taken a new token",
    async (_, subscriptions, tokens) => {
      const feed = await failing("401", { subscriptions });
      await feed.elapseUntil(() => feed.of("parked").length === 1, 10_000);
      expect(feed.of("parked")).toMatchObject([{ subscription: gwa, code: "401" }]);
      expect(feed.of("subscribed").map(({ subscription }) => subscription)).toEqual([lx]);
      // It is asked for again hourly; by then the token is no longer young, and still not what is wrong.
      await feed.clock.advance(3.5 * 3_600_000);
      expect(asksFor(feed, "GWA")).toBe(tokens + 3);
      expect([feed.server.upgrades, feed.tokens.granted]).toEqual([tokens, tokens]);
    },
  );

  it("with code 401 for one subscription park it alone also where the same old token is granted again and again", async () => {
    const token = { text: "cached", scopes: undefined, issuedAt: -3_600_000, endsAt: 80_000_000 };
    let refusals = 0;
    const tokens: FeedTokens = {
      get: async () => token,
      renew: async () => token,
      refused: () => void refusals++,
      accepted: () => {},
      onHealed: () => () => {},
    };
    const feed = await failing("401", { tokens });
    await feed.elapseUntil(() => feed.of("parked").length === 1, 10_000);
    expect(feed.of("parked")).toMatchObject([{ subscription: gwa, code: "401" }]);
    await feed.clock.advance(3.5 * 3_600_000);
    expect([feed.server.upgrades, refusals]).toEqual([2, 1]);
    feed.server.manners.answer = () => false;
    await feed.elapseUntil(() => feed.of("subscribed").some(({ subscription }) => subscription === gwa));
  });

  it.each(["500", "SOMETHING", undefined])(
    "with code %j are tried again, then left to REST",
    async (code) => {
      const feed = await failing(code);
      await feed.elapseUntil(() => feed.of("unconfirmed").length === 1, 60_000);
      expect(feed.of("unconfirmed")[0]).toMatchObject({ subscription: gwa, reason: "refused" });
      expect(feed.of("subscribed")).toHaveLength(1);
      expect(feed.server.upgrades).toBe(1);
      const asked = feed.server.peer.received.filter((message) => message.indexType === "GWA");
      expect(asked).toHaveLength(3);
    },
  );

  it("that nobody asked for are told, and nothing is torn down", async () => {
    const feed = await followSubscribed();
    feed.server.peer.say("ERROR", { code: "503", message: "busy" });
    feed.server.peer.say("ERROR", { message: { odd: true } });
    await feed.until(() => feed.of("error").length === 2);
    expect(feed.of("error")).toEqual([
      { kind: "error", code: "503", message: "busy", count: 1 },
      { kind: "error", code: "(none)", message: "", count: 1 },
    ]);
    await feed.clock.advance(60_000);
    expect(feed.server.upgrades).toBe(1);
  });
});

describe("E13: ticks that stop while the socket lives", () => {
  const silent = (isQuiet: () => Promise<boolean>, subscriptions: Subscription[] = [gwa]) =>
    followSubscribed({}, { isQuiet, subscriptions });

  it("are no alarm when REST says that the market is quiet", async () => {
    let asked = 0;
    const feed = await silent(async () => ++asked > 0);
    await feed.clock.advance(74_000);
    expect(asked).toBe(0);
    await feed.clock.advance(300_000);
    expect(asked).toBeGreaterThanOrEqual(3);
    expect(asked).toBeLessThanOrEqual(5);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
    expect(feed.server.peer.asked("SUBSCRIBE_INDEX_TICKER")).toHaveLength(1);
  });

  it("are asked for again, then over a new connection, then left to REST, until they come back", async () => {
    const feed = await silent(async () => false);
    await feed.elapseUntil(() => feed.server.peer.asked("SUBSCRIBE_INDEX_TICKER").length === 2, 85_000);
    expect(feed.server.upgrades).toBe(1);
    await feed.elapseUntil(() => feed.server.upgrades === 2, 90_000);
    expect(feed.of("disconnected")[0]?.reason).toBe("no_ticks");
    await feed.elapseUntil(() => feed.of("unconfirmed").length === 1, 90_000);
    expect(feed.of("unconfirmed")[0]).toEqual({ kind: "unconfirmed", subscription: gwa, reason: "silent" });
    // Nothing else is heard either, so that a new connection now and then costs nobody anything.
    await feed.clock.advance(3_600_000);
    expect(feed.server.upgrades).toBeGreaterThan(2);
    expect(feed.server.upgrades).toBeLessThanOrEqual(8);
    const before = feed.of("subscribed").length;
    feed.server.peer.say("INDEX_TICKER", { indexType: "GWA", indexId: "btc" });
    await feed.until(() => feed.of("subscribed").length === before + 1);
  });

  it("of one subscription are missed although another has ticks", async () => {
    const asked: Subscription[] = [];
    const feed = await followSubscribed(
      {},
      {
        isQuiet: async (subscription) => {
          asked.push(subscription);
          return true;
        },
        subscriptions: [gwa, lx, kraken],
      },
    );
    for (let second = 0; second < 90; second += 15) {
      feed.server.peer.say("INDEX_TICKER", { indexType: "LX", indexId: "blx" });
      feed.server.peer.say("EXCHANGE_TICKER", { exchangeId: "kraken", marketId: "m" });
      await feed.clock.advance(15_000);
    }
    expect(asked).toEqual([gwa]);
  });

  it("of hundreds of subscriptions at once are all left to REST at once, and asked for again one by one", async () => {
    const mute = Array.from(
      { length: 300 },
      (_, n): Subscription => ({ source: "index", indexId: `mute-${n}` }),
    );
    let asked = 0;
    const isQuiet = async () => ++asked < 0;
    const feed = await followSubscribed({}, { isQuiet, subscriptions: [lx, ...mute] });
    const pass = async (seconds: number) => {
      for (let second = 0; second < seconds; second += 5) {
        feed.server.peer.say("INDEX_TICKER", { indexType: "LX", indexId: "blx" });
        await feed.clock.advance(5_000);
      }
    };
    await pass(85);
    expect(feed.of("unconfirmed")).toHaveLength(300);
    expect(asked).toBeLessThan(10);
    await feed.until(() => feed.server.peer.asked("SUBSCRIBE_INDEX_TICKER").length === 601);
    expect(feed.server.upgrades).toBe(1);
    feed.server.peer.say("INDEX_TICKER", { indexType: "GWA", indexId: "mute-7" });
    await feed.until(() => feed.of("subscribed").length === 302);
  });

  it("of markets that REST has called quiet are missing since then at most, not since their last tick", async () => {
    const markets = Array.from(
      { length: 200 },
      (_, n): Subscription => ({ source: "index", indexId: `quiet-${n}` }),
    );
    const lastTicks = new Set<number | undefined>();
    let deaf: Subscription | undefined;
    const isQuiet = async (subscription: Subscription, lastTick: number | undefined) => {
      lastTicks.add(lastTick);
      return subscription !== deaf;
    };
    const feed = await followSubscribed({}, { isQuiet, subscriptions: [...markets, lx] });
    const pass = async (seconds: number) => {
      for (let second = 0; second < seconds; second += 30) {
        feed.server.peer.say("INDEX_TICKER", { indexType: "LX", indexId: "blx" });
        await feed.clock.advance(30_000);
      }
    };
    // It takes REST two minutes to be asked about all of them once, and a period more that it may be behind.
    const borne = 240 * MICROS_PER_SECOND;
    const toldLate = () => {
      const now = feed.of("subscribed").at(-1)?.at ?? 0;
      return feed.of("unconfirmed").filter(({ since = 0 }) => now - since > borne);
    };
    const tickAll = async () => {
      for (const [n] of markets.entries())
        feed.server.peer.say("INDEX_TICKER", { indexType: "GWA", indexId: `quiet-${n}` });
      const before = feed.ticks.length;
      await feed.until(() => feed.ticks.length >= before + markets.length);
    };
    await pass(1_500);
    expect([...lastTicks]).toEqual([undefined]);
    await tickAll();
    expect(feed.of("unconfirmed").length).toBeGreaterThan(0);
    expect(toldLate()).toEqual([]);

    feed.messages.length = 0;
    await pass(1_500);
    deaf = markets[7];
    await pass(210);
    expect(feed.of("unconfirmed").map(({ subscription }) => subscription)).toContainEqual(deaf);
    await tickAll();
    expect(toldLate()).toEqual([]);
    // What REST is compared with stays the tick that was heard.
    expect(lastTicks.size).toBe(2);
  });

  it("are not missed of a subscription that still waits for its turn on a new connection", async () => {
    const subscriptions = Array.from(
      { length: 14 },
      (_, n): Subscription => ({ source: "index", indexId: `${n}` }),
    );
    const asked: unknown[] = [];
    const isQuiet = async (subscription: Subscription) => asked.push(subscription) < 0;
    const feed = await followSubscribed({}, { isQuiet, subscriptions });
    const { clock, server } = feed;
    const served: unknown[] = [];
    server.manners.answer = (peer, message) => {
      if (!isSubscribe(message)) return false;
      clock.after(8_000, () => {
        served.push(message.indexId);
        answer(peer, message);
      });
      return true;
    };
    server.peer.socket.terminate();
    await feed.elapseUntil(() => feed.of("connected").length === 2, 10_000);
    for (let second = 0; second < 150; second += 5) {
      for (const indexId of served) server.peer.say("INDEX_TICKER", { indexType: "GWA", indexId });
      await clock.advance(5_000);
    }
    expect(served).toHaveLength(14);
    expect(asked).toEqual([]);
    expect(feed.of("unconfirmed")).toEqual([]);
    // The turn has come and gone without a tick: now it counts.
    await feed.elapseUntil(() => asked.length > 0, 90_000);
  });

  it("are looked after again when REST has left a question unanswered", async () => {
    let asked = 0;
    const feed = await silent(() => (++asked === 1 ? new Promise(() => {}) : Promise.resolve(false)));
    await feed.elapseUntil(() => asked === 2, 200_000);
    await feed.elapseUntil(() => feed.server.peer.asked("SUBSCRIBE_INDEX_TICKER").length === 2, 1_000);
  });

  it("bring nothing down while REST cannot say", async () => {
    const feed = await silent(async () => {
      throw new Error("no answer");
    });
    await feed.clock.advance(600_000);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
  });
});

describe("E17: ticks that nobody asked for", () => {
  it("are handed on like any other", async () => {
    const feed = await followSubscribed();
    feed.server.peer.say("EXCHANGE_TICKER", { exchangeId: "other", marketId: "m" });
    feed.server.peer.say("SUBSCRIBED_EXCHANGE_TICKER", { exchangeId: "other" });
    feed.server.peer.say("UNSUBSCRIBED_INDEX_TICKER", { indexType: "LX" });
    await feed.until(() => feed.ticks.length === 1 && feed.of("unknown").length === 1);
    expect(feed.of("unknown")[0]).toMatchObject({ event: "UNSUBSCRIBED_INDEX_TICKER" });
  });
});
