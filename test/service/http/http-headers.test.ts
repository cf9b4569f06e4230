import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseHttpDate, parseRetryAfter } from "../../../src/service/http/transport.ts";
import { MAX_SILENCE_MS } from "../../../src/service/limits.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { reply } from "../../support/service/stub-service.ts";

const respondedAt = Date.UTC(1994, 10, 6, 8, 49, 0);

describe("Retry-After", () => {
  it.each([
    ["7", 7_000],
    [" 7 ", 7_000],
    ["0", 0],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 37_000],
    ["Sunday, 06-Nov-94 08:49:37 GMT", 37_000],
    ["Sun Nov  6 08:49:37 1994", 37_000],
    ["Sun, 06 Nov 1994 08:48:00 GMT", 0],
    ["Sun, 06 Nov 2094 08:49:37 GMT", MAX_SILENCE_MS],
    ["1000000000", MAX_SILENCE_MS],
    ["9".repeat(400), MAX_SILENCE_MS],
    ["1e9", 0],
    ["-5", 0],
    ["7 apples", 0],
    ["soon", 0],
    ["", 0],
    ["NaN", 0],
    ["Sun, 31 Feb 1994 08:49:37 GMT", 0],
    ["Sun, 06 Nov 1994 28:49:37 GMT", 0],
  ])("B2: %j means a wait of %i ms", (text, wait) => {
    expect(parseRetryAfter(text, respondedAt)).toBe(wait);
  });

  it("B2: a missing header means no wait", () => {
    expect(parseRetryAfter(undefined, respondedAt)).toBe(0);
  });

  it("B2: any header text gives a wait between zero and the maximum", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const wait = parseRetryAfter(text, respondedAt);
        expect(wait >= 0 && wait <= MAX_SILENCE_MS).toBe(true);
      }),
    );
  });

  it("parses every HTTP date, whatever the local time zone", () => {
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date("2099-01-01"), noInvalidDate: true }), (date) => {
        const whole = Math.floor(date.getTime() / 1000) * 1000;
        expect(parseHttpDate(new Date(whole).toUTCString())).toBe(whole);
      }),
    );
  });

  it("B2: a two-digit year means the nearest matching year", () => {
    expect(parseHttpDate("Sunday, 06-Nov-94 08:49:37 GMT")).toBe(Date.UTC(1994, 10, 6, 8, 49, 37));
    expect(parseHttpDate("Sunday, 01-Mar-26 12:00:07 GMT")).toBe(Date.UTC(2026, 2, 1, 12, 0, 7));
  });
});

describe("too many requests", () => {
  const asset = { endpoint: "/asset" };

  const startLimited = (header: string | undefined, times = 1) =>
    startServedClient({
      respond: (_, response, count) => {
        if (count > times) return reply(response);
        if (header !== undefined) response.setHeader("retry-after", header);
        reply(response, 429);
      },
    });

  it.each([
    [1, ["market", "exchange", "asset"]],
    [2, ["exchange", "market", "asset"]],
  ])("B1: Retry-After: 7 from %i endpoints: one pauses alone, two pause everything", async (times, order) => {
    const { client, clock, stub, pass } = await startLimited("7", times);
    const requests: Promise<unknown>[] = [];
    for (const endpoint of ["/asset", "/market", "/exchange"]) {
      requests.push(client.request({ endpoint }, readPage));
      await pass(1_000);
    }
    await clock.runUntil(Promise.all(requests));
    const answered = stub.requests.slice(times);
    const isHeld = (path: string) => times > 1 || path.endsWith("/asset");
    expect(answered.map(({ path }) => path.slice(4)).toSorted()).toEqual(order.toSorted());
    for (const { at, path } of answered) expect(at >= 7_000).toBe(isHeld(path));
    expect(clock.monotonic()).toBeLessThan(10_000);
  });

  it("B1: an endpoint that asks for a day of silence is asked again after a minute, while others answer", async () => {
    const { client, clock, stub, send, pass } = await startLimited("86400");
    const first = client.request(asset, readPage);
    await pass(1_000);
    await send({ endpoint: "/market" });
    await clock.runUntil(first);
    const [refused, , again] = stub.requests.map(({ at }) => at);
    expect(stub.requests).toHaveLength(3);
    expect(Math.round(((again ?? 0) - (refused ?? 0)) / 1_000)).toBe(60);
  });

  it("B2: a Retry-After date is compared with the server's clock, which is a day off here", async () => {
    const day = 86_400_000;
    const { clock, stub, send } = await startServedClient({
      respond: (_, response, count) => {
        response.setHeader("date", new Date(clock.now() + day).toUTCString());
        if (count > 1) return reply(response);
        response.setHeader("retry-after", new Date(clock.now() + day + 20_000).toUTCString());
        reply(response, 503);
      },
    });
    await send(asset);
    expect(stub.requests[1]?.at).toBeGreaterThanOrEqual(20_000);
    expect(stub.requests[1]?.at).toBeLessThan(30_000);
  });

  it("B2: a wait of years is limited to 15 minutes", async () => {
    const { stub, send } = await startLimited("1000000000");
    await send(asset);
    expect(stub.requests.map(({ at }) => Math.round(at / 60_000))).toEqual([0, 15]);
  });

  it.each(["garbage", "-7", undefined])(
    "B3: Retry-After %s is ignored in favour of the client's backoff",
    async (text) => {
      const { stub, send } = await startLimited(text, 5);
      await send(asset);
      const waits = stub.requests.map(({ at }, n) => at - (stub.requests[n - 1]?.at ?? at)).slice(1);
      expect(waits).toHaveLength(5);
      for (const [n, wait] of waits.entries()) expect(wait).toBeLessThanOrEqual(1_500 * 2 ** n);
      expect(Math.max(...waits)).toBeGreaterThan(500);
    },
  );

  it("B3: fails with a retry failure after sixteen attempts", async () => {
    const { stub, failureOf } = await startLimited(undefined, 100);
    expect(await failureOf(asset)).toMatchObject({ code: "too_many_requests", family: "retry" });
    expect(stub.requests).toHaveLength(16);
  });
});
