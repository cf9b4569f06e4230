import { describe, expect, it } from "vitest";
import { failureCode } from "../../../src/model/failure.ts";
import { requestPriority } from "../../../src/service/http/request.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { pause, reply } from "../../support/service/stub-service.ts";

const minute = 60_000;

describe("an endpoint that fails", () => {
  it("H8: a dead endpoint delays no request to the others, and is probed until it works again", async () => {
    let isDead = true;
    const { client, clock, stub, pass, poll } = await startServedClient({
      respond: ({ path }) => (isDead && path.endsWith("/market-cap") ? 500 : 200),
    });
    const ended = new AbortController();
    const answeredAt: number[] = [];
    const record = () => void answeredAt.push(clock.monotonic());
    const codes = new Set<string>();
    const pollMarketCap = async () => {
      while (!ended.signal.aborted) {
        const page = client.request({ endpoint: "/market-cap" }, readPage);
        codes.add(await page.then(() => "ok", failureCode));
        await clock.sleep(30_000);
      }
    };
    const pollAsset = poll({ endpoint: "/asset" }, 10_000, ended.signal, record);
    const polls = [pollAsset, pollMarketCap(), pollMarketCap()];
    await pass(20 * minute);
    expect(codes).toEqual(new Set(["server_failure", "endpoint_failing"]));
    expect(answeredAt).toEqual(answeredAt.map((_, n) => n * 10_000));
    expect(client.health().condition.open_breakers).toEqual(["/market-cap"]);
    const requests = stub.requests.filter(({ path }) => path.endsWith("/market-cap")).length;
    expect(requests).toBeGreaterThan(20);
    expect(requests).toBeLessThan(90);
    isDead = false;
    await pass(3 * minute);
    expect(codes).toContain("ok");
    expect(client.health().condition.open_breakers).toEqual([]);
    ended.abort();
    await clock.runUntil(Promise.all(polls));
  });

  it("H8: nothing is down if something answers while a probe asks", async () => {
    const delays: Record<string, number> = { "market-cap": 30, asset: 300, "exchange-ticker": 600 };
    let isFailing = false;
    const { client, clock, pass } = await startServedClient({
      respond: async ({ path }, response) => {
        const endpoint = path.split("/").at(-1) ?? "";
        await pause(clock, delays[endpoint] ?? 0);
        reply(response, isFailing && endpoint !== "asset" ? 503 : 200);
      },
    });
    const ask = (endpoint: string) =>
      client.request({ endpoint, priority: requestPriority.snapshot, maxAttempts: 1 }, readPage);
    for (let at = 0; at < 100; at++) await clock.runUntil(ask("/market-cap"));
    for (const endpoint of ["/asset", "/exchange-ticker"]) await clock.runUntil(ask(endpoint));
    isFailing = true;
    const answered = ask("/asset");
    const failed = [1, 2, 3, 4].map(() => ask("/market-cap").catch(() => {}));
    await pass(200);
    expect(client.isDown()).toBe(true);
    await pass(800);
    expect(client.isDown()).toBe(false);
    isFailing = false;
    await clock.runUntil(Promise.all([answered, ...failed]));
  });

  it("H8: an endpoint that few callers request is dead after little more than a minute", async () => {
    const { client, clock, send } = await startServedClient({
      respond: ({ path }) => (path.endsWith("/asset") ? 200 : 500),
    });
    await send({ endpoint: "/asset" });
    const requestUntilDead = async () => {
      for (;;) {
        const code = await client.request({ endpoint: "/market-cap" }, readPage).catch(failureCode);
        if (code === "endpoint_failing") return;
      }
    };
    await clock.runUntil(Promise.all([requestUntilDead(), requestUntilDead()]));
    expect(clock.monotonic()).toBeGreaterThanOrEqual(minute);
    expect(clock.monotonic()).toBeLessThan(1.4 * minute);
  });

  it("B1: 503 with Retry-After pauses its endpoint alone", async () => {
    const { client, clock } = await startServedClient({
      respond: ({ path }, response, count) => {
        if (!path.endsWith("/ohlcv") || count > 1) return reply(response);
        response.setHeader("retry-after", "60");
        reply(response, 503);
      },
    });
    const bars = client.request({ endpoint: "/ohlcv" }, readPage);
    await clock.advance(1_000);
    await client.request({ endpoint: "/asset" }, readPage);
    expect(clock.monotonic()).toBe(1_000);
    await clock.runUntil(bars);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(minute);
  });
});

it("B3: bare 429s for three of ten seconds starve neither heads nor snapshots nor history", async () => {
  const { clock, pass, poll } = await startServedClient({
    respond: () => (clock.monotonic() % 10_000 < 3_000 ? 429 : 200),
  });
  const stop = new AbortController();
  const answered = { history: [0], head: [0], snapshot: [0] };
  const start = (kind: keyof typeof answered, everyMs: number) => {
    const request = { endpoint: "/asset", priority: requestPriority[kind] };
    return poll(request, everyMs, stop.signal, () => void answered[kind].push(clock.monotonic()));
  };
  const history = Array.from({ length: 6 }, () => start("history", 500));
  const polls = [...history, start("head", 3_000), start("snapshot", 5_000)];
  await pass(2 * minute);
  stop.abort();
  await clock.runUntil(Promise.all(polls));
  for (const times of [answered.head, answered.snapshot])
    expect(Math.max(...times.map((at, n) => at - (times[n - 1] ?? 0)))).toBeLessThanOrEqual(20_000);
  // Of six loops: at most 1,008 would be possible.
  expect(answered.history.length).toBeGreaterThan(600);
});
