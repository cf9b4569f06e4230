import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { requestPriority } from "../../../src/service/http/request.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient, readPage } from "../../support/service/client-harness.ts";
import {
  type StubService,
  sendGzip,
  sendJson,
  startStubService,
} from "../../support/service/stub-service.ts";

const minute = 60_000;
let clock: ManualClock;
let stub: StubService | undefined;
beforeEach(() => {
  clock = new ManualClock();
});
afterEach(async () => stub?.stop());

describe("an endpoint that fails", () => {
  it("H8: a dead endpoint delays no request to the others, and is probed until it works again", async () => {
    let isDead = true;
    stub = await startStubService({
      clock,
      respond: ({ path }, response) =>
        isDead && path.endsWith("/market-cap")
          ? sendJson(response, {}, 500)
          : sendGzip(response, { content: [] }),
    });
    const { client } = createTestClient(stub.baseUrl, clock);
    let isOver = false;
    const waits: number[] = [];
    const pollAsset = async () => {
      while (!isOver) {
        const startedAt = clock.monotonic();
        await client.request({ endpoint: "/asset" }, readPage);
        waits.push(clock.monotonic() - startedAt);
        await clock.sleep(10_000);
      }
    };
    const codes = new Set<string>();
    const pollMarketCap = async () => {
      while (!isOver) {
        await client
          .request({ endpoint: "/market-cap" }, readPage)
          .then(() => codes.add("ok"))
          .catch((error: { code: string }) => codes.add(error.code));
        await clock.sleep(30_000);
      }
    };
    const polls = [pollAsset(), pollMarketCap(), pollMarketCap()];
    await clock.runUntil(clock.sleep(20 * minute));
    expect(codes).toEqual(new Set(["server_failure", "endpoint_failing"]));
    expect(Math.max(...waits)).toBe(0);
    expect(client.health().condition.open_breakers).toEqual(["/market-cap"]);
    const requests = stub.requests.filter(({ path }) => path.endsWith("/market-cap")).length;
    expect(requests).toBeGreaterThan(20);
    expect(requests).toBeLessThan(90);
    isDead = false;
    await clock.runUntil(clock.sleep(3 * minute));
    expect(codes).toContain("ok");
    expect(client.health().condition.open_breakers).toEqual([]);
    isOver = true;
    await clock.runUntil(Promise.all(polls));
  });

  it("H8: nothing is down if something answers while a probe asks", async () => {
    const delays: Record<string, number> = { "market-cap": 30, asset: 300, "exchange-ticker": 600 };
    let isFailing = false;
    stub = await startStubService({
      clock,
      respond: async ({ path }, response) => {
        const endpoint = path.split("/").at(-1) ?? "";
        const release = clock.beginWait();
        await clock.sleep(delays[endpoint] ?? 0);
        release();
        if (isFailing && endpoint !== "asset") sendJson(response, {}, 503);
        else sendGzip(response, { content: [] });
      },
    });
    const { client } = createTestClient(stub.baseUrl, clock);
    const ask = (endpoint: string) =>
      client.request({ endpoint, priority: requestPriority.snapshot, maxAttempts: 1 }, readPage);
    for (let at = 0; at < 100; at++) await clock.runUntil(ask("/market-cap"));
    for (const endpoint of ["/asset", "/exchange-ticker"]) await clock.runUntil(ask(endpoint));
    isFailing = true;
    const answered = ask("/asset");
    const failed = [1, 2, 3, 4].map(() => ask("/market-cap").catch(() => {}));
    await clock.runUntil(clock.sleep(200));
    expect(client.isDown()).toBe(true);
    await clock.runUntil(clock.sleep(800));
    expect(client.isDown()).toBe(false);
    isFailing = false;
    await clock.runUntil(Promise.all([answered, ...failed]));
  });

  it("H8: an endpoint that few callers request is dead after little more than a minute", async () => {
    stub = await startStubService({
      clock,
      respond: ({ path }, response) =>
        path.endsWith("/asset") ? sendGzip(response, { content: [] }) : sendJson(response, {}, 500),
    });
    const { client } = createTestClient(stub.baseUrl, clock);
    await clock.runUntil(client.request({ endpoint: "/asset" }, readPage));
    const requestUntilDead = async () => {
      for (;;) {
        const code = await client
          .request({ endpoint: "/market-cap" }, readPage)
          .then(() => "ok")
          .catch((error: { code: string }) => error.code);
        if (code === "endpoint_failing") return;
      }
    };
    await clock.runUntil(Promise.all([requestUntilDead(), requestUntilDead()]));
    expect(clock.monotonic()).toBeGreaterThanOrEqual(minute);
    expect(clock.monotonic()).toBeLessThan(1.4 * minute);
  });

  it("B1: 503 with Retry-After pauses its endpoint alone", async () => {
    stub = await startStubService({
      clock,
      respond: ({ path }, response, count) => {
        if (!path.endsWith("/ohlcv") || count > 1) return sendGzip(response, { content: [] });
        response.setHeader("retry-after", "60");
        sendJson(response, {}, 503);
      },
    });
    const { client } = createTestClient(stub.baseUrl, clock);
    const bars = client.request({ endpoint: "/ohlcv" }, readPage);
    await clock.advance(1_000);
    await client.request({ endpoint: "/asset" }, readPage);
    expect(clock.monotonic()).toBe(1_000);
    await clock.runUntil(bars);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(minute);
  });
});

it("B3: bare 429s for three of ten seconds starve neither heads nor snapshots nor history", async () => {
  stub = await startStubService({
    clock,
    respond: (_, response) =>
      clock.monotonic() % 10_000 < 3_000 ? sendJson(response, {}, 429) : sendGzip(response, { content: [] }),
  });
  const { client } = createTestClient(stub.baseUrl, clock);
  const stop = new AbortController();
  const { signal } = stop;
  const answered = new Map<number, number[]>();
  const poll = async (priority: keyof typeof requestPriority, everyMs: number) => {
    const times: number[] = [0];
    answered.set(requestPriority[priority], times);
    while (!signal.aborted) {
      const request = { endpoint: "/asset", priority: requestPriority[priority], signal };
      await client.request(request, readPage).then(
        () => times.push(clock.monotonic()),
        () => {},
      );
      await clock.sleep(everyMs, signal).catch(() => {});
    }
  };
  const history = Array.from({ length: 6 }, () => poll("history", 500));
  const polls = [...history, poll("head", 3_000), poll("snapshot", 5_000)];
  await clock.runUntil(clock.sleep(2 * minute));
  stop.abort();
  await clock.runUntil(Promise.all(polls));
  const longestWait = (times: readonly number[] = []) =>
    Math.max(...times.map((at, n) => at - (times[n - 1] ?? 0)));
  expect(longestWait(answered.get(requestPriority.head))).toBeLessThanOrEqual(20_000);
  expect(longestWait(answered.get(requestPriority.snapshot))).toBeLessThanOrEqual(20_000);
  // Of the last of six loops: at most 168 would be possible.
  expect(answered.get(requestPriority.history)?.length).toBeGreaterThan(100);
});
