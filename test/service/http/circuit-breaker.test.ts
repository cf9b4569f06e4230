import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../support/manual-clock.ts";
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
