import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { EndpointBreakers } from "../../../src/service/http/endpoint-breakers.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { createTestClient, readPage } from "../../support/service/client-harness.ts";
import {
  grantToken,
  type ReceivedRequest,
  type StubService,
  sendGzip,
  sendJson,
  startStubService,
} from "../../support/service/stub-service.ts";

const minute = 60_000;
const hour = 60 * minute;
const asset = { endpoint: "/asset" };

let clock: ManualClock;
let stub: StubService | undefined;
beforeEach(() => {
  clock = new ManualClock();
});
afterEach(async () => stub?.stop());

describe("one hour of outage", () => {
  const faults: Record<string, (request: ReceivedRequest, response: ServerResponse) => void> = {
    "503": (_, response) => sendJson(response, {}, 503),
    "429 without Retry-After": (_, response) => sendJson(response, {}, 429),
    "reset connections": ({ socket }) => void socket.resetAndDestroy(),
    "the page of a captive portal": (_, response) => void response.end("<html>"),
    "no response": (_, response) => {
      // The manual clock must not wait for this response.
      const release = clock.beginWait();
      response.on("close", release);
    },
  };

  it.each(Object.keys(faults))(
    "B4: %s causes at most 200 requests from eight callers that never give up",
    async (fault) => {
      let isDown = false;
      const outageStart = minute;
      stub = await startStubService({
        clock,
        respond: (request, response) =>
          isDown ? faults[fault]?.(request, response) : sendGzip(response, { content: [] }),
        respondToTokenRequest: (request, response, count) =>
          isDown ? sendJson(response, {}, 503) : grantToken(request, response, count),
      });
      const { client, events } = createTestClient(stub.baseUrl, clock);
      let isOver = false;
      const worker = async () => {
        while (!isOver) {
          try {
            await client.request(asset, readPage);
            await clock.sleep(10_000);
          } catch (error) {
            // The worst caller: it sends the next request at once.
            expect(error).toMatchObject({ family: "retry" });
          }
        }
      };
      const workers = Array.from({ length: 8 }, worker);
      await clock.runUntil(clock.sleep(outageStart));
      isDown = true;
      const requestCount = () => (stub?.requests.length ?? 0) + (stub?.tokenRequests.length ?? 0);
      const before = requestCount();
      await clock.runUntil(clock.sleep(hour));
      const during = requestCount() - before;
      isDown = false;
      const recoveredAt = clock.monotonic();
      const succeeded = () =>
        events.filter((each) => each.kind === "request" && each.outcome === "ok").length;
      const succeededBefore = succeeded();
      await clock.runUntil(clock.sleep(3 * minute));
      expect(during).toBeGreaterThan(20);
      expect(during).toBeLessThanOrEqual(200);
      expect(succeeded() - succeededBefore).toBeGreaterThan(50);
      const breakerEvents = events.filter((each) => each.kind === "breaker");
      for (const changes of Map.groupBy(breakerEvents, ({ endpoint }) => endpoint).values())
        expect(changes.map(({ state }) => state)).toEqual(["open", "closed"]);
      expect(client.health()).toMatchObject({
        condition: { open_breakers: [] },
        lastSuccessAt: expect.any(Number),
      });
      expect(client.health().lastSuccessAt ?? 0).toBeGreaterThan(recoveredAt);
      isOver = true;
      await clock.runUntil(Promise.all(workers));
    },
  );

  it("B4: a request fails with service_unreachable after its maximum wait", async () => {
    stub = await startStubService({ clock, respond: (_, response) => sendJson(response, {}, 503) });
    const { client } = createTestClient(stub.baseUrl, clock);
    const send = () =>
      client.request({ ...asset, maxAttempts: 100 }, readPage).catch((error: unknown) => error);
    const failures = await clock.runUntil(Promise.all([send(), send()]));
    for (const failure of failures)
      expect(failure).toMatchObject({ code: "service_unreachable", family: "retry" });
    expect(clock.monotonic()).toBeGreaterThanOrEqual(20 * minute);
    expect(clock.monotonic()).toBeLessThan(22 * minute);
  });

  it("B4: an aborted probe allows the next one", async () => {
    let mode: "fail" | "hang" | "ok" = "fail";
    stub = await startStubService({
      clock,
      respond: (_, response) => {
        if (mode === "fail") sendJson(response, {}, 503);
        if (mode === "ok") sendGzip(response, { content: [] });
      },
    });
    const { client } = createTestClient(stub.baseUrl, clock);
    const failing = [1, 2, 3, 4].map(() => client.request({ ...asset, maxAttempts: 10 }, readPage));
    await clock.runUntil(Promise.allSettled(failing));
    expect(client.health().condition.open_breakers).toEqual(["/asset"]);
    mode = "hang";
    await clock.advance(minute);
    const requestCount = stub.requests.length;
    const controller = new AbortController();
    const left = client.request({ ...asset, signal: controller.signal }, readPage);
    while (stub.requests.length === requestCount) await clock.advance(1);
    controller.abort(new Error("stopping"));
    await expect(left).rejects.toThrow("stopping");
    mode = "ok";
    expect((await clock.runUntil(client.request(asset, readPage))).rows).toBe(0);
    expect(client.health().condition.open_breakers).toEqual([]);
  });

  it("B4: recovers from a burst of failures in seconds", async () => {
    stub = await startStubService({
      clock,
      respond: (_, response, count) =>
        count <= 5 ? sendJson(response, {}, 500 + (count % 4)) : sendGzip(response, { content: [] }),
    });
    const { client } = createTestClient(stub.baseUrl, clock);
    await clock.runUntil(Promise.all([1, 2, 3, 4].map(() => client.request(asset, readPage))));
    expect(clock.monotonic()).toBeLessThan(10_000);
  });
});

describe("circuit breaker", () => {
  const path = "/asset";
  const breakersAfter = (failures: number) => {
    const options = { clock, random: seededRandom(7), onStateChange: () => {}, onRecovered: () => {} };
    const breakers = new EndpointBreakers(options);
    for (let at = 0; at < failures; at++) breakers.tryAcquire(path)?.recordFailure("failed");
    return breakers;
  };
  const enter = (breakers: EndpointBreakers, until = Infinity, signal?: AbortSignal) =>
    breakers.enterWhenAvailable(path, until, signal, () => breakers.tryAcquire(path));

  it("opens after so many failures in a row, and allows a single probe after the delay", async () => {
    expect(breakersAfter(39).tryAcquire(path)).toBeDefined();
    const breakers = breakersAfter(40);
    expect(breakers.tryAcquire(path)).toBeUndefined();
    await clock.advance(5_000);
    const probe = breakers.tryAcquire(path);
    expect(probe).toBeDefined();
    expect(breakers.tryAcquire(path)).toBeUndefined();
    probe?.recordSuccess();
    expect(breakers.tryAcquire(path)).toBeDefined();
  });

  it("allows the next probe after a released one, and doubles the delay after a failed one", async () => {
    const breakers = breakersAfter(40);
    await clock.advance(5_000);
    breakers.tryAcquire(path)?.release();
    let probe = await clock.runUntil(enter(breakers));
    let last = clock.monotonic();
    const waits: number[] = [];
    for (let at = 0; at < 8; at++) {
      if (typeof probe === "object") probe.recordFailure("failed");
      probe = await clock.runUntil(enter(breakers));
      waits.push(clock.monotonic() - last);
      last = clock.monotonic();
    }
    expect(waits[2]).toBeGreaterThanOrEqual(5_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1.5 * minute);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(0.75 * minute);
  });

  it("wakes all waiters as soon as a probe succeeds", async () => {
    const breakers = breakersAfter(40);
    await clock.advance(5_000);
    const probe = breakers.tryAcquire(path);
    const waiting = [1, 2, 3].map(() => enter(breakers, clock.monotonic() + hour));
    await clock.advance(1_000);
    probe?.recordSuccess();
    expect((await Promise.all(waiting)).map((each) => typeof each)).toEqual(["object", "object", "object"]);
    expect(clock.monotonic()).toBeLessThan(7_000);
  });

  it("hands the one probe slot of the host round the open breakers", async () => {
    const breakers = breakersAfter(40);
    for (let at = 0; at < 40; at++) breakers.tryAcquire("/market")?.recordFailure("failed");
    await clock.advance(5_000);
    const probe = breakers.tryAcquire(path);
    expect(probe).toBeDefined();
    expect(breakers.tryAcquire("/market")).toBeUndefined();
    probe?.recordFailure("failed");
    expect([breakers.tryAcquire(path), typeof breakers.tryAcquire("/market")]).toEqual([undefined, "object"]);
  });

  it("an abort ends the wait and leaves no timer behind", async () => {
    const controller = new AbortController();
    const wait = enter(breakersAfter(40), Infinity, controller.signal);
    controller.abort(new Failure("stopping", { family: "retry", code: "stopped" }));
    await expect(wait).rejects.toThrow("stopping");
    expect(clock.timerCount).toBe(0);
  });
});
