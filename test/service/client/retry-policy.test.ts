import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { failureCode } from "../../../src/model/failure.ts";
import { noListFailure } from "../../../src/model/response-body.ts";
import { RetryBudget } from "../../../src/service/client/failure-counts.ts";
import { seededRandom } from "../../support/seeded-random.ts";
import { startServedClient } from "../../support/service/client-harness.ts";
import { reply, sendGzip } from "../../support/service/stub-service.ts";

describe("retry budget", () => {
  it("B4: lets retries wait milliseconds while one request in ten succeeds", () => {
    const budget = new RetryBudget(seededRandom(7));
    for (let success = 0; success < 50; success++) {
      for (let retry = 0; retry < 9; retry++) expect(budget.spend(retry)).toBeLessThanOrEqual(250);
      budget.recordSuccess();
    }
  });

  it("B4: backs off to a minute when nothing succeeds", () => {
    const budget = new RetryBudget(seededRandom(7));
    for (let retry = 0; retry < 30; retry++) expect(budget.spend(retry)).toBeLessThanOrEqual(250);
    const waits = Array.from({ length: 200 }, (_, retry) => budget.spend(retry));
    expect(waits[0]).toBeLessThanOrEqual(1_000);
    expect(Math.max(...waits)).toBeGreaterThan(30_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(60_000);
  });

  it("B4: one success after an outage pays for nine quick retries", () => {
    const budget = new RetryBudget(seededRandom(7));
    for (let retry = 0; retry < 40; retry++) budget.spend(10);
    budget.recordSuccess();
    const waits = Array.from({ length: 10 }, () => budget.spend(10));
    expect(Math.max(...waits.slice(0, 9))).toBeLessThanOrEqual(250);
    expect(waits[9]).toBeGreaterThan(250);
  });
});

describe("an answer that the service must repeat", () => {
  type Respond = (response: ServerResponse) => void;
  it.each<[code: string, respond: Respond, requests: number, minMs: number, maxMs: number]>([
    ["no_list", (response) => sendGzip(response, {}), 2, 1_000, 1_500],
    ["forbidden", (response) => reply(response, 403), 3, 4_000, 5_000],
  ])(
    "%s: counts after so many requests, and so long a time",
    async (code, respond, requests, minMs, maxMs) => {
      const { client, clock, stub } = await startServedClient({
        respond: (_, response) => respond(response),
      });
      const readList = async () => {
        throw noListFailure("an object");
      };
      const outcome = client.request({ endpoint: "/asset" }, readList).catch(failureCode);
      expect(await clock.runUntil(outcome)).toBe(code);
      const times = stub.requests.map(({ at }) => at);
      expect(times).toHaveLength(requests);
      const lasted = Math.max(...times) - Math.min(...times);
      expect(lasted).toBeGreaterThanOrEqual(minMs);
      expect(lasted).toBeLessThan(maxMs);
    },
  );
});
