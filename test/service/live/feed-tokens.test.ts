import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import type { RecoveryBell } from "../../../src/service/http/client-events.ts";
import { buildFeedUrl } from "../../../src/service/live/connection.ts";
import { connectionLifetimeMs, createProxyAgent } from "../../../src/service/live/feed.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { startServedClient } from "../../support/service/client-harness.ts";
import { FeedHarness, gwa, lx, startFeed, startSubscribedFeed } from "../../support/service/feed-harness.ts";
import {
  type Json,
  type ServerConnection,
  WebSocketTestServer,
} from "../../support/service/websocket-server.ts";

const HOUR = 3_600_000;
const sendTick = (feed: Awaited<ReturnType<typeof startFeed>>, connection: number) =>
  feed.server.connections[connection]?.sendEvent("INDEX_TICKER", { indexType: "GWA", indexId: "btc" });

describe("E14: a connection that outlives its token", () => {
  it("is replaced before the token's last hour; the old one stays until the new one is subscribed", async () => {
    const pendingAnswers: (() => void)[] = [];
    const feed = await startSubscribedFeed(
      {
        handleMessage: (connection, { event, requestId }) => {
          if (connection.token?.endsWith("-1") || event !== "SUBSCRIBE_INDEX_TICKER") return false;
          pendingAnswers.push(() => connection.sendEvent("SUBSCRIBED_INDEX_TICKER", { requestId }));
          return true;
        },
      },
      { subscriptions: [gwa, lx], tokenLifetimeMs: 3 * HOUR },
    );
    await feed.clock.advance(1.9 * HOUR);
    expect(feed.server.upgrades).toBe(1);
    await feed.advanceUntil(() => pendingAnswers.length === 1, 0.3 * HOUR);
    expect(feed.server.connections[0]?.isClosed).toBe(false);
    sendTick(feed, 0);
    sendTick(feed, 1);
    await feed.waitUntil(() => feed.ticks.length === 2);
    pendingAnswers[0]?.();
    await feed.waitUntil(() => pendingAnswers.length === 2);
    expect(feed.server.connections[0]?.isClosed).toBe(false);
    pendingAnswers[1]?.();
    await feed.waitUntil(() => feed.server.connections[0]?.isClosed === true);
    sendTick(feed, 1);
    await feed.waitUntil(() => feed.ticks.length === 3);
    expect(feed.kinds.filter((kind) => kind !== "update")).toEqual([
      "connected",
      "subscribed",
      "subscribed",
      "swapped",
    ]);
    expect(feed.server.connections.map(({ token }) => token)).toEqual(["canary+/=&?#%-1", "canary+/=&?#%-2"]);
  });

  it("stays open when its successor fails, and the swap is retried", async () => {
    let isRefusing = false;
    const refuse = () => (isRefusing ? { status: 503 } : undefined);
    const feed = await startSubscribedFeed({ rejectUpgrade: refuse }, { tokenLifetimeMs: 3 * HOUR });
    isRefusing = true;
    await feed.clock.advance(2.5 * HOUR);
    expect(feed.server.upgrades).toBeGreaterThan(3);
    expect(feed.server.upgrades).toBeLessThan(20);
    expect(feed.kinds).toEqual(["connected", "subscribed"]);
    expect(feed.server.connections[0]?.isClosed).toBe(false);
    isRefusing = false;
    await feed.advanceUntil(() => feed.count("swapped") === 1, HOUR);
  });

  it("E5: a subscription that its successor is refused once is asked for again, not parked", async () => {
    let [isSwapping, refusals] = [false, 0];
    const handleMessage = (connection: ServerConnection, { event }: Json) => {
      if (!isSwapping || event !== "SUBSCRIBE_INDEX_TICKER" || refusals > 0) return false;
      refusals++;
      connection.sendEvent("ERROR", { code: "404", message: "not yet" });
      return true;
    };
    const feed = await startSubscribedFeed({ handleMessage }, { tokenLifetimeMs: 3 * HOUR });
    isSwapping = true;
    await feed.advanceUntil(() => feed.count("swapped") === 1, 3 * HOUR);
    expect([refusals, feed.messagesOf("parked")]).toEqual([1, []]);
  });

  it("reconnects with a valid token after it outlived several tokens", async () => {
    const feed = await startSubscribedFeed({}, { tokenLifetimeMs: 3 * HOUR });
    await feed.clock.advance(5 * HOUR);
    expect(feed.count("swapped")).toBe(2);
    expect(feed.messagesOf("disconnected")).toEqual([]);
    feed.connection.socket.terminate();
    await feed.advanceUntil(() => feed.count("connected") === 2, 5_000);
    expect(feed.connection.token).toBe("canary+/=&?#%-3");
  });

  it("lives for at least ten minutes, even if tokens live for one", () => {
    const token = { text: "", scopes: undefined, firstSeenAt: 0, expiresAt: 60_000 };
    expect(connectionLifetimeMs(token, 0, 0)).toBe(600_000);
    expect(connectionLifetimeMs({ ...token, expiresAt: 24 * HOUR }, 0, 0)).toBe(23 * HOUR);
    expect(connectionLifetimeMs({ ...token, expiresAt: 24 * HOUR }, 0, 1)).toBe(23 * HOUR - 300_000);
  });
});

describe("E15: a token with special characters", () => {
  it("arrives unchanged and is reported as accepted", async () => {
    const feed = await startSubscribedFeed();
    expect(feed.connection.token).toBe("canary+/=&?#%-1");
    expect(feed.tokens.acceptedCount).toBe(1);
  });

  it("appears in no message, log or event, even if the service repeats it", async () => {
    const feed = await startSubscribedFeed();
    const { lastConnection: connection } = feed.server;
    connection.sendEvent("ERROR", { code: "500", message: `bad token ${connection.token}` });
    connection.sendEvent(`EVENT ${connection.token}`, {
      url: `?access_token=${encodeURIComponent(connection.token ?? "")}`,
    });
    connection.socket.send(`nonsense ${connection.token}`);
    await feed.waitUntil(() => feed.unknown.length === 2);
    connection.socket.close(4000, `${connection.token}`);
    await feed.advanceUntil(() => feed.count("connected") === 2, 5_000);
    const everything = JSON.stringify([feed.messages, feed.unknown, feed.logLines, feed.events]);
    expect(everything).toContain("[secret]");
    expect(everything).not.toContain("canary");
  });

  it("is added to the query of the URL", () => {
    const url = new URL(buildFeedUrl(new URL("wss://feed.example/v3?region=eu#x"), "a+b&c"));
    expect(Object.fromEntries(url.searchParams)).toEqual({ region: "eu", access_token: "a+b&c" });
    expect(url.hash).toBe("");
  });

  it("is not visible to a proxy", async () => {
    const connectRequests: string[] = [];
    const proxy = createServer();
    proxy.on("connect", (request, socket) => {
      connectRequests.push(`${request.url} ${JSON.stringify(request.headers)}`);
      socket.end("HTTP/1.1 502 No\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    process.env.HTTPS_PROXY = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    try {
      const feed = await startFeed({}, { wsUrl: "wss://feed.invalid/v3" });
      await feed.waitUntil(() => feed.count("retrying") === 1);
      expect(connectRequests).toHaveLength(1);
      expect(connectRequests[0]).toMatch(/^feed\.invalid:443 /);
      expect(JSON.stringify([connectRequests, feed.messages])).not.toContain("canary");
    } finally {
      delete process.env.HTTPS_PROXY;
      proxy.close();
    }
  });

  it("is sent to loopback addresses without a proxy", () => {
    const env = { HTTPS_PROXY: "http://proxy.example:3128" };
    expect(createProxyAgent(new URL("wss://localhost:1/"), env)).toBeUndefined();
    expect(createProxyAgent(new URL("wss://feed.example/"), {})).toBeUndefined();
    expect(createProxyAgent(new URL("wss://feed.example/"), env)).toBeDefined();
  });
});

describe("without a token", () => {
  it("the feed waits and reports why", async () => {
    const refused = new Failure("the credentials were refused", { code: "credentials_rejected" });
    const tokens = {
      get: () => Promise.reject(refused),
      refresh: () => Promise.reject(new Error("unexpected refresh")),
      reportRejected: () => {},
      reportAccepted: () => {},
    };
    const feed = await startFeed({}, { tokens });
    await feed.clock.advance(3 * HOUR);
    expect(feed.server.upgrades).toBe(0);
    expect(feed.count("retrying")).toBeLessThan(20);
    expect(feed.messagesOf("retrying")[0]).toMatchObject({ reason: "credentials_rejected", attempt: 1 });
  });

  it("the feed cuts its wait short as soon as REST has a token", async () => {
    const clock = new ManualClock();
    let secret = "the-old-one";
    const { client, send } = await startServedClient(
      { respondToTokenRequest: ({ body }) => (body.client_secret === "the-new-one" ? 200 : 401) },
      { readSecret: async () => secret },
      clock,
    );
    const server = await WebSocketTestServer.start();
    const feed = new FeedHarness(server, clock, { tokens: client.tokensOf(server.url), bell: client.bell });
    onTestFinished(() => feed.stop());
    await expect(send({ endpoint: "/asset" })).rejects.toThrow("rejected");
    await clock.runUntil(clock.sleep(5 * HOUR));
    expect(feed.messagesOf("retrying").at(-1)?.inMs).toBeGreaterThan(0.2 * HOUR);
    secret = "the-new-one";
    const before = clock.monotonic();
    await send({ endpoint: "/asset" });
    await feed.waitUntil(() => feed.count("subscribed") === 1);
    expect(clock.monotonic()).toBe(before);
  });
});

describe("E18: how connections close", () => {
  it.each([
    [1000, "closed_1000"],
    [1001, "closed_1001"],
    [1011, "closed_1011"],
    [4000, "closed_4000"],
  ])("close code %i leads to a quick reconnect with the same token", async (code, reason) => {
    const feed = await startSubscribedFeed();
    feed.connection.socket.close(code);
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    expect(feed.messagesOf("disconnected")[0]?.reason).toBe(reason);
    await feed.advanceUntil(() => feed.count("connected") === 2, 2_000);
    expect(feed.tokens.issuedCount).toBe(1);
  });

  it.each([1008, 4401])("close code %i before CONNECTED means a rejected token", async (code) => {
    const feed = await startFeed({
      greet: (connection) =>
        connection.token?.endsWith("1") ? connection.socket.close(code) : connection.sendEvent("CONNECTED"),
    });
    await feed.advanceUntil(() => feed.count("connected") === 1, 5_000);
    expect(feed.tokens.issuedCount).toBe(2);
  });

  it("close code 1008 after CONNECTED leads to a slow reconnect", async () => {
    const feed = await startSubscribedFeed();
    feed.connection.socket.close(1008);
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    expect(feed.tokens.issuedCount).toBe(1);
    expect(await feed.advanceUntil(() => feed.count("connected") === 2)).toBeGreaterThan(60_000);
  });

  it("close code 1008 after a long outage waits like the first one", async () => {
    const feed = await startFeed({
      rejectUpgrade: (upgrades) => (upgrades <= 12 ? { status: 503 } : undefined),
    });
    await feed.advanceUntil(() => feed.count("subscribed") === 1);
    feed.connection.socket.close(1008);
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    expect(await feed.advanceUntil(() => feed.count("connected") === 2)).toBeLessThan(125_000);
  });

  it("401 on the upgrade leads to one new token, and shows REST that the service answers", async () => {
    const bell: RecoveryBell = new EventEmitter();
    let rings = 0;
    bell.on("ring", () => void rings++);
    const rejectUpgrade = (upgrades: number) => (upgrades === 1 ? { status: 401 } : undefined);
    const feed = await startFeed({ rejectUpgrade }, { bell });
    await feed.advanceUntil(() => feed.count("subscribed") === 1, 5_000);
    expect(feed.messagesOf("retrying")).toMatchObject([{ reason: "http_401", attempt: 1 }]);
    // The rejection, and CONNECTED.
    expect(rings).toBe(2);
    expect(feed.tokens.issuedCount).toBe(2);
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
  ])("429 respects Retry-After with %s", async (_, headers, minMs) => {
    const feed = await startFeed({
      rejectUpgrade: (upgrades) => (upgrades === 1 ? { status: 429, headers } : undefined),
    });
    await feed.advanceUntil(() => feed.count("connected") === 1);
    const [retry] = feed.messagesOf("retrying");
    expect(retry?.reason).toBe("http_429");
    expect(retry?.inMs).toBeGreaterThanOrEqual(minMs);
    expect(retry?.inMs).toBeLessThanOrEqual(minMs + 1_000);
  });

  it("an upgrade without an answer is sent again as soon as something of the service answers", async () => {
    const bell: RecoveryBell = new EventEmitter();
    const feed = await startFeed({ stallsUpgrade: (upgrades) => upgrades === 1 }, { bell });
    await feed.waitUntil(() => feed.server.upgrades === 1);
    bell.emit("ring");
    await feed.advanceUntil(() => feed.count("connected") === 1, 100);
    expect(feed.server.upgrades).toBe(2);
  });

  it("503 with Retry-After while REST fails: the bell counts, but not before that time", async () => {
    const bell: RecoveryBell = new EventEmitter();
    const headers = { "Retry-After": "5" };
    const feed = await startFeed(
      { rejectUpgrade: (upgrades) => (upgrades <= 2 ? { status: 503, headers } : undefined) },
      { bell, isDown: () => true, waitForTurn: (signal) => once(signal, "abort", { signal }).then(() => {}) },
    );
    await feed.waitUntil(() => feed.count("retrying") === 1);
    bell.emit("ring");
    expect(await feed.advanceUntil(() => feed.server.upgrades === 2, 10_000)).toBeGreaterThanOrEqual(5_000);
    await feed.clock.advance(10_000);
    expect(feed.server.upgrades).toBe(2);
    bell.emit("ring");
    await feed.advanceUntil(() => feed.count("connected") === 1, 1_000);
  });

  it.each([403, 404, 307])("%i on the upgrade is retried with growing delays", async (status) => {
    const feed = await startFeed({
      rejectUpgrade: () => ({ status, headers: { Location: "ws://127.0.0.1:1/" } }),
    });
    await feed.clock.advance(6 * HOUR);
    expect(feed.server.upgrades).toBeGreaterThan(4);
    expect(feed.server.upgrades).toBeLessThan(30);
    expect(feed.messagesOf("retrying")[0]?.reason).toBe(`http_${status}`);
    expect(feed.tokens.issuedCount).toBe(1);
  });
});
