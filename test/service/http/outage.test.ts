import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { networkSign } from "../../../src/service/http/outage.ts";
import { requestPriority } from "../../../src/service/http/request.ts";
import { reconnectDelayMs } from "../../../src/service/live/close-reason.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { hang, pause, reply } from "../../support/service/stub-service.ts";

const snapshots = ["/market-cap", "/exchange-ticker", "/asset"].map((endpoint) => ({
  endpoint,
  priority: requestPriority.snapshot,
}));
/** The websocket tries once, and then waits for REST. */
const CONNECTIONS_A_MINUTE = 1;

describe("an outage while a stream without history is synced", () => {
  it("B4: costs 30 requests in the first minute, and is over three seconds after the service is back", async () => {
    let isDown = false;
    const { client, clock, stub, pass, poll } = await startServedClient({
      respond: () => (isDown ? 503 : 200),
    });
    let rings = 0;
    client.bell.on("ring", () => void rings++);
    const ended = new AbortController();
    const polls = snapshots.map((request) => poll(request, 5_000, ended.signal));
    await pass(120_000);
    isDown = true;
    const before = stub.requests.length;
    await pass(60_000);
    expect(stub.requests.length - before).toBeLessThanOrEqual(30);
    await pass(9 * 60_000);
    expect(stub.requests.length - before).toBeLessThanOrEqual(230);
    expect(stub.requests.length - before).toBeGreaterThan(180);
    expect(stub.tokenRequests).toHaveLength(1);
    expect([client.isDown(), rings]).toEqual([true, 0]);
    expect(client.health().condition.open_breakers).toEqual(["host"]);
    isDown = false;
    await pass(3_000);
    expect([client.isDown(), rings]).toEqual([false, 1]);
    expect(client.health().condition.open_breakers).toEqual([]);
    const paths = new Set(stub.requests.slice(-3).map(({ path }) => path.split("/").at(-1)));
    expect(paths).toEqual(new Set(["market-cap", "exchange-ticker", "asset"]));
    ended.abort();
    await clock.runUntil(Promise.all(polls));
  });

  it.each<[string, (response: ServerResponse) => void]>([
    ["503", (response) => reply(response, 503)],
    ["reset connections", (response) => void response.socket?.resetAndDestroy()],
  ])("B4: %s, as a round of twelve begins", async (_, fail) => {
    let isDown = false;
    const { client, clock, stub, pass } = await startServedClient({
      respond: (_, response) => (isDown ? fail(response) : reply(response)),
    });
    let isOver = false;
    const ask = async (derivativeType: string) => {
      const endpoint = "/derivatives/ticker/{derivativeType}";
      const request = { endpoint, params: { derivativeType }, priority: requestPriority.snapshot };
      await client.request(request, readPage).catch(() => {});
    };
    const types = ["futures", "perpetuals", "options"];
    const poll = async () => {
      while (!isOver) {
        await clock.sleep(5_000 - (clock.monotonic() % 5_000));
        await Promise.all([...types, ...types, ...types, ...types].map(ask));
      }
    };
    const polls = poll();
    await pass(100_000 - 1);
    isDown = true;
    const before = stub.requests.length;
    await pass(60_000);
    expect(stub.requests.length - before).toBeLessThanOrEqual(30 - CONNECTIONS_A_MINUTE);
    isDown = false;
    await pass(3_000);
    expect(client.isDown()).toBe(false);
    isOver = true;
    await clock.runUntil(polls);
  });

  it("B4: nothing is sent while a probe asks whether everything is down", async () => {
    let isDown = false;
    const { client, clock, stub, pass } = await startServedClient({
      respond: async (_, response) => {
        await pause(clock, 30);
        reply(response, isDown ? 503 : 200);
      },
    });
    const ask = (endpoint: string) =>
      client.request({ endpoint, priority: requestPriority.snapshot, maxAttempts: 1 }, readPage);
    for (let at = 0; at < 100; at++) await clock.runUntil(ask("/market-cap"));
    await clock.runUntil(ask("/exchange-ticker"));
    isDown = true;
    const before = stub.requests.length;
    const polls: Promise<unknown>[] = [];
    for (let at = 0; at < 12; at++) {
      polls.push(ask("/market-cap").catch(() => {}));
      await pass(10);
    }
    await pass(1_000);
    // Three fail, as many are on their way, and the probe.
    expect(stub.requests.length - before).toBeLessThanOrEqual(7);
    isDown = false;
    await clock.runUntil(Promise.all(polls));
  });

  it("B4: a probe that hangs delays the next one by seconds, and the websocket gets every other turn", async () => {
    let mode: 503 | "hang" | 200 = 200;
    const { client, clock, stub, pass, poll } = await startServedClient({
      respond: (_, response) => {
        if (mode === "hang") hang(clock, response);
        else reply(response, mode);
      },
    });
    const stopped = new AbortController();
    const polls = snapshots.map((request) => poll(request, 5_000, stopped.signal));
    await pass(300_000);
    mode = 503;
    await pass(30_000);
    expect(client.isDown()).toBe(true);
    const turns: number[] = [];
    const before = stub.requests.length;
    for (const end = clock.monotonic() + 60_000; clock.monotonic() < end; ) {
      await clock.runUntil(client.waitForTurn(stopped.signal));
      turns.push(clock.monotonic());
    }
    const waits = turns.slice(1).map((at, index) => at - (turns[index] ?? 0));
    expect(Math.max(...waits)).toBeLessThan(6_000);
    expect(turns.length + stub.requests.length - before).toBeLessThanOrEqual(23);

    mode = "hang";
    await pass(20_000);
    mode = 200;
    await pass(7_000);
    expect(client.isDown()).toBe(false);
    stopped.abort();
    await clock.runUntil(Promise.all(polls));
  });

  it("the greeting of the websocket makes REST probe at once", async () => {
    let isDown = true;
    const { client, clock, pass } = await startServedClient({ respond: () => (isDown ? 503 : 200) });
    const request = client.request({ endpoint: "/asset", maxAttempts: 100 }, readPage);
    await pass(600_000);
    expect(client.isDown()).toBe(true);
    isDown = false;
    const before = clock.monotonic();
    client.bell.emit("ring");
    await clock.runUntil(request);
    expect(clock.monotonic() - before).toBeLessThan(100);
  });
});

describe("the rules of an outage", () => {
  const longest = () => 1 - 1e-9;

  it("tell a host that cannot be reached from a request that failed", () => {
    const codes = ["connection_refused", "dns_failed", "timeout", "connection_lost"];
    expect(codes.map(networkSign)).toEqual(["refused", "refused", "timeout", "failed"]);
  });

  const refused = {
    attempts: 10,
    rejections: 0,
    end: "refused",
    isUrgent: true,
    isRestDown: false,
    retryAfterMs: 0,
  } as const;
  it.each([
    ["refused, a stream without history", {}, 2_900],
    ["refused, only streams with history", { isUrgent: false }, 60_000],
    ["refused while REST probes", { isRestDown: true }, 60_000],
    ["dropped again and again", { end: "dropped" }, 60_000],
    ["a first 403", { end: "rejected", rejections: 1 }, 1_000],
    ["a second 403", { end: "rejected", rejections: 2 }, 180_000],
    ["a tenth 403", { end: "rejected", rejections: 10 }, 3_660_000],
    ["denied by a rule", { end: "denied", rejections: 1 }, 120_000],
  ] as const)("the feed connects again: %s", (_, change, ms) => {
    expect(reconnectDelayMs({ ...refused, ...change }, longest)).toBeCloseTo(ms, -1);
  });
});
