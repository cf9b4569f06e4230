import { describe, expect, it } from "vitest";
import { RetryBudget } from "../../../src/service/client/retry-policy.ts";
import { seededRandom } from "../../support/seeded-random.ts";

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
