import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { agentFor, feedAddress, stayMs } from "../../../src/service/live/feed.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import { Following, follow, followSubscribed, gwa, lx } from "../../support/service/feed-harness.ts";
import { grantWell, json, startStub } from "../../support/service/stub-service.ts";
import { FeedServer } from "../../support/service/websocket-server.ts";

const HOUR = 3_600_000;
const say = (feed: Awaited<ReturnType<typeof follow>>, peer: number) =>
  feed.server.peers[peer]?.say("INDEX_TICKER", { indexType: "GWA", indexId: "btc" });

describe("E14: a connection that outlives its token", () => {
  it("is replaced before the token's last hour, without a gap: the old one stays until the new one is subscribed", async () => {
    const held: (() => void)[] = [];
    const feed = await followSubscribed(
      {
        answer: (peer, { event, requestId }) => {
          if (peer.token?.endsWith("-1") || event !== "SUBSCRIBE_INDEX_TICKER") return false;
          held.push(() => peer.say("SUBSCRIBED_INDEX_TICKER", { requestId }));
          return true;
        },
      },
      { subscriptions: [gwa, lx], tokenLifeMs: 3 * HOUR },
    );
    await feed.clock.advance(1.9 * HOUR);
    expect(feed.server.upgrades).toBe(1);
    await feed.elapseUntil(() => held.length === 1, 0.3 * HOUR);
    expect(feed.server.peers[0]?.isClosed).toBe(false);
    say(feed, 0);
    say(feed, 1);
    await feed.until(() => feed.ticks.length === 2);
    held[0]?.();
    await feed.until(() => held.length === 2);
    expect(feed.server.peers[0]?.isClosed).toBe(false);
    held[1]?.();
    await feed.until(() => feed.server.peers[0]?.isClosed === true);
    say(feed, 1);
    await feed.until(() => feed.ticks.length === 3);
    expect(feed.kinds.filter((kind) => kind !== "update")).toEqual([
      "connected",
      "subscribed",
      "subscribed",
      "swapped",
    ]);
    expect(feed.server.peers.map(({ token }) => token)).toEqual(["canary+/=&?#%-1", "canary+/=&?#%-2"]);
  });

  it("goes on when its successor fails, which is tried again", async () => {
    let isRefusing = false;
    const refuse = () => (isRefusing ? { status: 503 } : undefined);
    const feed = await followSubscribed({ refuse }, { tokenLifeMs: 3 * HOUR });
    isRefusing = true;
    await feed.clock.advance(2.5 * HOUR);
    expect(feed.server.upgrades).toBeGreaterThan(3);
    expect(feed.server.upgrades).toBeLessThan(20);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
    expect(feed.server.peers[0]?.isClosed).toBe(false);
    isRefusing = false;
    await feed.elapseUntil(() => feed.of("swapped").length === 1, HOUR);
  });

  it("comes back with a living token after a stay that was longer than a token's life", async () => {
    const feed = await followSubscribed({}, { tokenLifeMs: 3 * HOUR });
    await feed.clock.advance(5 * HOUR);
    expect(feed.of("swapped").length).toBe(2);
    expect(feed.of("disconnected")).toEqual([]);
    feed.server.peer.socket.terminate();
    await feed.elapseUntil(() => feed.of("connected").length === 2, 5_000);
    expect(feed.server.peer.token).toBe("canary+/=&?#%-3");
  });

  it("stays for ten minutes at least, even if tokens live for one", () => {
    const token = { text: "", scopes: undefined, issuedAt: 0, endsAt: 60_000 };
    expect(stayMs(token, 0, 0)).toBe(600_000);
    expect(stayMs({ ...token, endsAt: 24 * HOUR }, 0, 0)).toBe(23 * HOUR);
    expect(stayMs({ ...token, endsAt: 24 * HOUR }, 0, 1)).toBe(23 * HOUR - 300_000);
  });
});

describe("E15: a token of awkward characters", () => {
  it("arrives as it is, and is known to have worked", async () => {
    const feed = await followSubscribed();
    expect(feed.server.peer.token).toBe("canary+/=&?#%-1");
    expect(feed.tokens.accepts).toBe(1);
  });

  it("is in no message, log, or observation, even where the service repeats it", async () => {
    const feed = await followSubscribed();
    const { peer } = feed.server;
    peer.say("ERROR", { code: "500", message: `bad token ${peer.token}` });
    peer.say(`EVENT ${peer.token}`, { url: `?access_token=${encodeURIComponent(peer.token ?? "")}` });
    peer.socket.send(`nonsense ${peer.token}`);
    await feed.until(() => feed.of("unknown").length === 2);
    peer.socket.close(4000, `${peer.token}`);
    await feed.elapseUntil(() => feed.of("connected").length === 2, 5_000);
    const everything = JSON.stringify([feed.messages, feed.logged, feed.observations]);
    expect(everything).toContain("[secret]");
    expect(everything).not.toContain("canary");
  });

  it("joins whatever query the address has", () => {
    const dialled = new URL(feedAddress(new URL("wss://feed.example/v3?region=eu#x"), "a+b&c"));
    expect(Object.fromEntries(dialled.searchParams)).toEqual({ region: "eu", access_token: "a+b&c" });
    expect(dialled.hash).toBe("");
  });

  it("does not show itself to a proxy", async () => {
    const asked: string[] = [];
    const proxy = createServer();
    proxy.on("connect", (request, socket) => {
      asked.push(`${request.url} ${JSON.stringify(request.headers)}`);
      socket.end("HTTP/1.1 502 No\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    process.env.HTTPS_PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const feed = await follow({}, { wsUrl: "wss://feed.invalid/v3" });
      await feed.until(() => feed.of("retrying").length === 1);
      expect(asked).toHaveLength(1);
      expect(asked[0]).toMatch(/^feed\.invalid:443 /);
      expect(JSON.stringify([asked, feed.messages])).not.toContain("canary");
    } finally {
      delete process.env.HTTPS_PROXY;
      proxy.close();
    }
  });

  it("goes to this machine without a proxy", () => {
    const env = { HTTPS_PROXY: "http://proxy.example:3128" };
    expect(agentFor(new URL("wss://localhost:1/"), env)).toBeUndefined();
    expect(agentFor(new URL("wss://feed.example/"), {})).toBeUndefined();
    expect(agentFor(new URL("wss://feed.example/"), env)).toBeDefined();
  });
});

describe("tokens that cannot be had", () => {
  it("keep the feed waiting, and the reader knowing why", async () => {
    const feed = await follow(
      {},
      {
        tokens: {
          get: async () => {
            throw new Failure("the credentials were refused", {
              family: "operator",
              code: "credentials_rejected",
            });
          },
          renew: async () => Promise.reject(new Error("never asked")),
          refused: () => {},
          accepted: () => {},
          onHealed: () => () => {},
        },
      },
    );
    await feed.clock.advance(3 * HOUR);
    expect(feed.server.upgrades).toBe(0);
    expect(feed.of("retrying").length).toBeLessThan(20);
    expect(feed.of("retrying")[0]).toMatchObject({ reason: "credentials_rejected", attempt: 1 });
  });

  it("are had again by the feed as soon as REST has some, however long it meant to wait", async () => {
    const clock = new TurnedClock();
    let secret = "the-old-one";
    const stub = await startStub({
      clock,
      grant: (request, response, count) =>
        request.body.client_secret === "the-new-one"
          ? grantWell(request, response, count)
          : json(response, {}, 401),
    });
    onTestFinished(() => stub.stop());
    const { client } = clientOf(stub.baseUrl, clock, { readSecret: async () => secret });
    const feed = new Following(await FeedServer.start(), clock, { tokens: client.tokens });
    onTestFinished(() => feed.stop());
    await expect(clock.runUntil(client.request({ endpoint: "/asset" }, readPage))).rejects.toThrow("refused");
    await clock.runUntil(clock.sleep(5 * HOUR));
    expect(feed.of("retrying").at(-1)?.inMs).toBeGreaterThan(0.2 * HOUR);
    secret = "the-new-one";
    const before = clock.monotonic();
    await clock.runUntil(client.request({ endpoint: "/asset" }, readPage));
    await feed.until(() => feed.of("subscribed").length === 1);
    expect(clock.monotonic()).toBe(before);
  });
});

describe("E18: how connections end", () => {
  it.each([
    [1000, "closed_1000"],
    [1001, "closed_1001"],
    [1011, "closed_1011"],
    [4000, "closed_4000"],
  ])("close code %i leads to a new attempt soon, with the same token", async (code, reason) => {
    const feed = await followSubscribed();
    feed.server.peer.socket.close(code);
    await feed.until(() => feed.of("disconnected").length === 1);
    expect(feed.of("disconnected")[0]?.reason).toBe(reason);
    await feed.elapseUntil(() => feed.of("connected").length === 2, 2_000);
    expect(feed.tokens.granted).toBe(1);
  });

  it.each([1008, 4401])("close code %i before the greeting speaks of the token", async (code) => {
    const feed = await follow({
      greet: (peer) => (peer.token?.endsWith("1") ? peer.socket.close(code) : peer.say("CONNECTED")),
    });
    await feed.elapseUntil(() => feed.of("connected").length === 1, 5_000);
    expect(feed.tokens.granted).toBe(2);
  });

  it("close code 1008 afterwards is no matter of moments", async () => {
    const feed = await followSubscribed();
    feed.server.peer.socket.close(1008);
    await feed.until(() => feed.of("disconnected").length === 1);
    expect(feed.tokens.granted).toBe(1);
    expect(await feed.elapseUntil(() => feed.of("connected").length === 2)).toBeGreaterThan(60_000);
  });

  it("close code 1008 after a long outage waits no longer than the first one does", async () => {
    const feed = await follow({ refuse: (upgrades) => (upgrades <= 12 ? { status: 503 } : undefined) });
    await feed.elapseUntil(() => feed.of("subscribed").length === 1);
    feed.server.peer.socket.close(1008);
    await feed.until(() => feed.of("disconnected").length === 1);
    expect(await feed.elapseUntil(() => feed.of("connected").length === 2)).toBeLessThan(125_000);
  });

  it("401 on the upgrade earns one new token", async () => {
    const feed = await follow({ refuse: (upgrades) => (upgrades === 1 ? { status: 401 } : undefined) });
    await feed.elapseUntil(() => feed.of("subscribed").length === 1, 5_000);
    expect(feed.of("retrying")).toMatchObject([{ reason: "http_401", attempt: 1 }]);
    expect(feed.tokens.granted).toBe(2);
  });

  it.each([
    ["seconds", { "Retry-After": "120" }, 120_000],
    [
      "a date",
      { "Retry-After": "Sun, 01 Mar 2026 09:01:40 GMT", Date: "Sun, 01 Mar 2026 09:00:00 GMT" },
      100_000,
    ],
    ["nonsense", { "Retry-After": "-1e9" }, 0],
    ["a year", { "Retry-After": "31536000" }, 900_000],
  ])("429 is waited out: Retry-After with %s", async (_, headers, least) => {
    const feed = await follow({
      refuse: (upgrades) => (upgrades === 1 ? { status: 429, headers } : undefined),
    });
    await feed.elapseUntil(() => feed.of("connected").length === 1);
    const [retry] = feed.of("retrying");
    expect(retry?.reason).toBe("http_429");
    expect(retry?.inMs).toBeGreaterThanOrEqual(least);
    expect(retry?.inMs).toBeLessThanOrEqual(least + 1_000);
  });

  it.each([403, 404, 307])("%i on the upgrade is asked again ever more rarely", async (status) => {
    const feed = await follow({ refuse: () => ({ status, headers: { Location: "ws://127.0.0.1:1/" } }) });
    await feed.clock.advance(6 * HOUR);
    expect(feed.server.upgrades).toBeGreaterThan(4);
    expect(feed.server.upgrades).toBeLessThan(30);
    expect(feed.of("retrying")[0]?.reason).toBe(`http_${status}`);
    expect(feed.tokens.granted).toBe(1);
  });

  it("a port that nobody listens on is an ordinary failure", async () => {
    const feed = await follow({}, { wsUrl: "ws://127.0.0.1:9/feed" });
    await feed.until(() => feed.of("retrying").length === 1);
    expect(feed.of("retrying")[0]?.reason).toBe("econnrefused");
  });
});
