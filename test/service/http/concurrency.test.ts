import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { priority } from "../../../src/service/http/request.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import { json, type StubService, startStub, zipped } from "../../support/service/stub-service.ts";

const asset = { endpoint: "/asset" };
let clock: TurnedClock;
let stub: StubService | undefined;
beforeEach(() => {
  clock = new TurnedClock();
});
afterEach(async () => stub?.stop());

/** A server that counts how many requests it has at once, and answers each after a second. */
async function slowServer(answer: (response: ServerResponse, count: number) => void) {
  let current = 0;
  const load = { most: 0 };
  stub = await startStub({
    clock,
    answer: (_, response, count) => {
      const release = clock.waive();
      load.most = Math.max(load.most, ++current);
      clock.after(1_000, () => {
        release();
        current--;
        answer(response, count);
      });
    },
  });
  return { load, stub };
}

describe("request slots", () => {
  it("grow with clean answers up to the ceiling, and no further", async () => {
    const { load, stub } = await slowServer((response) => zipped(response, { content: [] }));
    const { client, observed } = clientOf(stub.baseUrl, clock, { concurrency: 5 });
    await clock.runUntil(Promise.all(Array.from({ length: 60 }, () => client.request(asset, readPage))));
    expect(load.most).toBe(5);
    const limits = observed.flatMap((each) => (each.kind === "concurrency" ? [each.limit] : []));
    expect(limits).toEqual([3, 4, 5]);
  });

  it("halve at 429 and at a timeout, never below one, and grow again", async () => {
    let angry = false;
    const { stub } = await slowServer((response) =>
      angry ? json(response, {}, 429) : zipped(response, { content: [] }),
    );
    const { client, observed } = clientOf(stub.baseUrl, clock, { concurrency: 8 });
    const limit = () => observed.flatMap((each) => (each.kind === "concurrency" ? [each.limit] : [])).at(-1);
    const many = (count: number) =>
      clock.runUntil(
        Promise.allSettled(
          Array.from({ length: count }, () => client.request({ ...asset, attempts: 1 }, readPage)),
        ),
      );
    await many(60);
    expect(limit()).toBe(8);
    angry = true;
    await many(1);
    expect(limit()).toBe(4);
    await many(20);
    expect(limit()).toBe(1);
    angry = false;
    await many(60);
    expect(limit()).toBeGreaterThan(3);
  });

  it("B15: once slow pages of history have kept a poll waiting, one slot is free of them while polls keep coming", async () => {
    const inFlight = new Map<string, number>();
    let most = 0;
    stub = await startStub({
      clock,
      answer: ({ path }, response) => {
        inFlight.set(path, (inFlight.get(path) ?? 0) + 1);
        most = Math.max(most, inFlight.get("/v3/ohlcv") ?? 0);
        const release = clock.waive();
        clock.after(40_000, () => {
          release();
          inFlight.set(path, (inFlight.get(path) ?? 0) - 1);
          zipped(response, { content: [] });
        });
      },
    });
    const { client } = clientOf(stub.baseUrl, clock, { concurrency: 4 });
    const ended = new AbortController();
    const history = { endpoint: "/ohlcv", priority: priority.history, signal: ended.signal };
    const pages = Array.from({ length: 200 }, () => client.request(history, readPage).catch(() => {}));
    const pass = (ms: number) => clock.runUntil(clock.sleep(ms));
    await pass(410_000);
    expect(most).toBe(4);
    const waits: number[] = [];
    for (let poll = 0; poll < 8; poll++) {
      const askedAt = clock.monotonic();
      void client.request({ endpoint: "/exchange-ticker", priority: priority.head }, readPage);
      await pass(60_000);
      waits.push((stub.requests.findLast(({ path }) => path === "/v3/exchange-ticker")?.at ?? 0) - askedAt);
    }
    expect(waits[0]).toBeGreaterThan(2_000);
    // The second may have to wait for the first.
    expect(waits.slice(2)).toEqual(Array(6).fill(0));
    // Without polls, history has every slot again.
    most = 0;
    await pass(400_000);
    expect(most).toBe(4);
    ended.abort();
    await clock.runUntil(Promise.all(pages));
  });

  it("B15: a server that takes one request at a time, 30 seconds each, is still read to the end", async () => {
    const waiting: ServerResponse[] = [];
    let busy = false;
    const next = () => {
      const response = waiting.shift();
      busy = response !== undefined;
      if (!response) return;
      const release = clock.waive();
      clock.after(30_000, () => {
        release();
        if (!response.destroyed) zipped(response, { content: [] });
        next();
      });
    };
    stub = await startStub({
      clock,
      answer: (_, response) => {
        const release = clock.waive();
        response.on("close", release);
        waiting.push(response);
        if (!busy) next();
      },
    });
    const { client } = clientOf(stub.baseUrl, clock);
    const pages = await clock.runUntil(
      Promise.all(Array.from({ length: 20 }, () => client.request(asset, readPage))),
    );
    expect(pages).toHaveLength(20);
    expect(stub.requests.length).toBeLessThan(40);
  });

  it("C18: the head goes first, then what is about to leave the window, then history", async () => {
    const { stub } = await slowServer((response) => zipped(response, { content: [] }));
    const { client } = clientOf(stub.baseUrl, clock, { concurrency: 1 });
    await clock.runUntil(client.request(asset, readPage));
    const ask = (name: keyof typeof priority) =>
      client.request({ endpoint: `/${name}`, priority: priority[name] }, readPage);
    const order = ["history", "history", "expiring", "head", "expiring", "head"] as const;
    const asks = [client.request({ endpoint: "/first" }, readPage)];
    await clock.advance(0);
    await clock.runUntil(Promise.all([...asks, ...order.map(ask)]));
    expect(stub.requests.slice(2).map(({ path }) => path.slice(4))).toEqual([
      "head",
      "head",
      "expiring",
      "expiring",
      "history",
      "history",
    ]);
  });

  it("keep to the configured pace, polls and all", async () => {
    stub = await startStub({ clock });
    const { client } = clientOf(stub.baseUrl, clock, { maxRequestsPerSecond: 4 });
    const ask = (n: number) =>
      client.request({ ...asset, priority: n % 2 === 0 ? priority.head : priority.history }, readPage);
    await clock.runUntil(Promise.all(Array.from({ length: 40 }, (_, n) => ask(n))));
    const times = stub.requests.map(({ at }) => at).sort((a, b) => a - b);
    for (const [n, at] of times.entries()) expect(at).toBeGreaterThanOrEqual(n * 250 - 1);
    expect(times.at(-1)).toBeLessThan(11_000);
  });

  it("leave every fourth turn to history, however fast polls fall due", async () => {
    stub = await startStub({ clock });
    const { client } = clientOf(stub.baseUrl, clock, { maxRequestsPerSecond: 1 });
    const ended = new AbortController();
    const { signal } = ended;
    const pollOn = async () => {
      while (!signal.aborted)
        await client
          .request({ endpoint: "/market", priority: priority.head, signal }, readPage)
          .catch(() => {});
    };
    const polls = Array.from({ length: 12 }, pollOn);
    const pages = Array.from({ length: 12 }, (_, n) =>
      client.request({ ...asset, priority: n % 2 === 0 ? priority.expiring : priority.history }, readPage),
    );
    await clock.runUntil(Promise.all(pages));
    const order = stub.requests.map(({ path }) => (path === "/v3/asset" ? "history" : "poll"));
    const most = order.length;
    ended.abort();
    await clock.runUntil(Promise.all(polls));
    expect(order.filter((kind) => kind === "history")).toHaveLength(12);
    expect(most).toBeGreaterThanOrEqual(40);
    expect(most).toBeLessThanOrEqual(60);
  });

  it("are not held while a page is being read", async () => {
    stub = await startStub({ clock });
    const { client } = clientOf(stub.baseUrl, clock, { concurrency: 1 });
    let finish = () => {};
    const reading = client.request(asset, () => new Promise<void>((resolve) => (finish = resolve)));
    await clock.runUntil(client.request(asset, readPage));
    expect(stub.requests).toHaveLength(2);
    finish();
    await reading;
  });
});
