import { describe, expect, it } from "vitest";
import { startServedClient } from "../../support/service/client-harness.ts";
import { reply } from "../../support/service/stub-service.ts";

describe("requests that fail and are retried", () => {
  it("B17: are counted by their cause, and told in the log once a minute at most", async () => {
    let isFaulty = true;
    const { client, clock, logLines, send, pass } = await startServedClient({
      respond: (_, response, count) => {
        if (!isFaulty || count % 3 === 0) return reply(response);
        return count % 3 === 1 ? reply(response, 429) : void response.end("<html>");
      },
    });
    const told = () => logLines.filter(({ message }) => message === "requests failed and were retried");
    const runMinutes = async (minutes: number) => {
      for (let second = 0; second < minutes * 60; second += 5) {
        await send({ endpoint: "/asset" });
        await pass(5_000);
      }
    };
    await runMinutes(5);
    const minutes = Math.ceil(clock.monotonic() / 60_000);
    expect(told().length).toBeGreaterThanOrEqual(4);
    expect(told().length).toBeLessThanOrEqual(minutes);
    expect(told()[0]?.fields).toMatchObject({
      failures: { too_many_requests: expect.any(Number), malformed_body: expect.any(Number) },
      lastFailure: expect.any(String),
    });
    const { too_many_requests: rejected = 0, malformed_body: unreadable = 0 } =
      client.health().condition.recent_failures;
    expect(rejected).toBeGreaterThan(30);
    expect(unreadable).toBeGreaterThan(30);

    isFaulty = false;
    await runMinutes(12);
    expect(client.health().condition.recent_failures).toEqual({});
    const before = told().length;
    isFaulty = true;
    await send({ endpoint: "/asset" });
    await client.close();
    // A run that ends tells what is left.
    expect(told().length).toBe(before + 1);
  });
});
