import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { requestPriority } from "../../../src/service/http/request.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { hang, pause, reply } from "../../support/service/stub-service.ts";

const asset = { endpoint: "/asset" };
const times = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n));

/** A server that counts its concurrent requests and answers each after a second. */
async function startSlowService(concurrency: number, answer: (response: ServerResponse) => void = reply) {
  let current = 0;
  const load = { max: 0 };
  const served = await startServedClient(
    {
      respond: async (_, response) => {
        load.max = Math.max(load.max, ++current);
        await pause(served.clock, 1_000);
        current--;
        answer(response);
      },
    },
    { concurrency },
  );
  return { load, ...served };
}

describe("bulkhead", () => {
  it("raises the limit with successes, up to the configured maximum", async () => {
    const limits = new Set<number>();
    const { load, client, clock } = await startSlowService(5, (response) => {
      limits.add(client.health().condition.concurrency);
      reply(response);
    });
    await clock.runUntil(Promise.all(times(60, () => client.request(asset, readPage))));
    expect(load.max).toBe(5);
    expect([...limits]).toEqual([2, 3, 4, 5]);
  });

  it("B12: lowers the limit after timeouts, never below one, and raises it again", async () => {
    let isHanging = false;
    const { client, clock } = await startSlowService(8, (response) =>
      isHanging ? hang(clock, response) : reply(response),
    );
    const limit = () => client.health().condition.concurrency;
    const request = { ...asset, maxAttempts: 1 };
    const many = (count: number) =>
      clock.runUntil(Promise.allSettled(times(count, () => client.request(request, readPage))));
    await many(60);
    expect(limit()).toBe(8);
    isHanging = true;
    await many(16);
    expect(limit()).toBeLessThan(8);
    isHanging = false;
    await many(400);
    expect(limit()).toBeGreaterThan(2);
  });

  it("B15: reserves a slot for polls after slow history pages delayed one, as long as polls keep coming", async () => {
    const inFlight = new Map<string, number>();
    let maxInFlight = 0;
    const { client, clock, stub, pass } = await startServedClient(
      {
        respond: async ({ path }, response) => {
          inFlight.set(path, (inFlight.get(path) ?? 0) + 1);
          maxInFlight = Math.max(maxInFlight, inFlight.get("/v3/ohlcv") ?? 0);
          await pause(clock, 40_000);
          inFlight.set(path, (inFlight.get(path) ?? 0) - 1);
          reply(response);
        },
      },
      { concurrency: 4 },
    );
    const ended = new AbortController();
    const history = { endpoint: "/ohlcv", priority: requestPriority.history, signal: ended.signal };
    const pages = times(200, () => client.request(history, readPage).catch(() => {}));
    await pass(410_000);
    expect(maxInFlight).toBe(4);
    const waits: number[] = [];
    for (let poll = 0; poll < 8; poll++) {
      const queuedAt = clock.monotonic();
      void client.request({ endpoint: "/exchange-ticker", priority: requestPriority.head }, readPage);
      await pass(60_000);
      waits.push((stub.requests.findLast(({ path }) => path === "/v3/exchange-ticker")?.at ?? 0) - queuedAt);
    }
    expect(waits[0]).toBeGreaterThan(2_000);
    // The second poll may have to wait for the first.
    expect(waits.slice(2)).toEqual(Array(6).fill(0));
    // Without polls, history may use every slot again.
    maxInFlight = 0;
    await pass(400_000);
    expect(maxInFlight).toBe(4);
    ended.abort();
    await clock.runUntil(Promise.all(pages));
  });

  it("B15: completes all requests to a server that handles one at a time, 30 seconds each", async () => {
    const waiting: ServerResponse[] = [];
    let busy = false;
    const next = async () => {
      const response = waiting.shift();
      busy = response !== undefined;
      if (!response) return;
      await pause(clock, 30_000);
      if (!response.destroyed) reply(response);
      void next();
    };
    const { client, clock, stub } = await startServedClient({
      respond: (_, response) => {
        hang(clock, response);
        waiting.push(response);
        if (!busy) void next();
      },
    });
    const pages = await clock.runUntil(Promise.all(times(20, () => client.request(asset, readPage))));
    expect(pages).toHaveLength(20);
    expect(stub.requests.length).toBeLessThan(40);
  });

  it("H8: requests that an open breaker holds back take no turn from the others", async () => {
    const { client, clock, stub, send, pass } = await startServedClient(
      { respond: ({ path }) => (path === "/v3/market" ? 500 : 200) },
      { maxRequestsPerSecond: 4 },
    );
    // All wait for the rate when the breaker opens; those left over must not be counted as started.
    const failing = times(200, () =>
      client.request({ endpoint: "/market", maxAttempts: 1, priority: requestPriority.head }, readPage),
    );
    const failed = Promise.allSettled(failing);
    await pass(10_300);
    const sentBefore = stub.requests.length;
    expect(sentBefore).toBeGreaterThanOrEqual(16);
    const startedAt = clock.monotonic();
    await send({ ...asset, priority: requestPriority.head });
    expect(clock.monotonic() - startedAt).toBeLessThan(1_000);
    await clock.runUntil(failed);
  });

  it("C18: orders snapshots first, then heads, then expiring gaps, then history", async () => {
    const { client, clock, stub, send } = await startSlowService(1);
    await send(asset);
    const ask = (name: keyof typeof requestPriority) =>
      client.request({ endpoint: `/${name}`, priority: requestPriority[name] }, readPage);
    const order = ["history", "history", "expiring", "head", "expiring", "head", "snapshot"] as const;
    const first = [client.request({ endpoint: "/first" }, readPage)];
    await clock.advance(0);
    await clock.runUntil(Promise.all([...first, ...order.map(ask)]));
    expect(stub.requests.slice(2).map(({ path }) => path.slice(4))).toEqual([
      "snapshot",
      "head",
      "head",
      "expiring",
      "expiring",
      "history",
      "history",
    ]);
  });

  it("applies the rate limit to polls too", async () => {
    const { client, clock, stub } = await startServedClient({}, { maxRequestsPerSecond: 4 });
    const requests = times(40, (n) => {
      const priority = n % 2 === 0 ? requestPriority.head : requestPriority.history;
      return client.request({ ...asset, priority }, readPage);
    });
    await clock.runUntil(Promise.all(requests));
    const starts = stub.requests.map(({ at }) => at).sort((a, b) => a - b);
    for (const [n, at] of starts.entries()) expect(at).toBeGreaterThanOrEqual(n * 250 - 1);
    expect(starts.at(-1)).toBeLessThan(11_000);
  });

  it("B17: snapshots go before history, even if they use most of the rate, and so do their retries", async () => {
    let rejected = 0;
    const { client, clock, stub, pass } = await startServedClient(
      {
        respond: ({ path }, response) => {
          // Rejects history and a few polls: the retries of history must not spend the budget of the polls.
          const isRejected = path === "/v3/asset" || (path === "/v3/market-cap" && ++rejected % 5 === 0);
          reply(response, isRejected ? 503 : 200);
        },
      },
      { maxRequestsPerSecond: 2 },
    );
    const ended = new AbortController();
    const { signal } = ended;
    const pages = times(30, () => client.request({ ...asset, signal }, readPage).catch(() => {}));
    await pass(5_000);
    const waits: number[] = [];
    const poll = async () => {
      const startedAt = clock.monotonic();
      const request = { endpoint: "/market-cap", priority: requestPriority.snapshot, signal };
      await client.request(request, readPage);
      waits.push(clock.monotonic() - startedAt);
    };
    for (let second = 0; second < 60; second++) {
      const polls = [poll(), poll()];
      await pass(1_000);
      await clock.runUntil(Promise.all(polls));
    }
    ended.abort();
    await clock.runUntil(Promise.all(pages));
    expect(waits).toHaveLength(120);
    expect(Math.max(...waits)).toBeLessThan(10_000);
    const during = stub.requests.filter(({ at }) => at > 6_000);
    const history = during.filter(({ path }) => path === "/v3/asset").length;
    expect(history / during.length).toBeLessThan(0.25);
  });

  it.each(["head", "snapshot"] as const)(
    "leaves every fourth turn to history, however fast a %s falls due",
    async (kind) => {
      const { client, clock, stub, poll } = await startServedClient({}, { maxRequestsPerSecond: 1 });
      const ended = new AbortController();
      const request = { endpoint: "/market", priority: requestPriority[kind] };
      const polls = times(12, () => poll(request, 0, ended.signal));
      const pages = times(12, (n) =>
        client.request(
          { ...asset, priority: n % 2 === 0 ? requestPriority.expiring : requestPriority.history },
          readPage,
        ),
      );
      await clock.runUntil(Promise.all(pages));
      const order = stub.requests.map(({ path }) => (path === "/v3/asset" ? "history" : "poll"));
      const total = order.length;
      ended.abort();
      await clock.runUntil(Promise.all(polls));
      expect(order.filter((each) => each === "history")).toHaveLength(12);
      expect(total).toBeGreaterThanOrEqual(40);
      expect(total).toBeLessThanOrEqual(60);
    },
  );

  it("frees the slot while the caller reads the page", async () => {
    const { client, stub, send } = await startServedClient({}, { concurrency: 1 });
    let finish = () => {};
    const reading = client.request(asset, () => new Promise<void>((resolve) => (finish = resolve)));
    await send(asset);
    expect(stub.requests).toHaveLength(2);
    finish();
    await reading;
  });
});
