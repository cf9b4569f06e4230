import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { seededRandom } from "../../../src/runtime/backoff.ts";
import { RetryBudget } from "../../../src/service/client/retry-policy.ts";
import { HostGate } from "../../../src/service/http/circuit-breaker.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import {
  grantWell,
  json,
  type SeenRequest,
  type StubService,
  startStub,
  zipped,
} from "../../support/service/stub-service.ts";

const minute = 60_000;
const hour = 60 * minute;
const asset = { endpoint: "/asset" };

let clock: TurnedClock;
let stub: StubService | undefined;
beforeEach(() => {
  clock = new TurnedClock();
});
afterEach(async () => stub?.stop());

describe("an hour's outage", () => {
  const faults: Record<string, (request: SeenRequest, response: ServerResponse) => void> = {
    "503": (_, response) => json(response, {}, 503),
    "429 without a word": (_, response) => json(response, {}, 429),
    "connections that are reset": ({ socket }) => void socket.resetAndDestroy(),
    "a portal's page": (_, response) => void response.end("<html>"),
    silence: (_, response) => {
      // What waits for time to pass must not hold time up.
      const release = clock.waive();
      response.on("close", release);
    },
  };

  it.each(Object.keys(faults))(
    "B4: %s costs at most 200 requests with eight who never give up",
    async (fault) => {
      let down = false;
      const begins = 5 * minute;
      stub = await startStub({
        clock,
        answer: (request, response) =>
          down ? faults[fault]?.(request, response) : zipped(response, { content: [] }),
        grant: (request, response, count) =>
          down ? json(response, {}, 503) : grantWell(request, response, count),
      });
      const { client, observed } = clientOf(stub.baseUrl, clock);
      let over = false;
      const worker = async () => {
        while (!over) {
          try {
            await client.request(asset, readPage);
            await clock.sleep(10_000);
          } catch (error) {
            // The least patient caller there is: it asks again at once.
            expect(error).toMatchObject({ family: "retry" });
          }
        }
      };
      const workers = Array.from({ length: 8 }, worker);
      await clock.runUntil(clock.sleep(begins));
      down = true;
      const asked = () => (stub?.requests.length ?? 0) + (stub?.tokenRequests.length ?? 0);
      const before = asked();
      await clock.runUntil(clock.sleep(hour));
      const during = asked() - before;
      down = false;
      const healedAt = clock.monotonic();
      const answered = () =>
        observed.filter((each) => each.kind === "request" && each.outcome === "ok").length;
      const wellBefore = answered();
      await clock.runUntil(clock.sleep(3 * minute));
      expect(during).toBeGreaterThan(20);
      expect(during).toBeLessThanOrEqual(200);
      expect(answered() - wellBefore).toBeGreaterThan(50);
      expect(
        observed
          .filter((each) => each.kind === "breaker")
          .map((each) => each.kind === "breaker" && each.state),
      ).toEqual(["open", "closed"]);
      expect(client.health()).toMatchObject({ breaker: "closed", lastSuccessAt: expect.any(Number) });
      expect(client.health().lastSuccessAt ?? 0).toBeGreaterThan(healedAt);
      over = true;
      await clock.runUntil(Promise.all(workers));
    },
  );

  it("B4: a request that waited for its whole patience says that the service is unreachable", async () => {
    stub = await startStub({ clock, answer: (_, response) => json(response, {}, 503) });
    const { client } = clientOf(stub.baseUrl, clock);
    const ask = () => client.request({ ...asset, attempts: 100 }, readPage).catch((error: unknown) => error);
    const failures = await clock.runUntil(Promise.all([ask(), ask()]));
    for (const failure of failures)
      expect(failure).toMatchObject({ code: "service_unreachable", family: "retry" });
    expect(clock.monotonic()).toBeGreaterThanOrEqual(20 * minute);
    expect(clock.monotonic()).toBeLessThan(22 * minute);
  });

  it("B4: a probe whose caller went away makes room for the next one", async () => {
    let mode: "fail" | "hang" | "well" = "fail";
    stub = await startStub({
      clock,
      answer: (_, response) => {
        if (mode === "fail") json(response, {}, 503);
        if (mode === "well") zipped(response, { content: [] });
      },
    });
    const { client } = clientOf(stub.baseUrl, clock);
    const twice = [1, 2].map(() => client.request({ ...asset, attempts: 4 }, readPage));
    await clock.runUntil(Promise.allSettled(twice));
    expect(client.health().breaker).toBe("open");
    mode = "hang";
    await clock.advance(minute);
    const asked = stub.requests.length;
    const controller = new AbortController();
    const left = client.request({ ...asset, signal: controller.signal }, readPage);
    while (stub.requests.length === asked) await clock.advance(1);
    controller.abort(new Error("stopping"));
    await expect(left).rejects.toThrow("stopping");
    mode = "well";
    expect((await clock.runUntil(client.request(asset, readPage))).rows).toBe(0);
    expect(client.health().breaker).toBe("closed");
  });

  it("B4: a burst of failures heals in seconds", async () => {
    stub = await startStub({
      clock,
      answer: (_, response, count) =>
        count <= 5 ? json(response, {}, 500 + (count % 4)) : zipped(response, { content: [] }),
    });
    const { client } = clientOf(stub.baseUrl, clock);
    await clock.runUntil(Promise.all([1, 2, 3, 4].map(() => client.request(asset, readPage))));
    expect(clock.monotonic()).toBeLessThan(10_000);
  });
});

describe("the gate before a host", () => {
  const gateAfter = (failures: number) => {
    const gate = new HostGate(clock, seededRandom(7), () => {});
    for (let at = 0; at < failures; at++) gate.tryEnter()?.failed(0);
    return gate;
  };

  it("closes after eight failures in a row, and lets a single probe through when its time comes", async () => {
    expect(gateAfter(7).tryEnter()).toBeDefined();
    const gate = gateAfter(8);
    expect(gate.tryEnter()).toBeUndefined();
    await clock.advance(5_000);
    const probe = gate.tryEnter();
    expect(probe).toBeDefined();
    expect(gate.tryEnter()).toBeUndefined();
    probe?.succeeded();
    expect(gate.tryEnter()).toBeDefined();
  });

  it("a probe that was dropped makes room for the next, and each that fails doubles the wait", async () => {
    const gate = gateAfter(8);
    await clock.advance(5_000);
    gate.tryEnter()?.dropped();
    let last = clock.monotonic();
    const waits: number[] = [];
    for (let at = 0; at < 8; at++) {
      gate.tryEnter()?.failed(0);
      expect(await clock.runUntil(gate.passable(Infinity, undefined))).toBe(true);
      waits.push(clock.monotonic() - last);
      last = clock.monotonic();
    }
    expect(waits[0]).toBeGreaterThanOrEqual(5_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(minute);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(minute / 2);
  });

  it("wakes everybody who waits as soon as a probe succeeds", async () => {
    const gate = gateAfter(8);
    await clock.advance(5_000);
    const probe = gate.tryEnter();
    const waiting = [1, 2, 3].map(() => gate.passable(clock.monotonic() + hour, undefined));
    await clock.advance(1_000);
    probe?.succeeded();
    expect(await Promise.all(waiting)).toEqual([true, true, true]);
    expect(clock.monotonic()).toBeLessThan(7_000);
  });

  it("an abort ends the wait and leaves nothing behind", async () => {
    const gate = gateAfter(8);
    const controller = new AbortController();
    const wait = gate.passable(Infinity, controller.signal);
    controller.abort(new Failure("stopping", { family: "retry", code: "stopping" }));
    await expect(wait).rejects.toThrow("stopping");
    expect(clock.timers).toBe(0);
  });
});

describe("the retry budget", () => {
  it("is generous at first, then gives one retry in twenty seconds", async () => {
    const budget = new RetryBudget(clock);
    const waits = Array.from({ length: 22 }, () => budget.take());
    expect(waits.slice(0, 20).every((wait) => wait === 0)).toBe(true);
    expect(waits.slice(20)).toEqual([20_000, 40_000]);
    await clock.advance(hour);
    expect(budget.take()).toBe(0);
  });

  it("holds back the second tries when every first one fails, though the breaker never opens", async () => {
    const tried = new Set<string>();
    stub = await startStub({
      clock,
      answer: ({ target }, response) => {
        if (tried.has(target)) return zipped(response, { content: [] });
        tried.add(target);
        json(response, {}, 500);
      },
    });
    const { client } = clientOf(stub.baseUrl, clock);
    let next = 0;
    const worker = async () => {
      while (next < 60) await client.request({ ...asset, query: { symbol: next++ } }, readPage);
    };
    await clock.runUntil(Promise.all([worker(), worker(), worker()]));
    expect(stub.requests).toHaveLength(120);
    expect(clock.monotonic()).toBeGreaterThan(5 * minute);
  });

  it("is earned back by successes", () => {
    const budget = new RetryBudget(clock);
    for (let at = 0; at < 20; at++) budget.take();
    for (let at = 0; at < 5; at++) budget.earn();
    expect(budget.take()).toBe(0);
    expect(budget.take()).toBeGreaterThan(0);
  });
});
