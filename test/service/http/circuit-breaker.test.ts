import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import type { ManualClock } from "../../support/manual-clock.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { grantToken, hang, type ReceivedRequest, reply } from "../../support/service/stub-service.ts";

const minute = 60_000;
const hour = 60 * minute;
const asset = { endpoint: "/asset" };

describe("one hour of outage", () => {
  type Fault = (request: ReceivedRequest, response: ServerResponse, clock: ManualClock) => void;
  const faults: [string, Fault][] = [
    ["503", (_, response) => reply(response, 503)],
    ["429 without Retry-After", (_, response) => reply(response, 429)],
    ["reset connections", ({ socket }) => void socket.resetAndDestroy()],
    ["the page of a captive portal", (_, response) => void response.end("<html>")],
    ["no response", (_, response, clock) => hang(clock, response)],
  ];

  it.each(faults)(
    "B4: %s causes at most 200 requests from eight callers that never give up",
    async (_, fault) => {
      let isDown = false;
      const { client, clock, stub, events, pass } = await startServedClient({
        respond: (request, response) => (isDown ? fault(request, response, clock) : reply(response)),
        respondToTokenRequest: (request, response, count) =>
          isDown ? reply(response, 503) : grantToken(request, response, count),
      });
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
      await pass(minute);
      isDown = true;
      const requestCount = () => stub.requests.length + stub.tokenRequests.length;
      const before = requestCount();
      await pass(hour);
      const during = requestCount() - before;
      isDown = false;
      const recoveredAt = clock.monotonic();
      const succeeded = () =>
        events.filter((each) => each.kind === "request" && each.outcome === "ok").length;
      const succeededBefore = succeeded();
      await pass(3 * minute);
      expect(during).toBeGreaterThan(20);
      expect(during).toBeLessThanOrEqual(200);
      expect(succeeded() - succeededBefore).toBeGreaterThan(50);
      const breakerEvents = events.filter((each) => each.kind === "breaker");
      for (const changes of Map.groupBy(breakerEvents, ({ endpoint }) => endpoint).values())
        expect(changes.map(({ state }) => state)).toEqual(["open", "closed"]);
      const { condition, lastSuccessAt } = client.health();
      expect(condition.open_breakers).toEqual([]);
      expect(lastSuccessAt).toBeGreaterThan(recoveredAt);
      isOver = true;
      await clock.runUntil(Promise.all(workers));
    },
  );

  it("B4: a request fails with service_unreachable after its maximum wait", async () => {
    const { clock, failureOf } = await startServedClient({ respond: () => 503 });
    const request = { ...asset, maxAttempts: 100 };
    const failures = await Promise.all([failureOf(request), failureOf(request)]);
    for (const failure of failures)
      expect(failure).toMatchObject({ code: "service_unreachable", family: "retry" });
    expect(clock.monotonic()).toBeGreaterThanOrEqual(20 * minute);
    expect(clock.monotonic()).toBeLessThan(22 * minute);
  });

  it("B4: recovers from a burst of failures in seconds", async () => {
    const { client, clock } = await startServedClient({
      respond: ({ count }) => (count <= 5 ? 500 + (count % 4) : 200),
    });
    await clock.runUntil(Promise.all([1, 2, 3, 4].map(() => client.request(asset, readPage))));
    expect(clock.monotonic()).toBeLessThan(10_000);
  });
});
