import { describe, expect, it } from "vitest";
import { exitCode } from "../../../src/model/failure.ts";
import { requestPriority } from "../../../src/service/http/request.ts";
import { readPage, startServedClient } from "../../support/service/client-harness.ts";
import { allScopes, hang, reply, sendGzip, sendJson } from "../../support/service/stub-service.ts";

const minute = 60_000;
const hour = 60 * minute;
const asset = { endpoint: "/asset" };

describe("access tokens", () => {
  it("sends one JSON token request with the audience for concurrent callers, and caches the token", async () => {
    const { client, clock, stub, send } = await startServedClient();
    await clock.runUntil(Promise.all([1, 2, 3].map(() => client.request(asset, readPage))));
    await send(asset);
    expect(stub.tokenRequests.map(({ body }) => body)).toEqual([
      {
        grant_type: "client_credentials",
        client_id: "tester",
        client_secret: "a-secret-for-tests",
        audience: stub.baseUrl,
      },
    ]);
    expect(stub.requests.map(({ token }) => token)).toEqual(["token-1", "token-1", "token-1", "token-1"]);
  });

  it("A1: an expired token is refreshed once, and the same requests are sent again", async () => {
    const { client, clock, stub } = await startServedClient({
      respond: ({ token }, response) =>
        token === "token-1" ? reply(response, 401) : sendGzip(response, { content: [{ id: "a" }] }),
    });
    const requests = ["x", "y", "z"].map((id) =>
      client.request({ endpoint: "/ohlcv", query: { startAfter: id } }, readPage),
    );
    const pages = await clock.runUntil(Promise.all(requests));
    expect(pages.map(({ rows }) => rows)).toEqual([1, 1, 1]);
    expect(stub.tokenRequests).toHaveLength(2);
    const renewed = stub.requests.filter(({ token }) => token === "token-2");
    expect(renewed.map(({ query }) => query.startAfter).sort()).toEqual(["x", "y", "z"]);
    expect(clock.monotonic()).toBe(0);
  });

  it("A2: a service that rejects every token gets two requests and one cross-check, then rare probes", async () => {
    const { client, clock, stub, failureOf, codeOf } = await startServedClient({ respond: () => 401 });
    expect(await failureOf(asset)).toMatchObject({ code: "auth_failed", exit: exitCode.credentials });
    expect(stub.requests.map(({ path }) => path.split("/")[2])).toEqual(["asset", "asset", "market"]);
    expect(stub.tokenRequests).toHaveLength(2);
    expect(client.health().authState).toBe("auth_failed");

    const times: number[] = [];
    for (let at = 0; at < 60; at++) {
      const before = stub.requests.length;
      expect(await codeOf(asset)).toBe("auth_failed");
      if (stub.requests.length > before) times.push(clock.monotonic());
      await clock.advance(30_000);
    }
    const waits = times.map((time, at) => time - (times[at - 1] ?? 0));
    expect(waits.length).toBeLessThan(8);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(minute);
    expect(waits.at(-1)).toBeGreaterThan(3 * minute);
  });

  const tickers = ["futures", "perpetuals", "options"].map((derivativeType) => ({
    endpoint: "/derivatives/ticker/{derivativeType}",
    params: { derivativeType },
  }));
  const [ticker = asset] = tickers;
  const caps = { endpoint: "/market-cap" };

  it("A2: an endpoint that rejects tokens which others accept is parked alone, probed at growing intervals, and recovers", async () => {
    let isBroken = true;
    const { client, clock, stub, failureOf, codeOf } = await startServedClient({
      respond: ({ path }) => (isBroken && path.includes("/ticker/") ? 401 : 200),
    });
    for (let at = 0; at < 120; at++) {
      const [cap, ...others] = await Promise.all([caps, ...tickers].map(failureOf));
      expect([cap, client.health().authState]).toEqual([undefined, "ok"]);
      for (const failure of others)
        expect(failure).toMatchObject({ code: "auth_failed", exit: exitCode.incomplete });
      await clock.advance(minute);
    }
    const rejected = stub.requests.filter(({ path }) => path.includes("/ticker/")).map(({ at }) => at);
    const waits = rejected.map((at, n) => at - (rejected[n - 1] ?? 0)).filter((wait) => wait > 0);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(minute);
    expect(waits.at(-1)).toBeGreaterThan(25 * minute);
    expect(waits.length).toBeGreaterThan(4);
    expect(rejected.length).toBeLessThan(20);
    expect(stub.tokenRequests.length).toBeLessThan(12);
    isBroken = false;
    await clock.advance(40 * minute);
    for (const request of tickers) expect(await codeOf(request)).toBeUndefined();
  });

  const gwa = { endpoint: "/index-ticker", query: { indexType: "GWA" } };
  const lx = { endpoint: "/index-ticker", query: { indexType: "LX" } };
  const bars = { endpoint: "/ohlcv", query: { indexType: "GWA" } };

  it.each([
    ["of two index types", [gwa, lx]],
    ["together with another endpoint", [gwa, bars]],
  ])("A2: an endpoint that rejects tokens %s does not affect the others", async (_, rejecting) => {
    let brokenPaths: string[] = [];
    const { client, failureOf, codeOf } = await startServedClient({
      respond: ({ path }) => (brokenPaths.includes(path) ? 401 : 200),
    });
    // The endpoints that will break succeeded last, so they would be the first cross-checks.
    for (const request of [caps, asset, ...rejecting]) expect(await codeOf(request)).toBeUndefined();
    brokenPaths = rejecting.map(({ endpoint }) => `/v3${endpoint}`);
    for (const request of rejecting)
      expect(await failureOf(request)).toMatchObject({ exit: exitCode.incomplete });
    expect([await codeOf(caps), client.health().authState]).toEqual([undefined, "ok"]);
  });

  it("A2: one such endpoint does not stop the others from recovering after all rejected the token", async () => {
    let answering: string | undefined;
    const { client, clock, failureOf, codeOf } = await startServedClient({
      respond: ({ path }) => (answering !== undefined && path.includes(answering) ? 200 : 401),
    });
    expect(await codeOf(ticker)).toBe("auth_failed");
    expect(client.health().authState).toBe("auth_failed");
    answering = "/asset";
    await clock.advance(2 * minute);
    expect((await failureOf(ticker))?.exit).toBe(exitCode.incomplete);
    expect(client.health().authState).toBe("ok");
    expect(await codeOf(asset)).toBeUndefined();
  });

  it("A2: a token revoked twice in a row does not park the endpoint that reports it", async () => {
    const revoked = new Set<string>();
    let revocations = 0;
    const { client, failureOf, codeOf } = await startServedClient({
      async respond({ path, token = "" }, response) {
        if (path.includes("/ticker/") && revocations < 2) {
          revocations++;
          // The token is valid until now.
          expect(await codeOf(caps)).toBeUndefined();
          revoked.add(token);
        }
        if (revoked.has(token)) reply(response, 401);
        else reply(response);
      },
    });
    expect((await failureOf(ticker))?.exit).toBe(exitCode.credentials);
    expect(revocations).toBe(2);
    expect([await codeOf(ticker), client.health().authState]).toEqual([undefined, "ok"]);
  });

  it("A2: a failed cross-check decides nothing", async () => {
    let down = true;
    const { client, failureOf } = await startServedClient({
      respond: ({ path }) => (path.includes("/ticker/") ? 401 : down ? 503 : 404),
    });
    expect((await failureOf({ ...ticker, maxAttempts: 2 }))?.family).toBe("retry");
    expect(client.health().authState).toBe("ok");
    down = false;
    expect((await failureOf(ticker))?.exit).toBe(exitCode.incomplete);
  });

  it("A3: audiences do not share tokens", async () => {
    const { client, clock, stub } = await startServedClient();
    const ws = stub.baseUrl.replace("http", "ws");
    const [rest, feed] = await clock.runUntil(
      Promise.all([client.tokensOf(stub.baseUrl).get(), client.tokensOf(ws).get()]),
    );
    expect(rest.text).not.toBe(feed.text);
    client.tokensOf(ws).reportRejected(rest);
    expect(await client.tokensOf(ws).get()).toBe(feed);
    expect(stub.tokenRequests.map(({ body }) => body.audience).sort()).toEqual([stub.baseUrl, ws].sort());
  });

  it.each([0, -5, 1, "3", "soon", null, undefined, 1e12, Number.NaN])(
    "A4: expires_in %s causes at most one token request per 30 seconds",
    async (expires_in) => {
      const { client, clock, stub } = await startServedClient({ token: { expires_in } });
      for (let at = 0; at < 60; at++) {
        await clock.runUntil(client.tokensOf(stub.baseUrl).get());
        await clock.advance(1000);
      }
      expect(stub.tokenRequests.length).toBeLessThanOrEqual(2);
      const { firstSeenAt, expiresAt } = await clock.runUntil(client.tokensOf(stub.baseUrl).get());
      expect(expiresAt - firstSeenAt).toBeGreaterThanOrEqual(30_000);
      expect(expiresAt - firstSeenAt).toBeLessThanOrEqual(86_400_000);
    },
  );

  it("A4: a cached token returned with its remaining lifetime is used until it expires, with few requests", async () => {
    const { client, clock, stub } = await startServedClient({
      respondToTokenRequest: (_, response) =>
        sendJson(response, {
          access_token: "cached",
          expires_in: Math.round(600 - clock.monotonic() / 1000),
        }),
    });
    for (let at = 0; at < 90; at++) {
      const token = await clock.runUntil(client.tokensOf(stub.baseUrl).get());
      expect(token.firstSeenAt).toBe(0);
      await clock.advance(6000);
    }
    expect(stub.tokenRequests.length).toBeGreaterThan(1);
    expect(stub.tokenRequests.length).toBeLessThanOrEqual(6);
  });

  it("A4: a 401 causes a refresh however new the token is, even if the service returns the same token", async () => {
    const { stub, codeOf } = await startServedClient({
      token: { access_token: "cached", expires_in: 3600 },
      respond: ({ count }) => (count === 1 ? 401 : 200),
    });
    expect(await codeOf(asset)).toBeUndefined();
    expect(stub.tokenRequests).toHaveLength(2);
  });

  it("A5: a four-hour outage of the token endpoint has no effect", async () => {
    let down = false;
    const { client, clock, stub, send, codeOf } = await startServedClient({
      respondToTokenRequest: () => (down ? 503 : 200),
    });
    await send(asset);
    await clock.advance(19 * hour);
    down = true;
    const before = stub.tokenRequests.length;
    for (let at = 0; at < 4 * 60; at++) {
      await clock.advance(minute);
      expect(await codeOf(asset)).toBeUndefined();
    }
    expect(stub.tokenRequests.length - before).toBeGreaterThan(10);
    expect(stub.tokenRequests.length - before).toBeLessThan(120);
    down = false;
    await clock.advance(10 * minute);
    await send(asset);
    await send(asset);
    expect(stub.requests.at(-1)?.token).not.toBe("token-1");
    expect(client.health().authState).toBe("ok");
  });

  it("A5: a token endpoint that hangs for 40 seconds is asked every three, and the first token counts", async () => {
    let isHanging = true;
    const { client, clock, stub, pass } = await startServedClient({
      respondToTokenRequest: (_, response) => (isHanging ? hang(clock, response) : 200),
    });
    const answer = client.request(asset, readPage);
    await pass(3_100);
    expect(stub.tokenRequests).toHaveLength(2);
    await pass(36_900);
    isHanging = false;
    const back = clock.monotonic();
    await clock.runUntil(answer);
    expect(clock.monotonic() - back).toBeLessThanOrEqual(3_000);
    expect(stub.tokenRequests.length).toBeLessThanOrEqual(16);
  });

  it("A5: a snapshot does not wait for a token without end", async () => {
    const { clock, codeOf } = await startServedClient({ respondToTokenRequest: () => 503 });
    const snapshot = { ...asset, priority: requestPriority.snapshot };
    expect(await codeOf(snapshot)).toBe("auth_unreachable");
    expect(clock.monotonic()).toBeGreaterThanOrEqual(20 * minute);
    expect(clock.monotonic()).toBeLessThan(40 * minute);
  });

  it("A2: after two revocations in a row the next token is asked for within 75 seconds", async () => {
    const { clock, stub, codeOf } = await startServedClient({
      respond: ({ token }) => (["token-1", "token-2"].includes(token ?? "") ? 401 : 200),
    });
    while ((await codeOf(asset)) !== undefined) await clock.advance(1_000);
    expect(stub.tokenRequests).toHaveLength(3);
    expect(clock.monotonic()).toBeLessThanOrEqual(75_000);
  });

  it("A9: a wall clock step of a day does not change the lifetime of a token", async () => {
    const { client, clock, stub } = await startServedClient();
    const first = await clock.runUntil(client.tokensOf(stub.baseUrl).get());
    clock.stepWallClock(24 * hour);
    expect(await client.tokensOf(stub.baseUrl).get()).toBe(first);
    clock.stepWallClock(-48 * hour);
    expect(await client.tokensOf(stub.baseUrl).get()).toBe(first);
    await clock.advance(24 * hour);
    expect((await clock.runUntil(client.tokensOf(stub.baseUrl).get())).text).toBe("token-2");
  });

  it("A10: after 25 hours of suspension the old token is not sent any more", async () => {
    const { clock, stub, send } = await startServedClient();
    await send(asset);
    clock.suspend(25 * hour);
    await send(asset);
    expect(stub.requests.map(({ token }) => token)).toEqual(["token-1", "token-2"]);
  });

  it("returns the scopes of the token, and undefined if the service lists none", async () => {
    const { client, clock, stub } = await startServedClient({
      respondToTokenRequest: (_, response, count) =>
        sendJson(response, {
          access_token: `t${count}`,
          expires_in: 60,
          ...(count === 1 ? { scope: allScopes } : {}),
        }),
    });
    const first = await clock.runUntil(client.tokensOf(stub.baseUrl).get());
    expect(first.scopes?.has("read:LX")).toBe(true);
    client.tokensOf(stub.baseUrl).reportRejected(first);
    expect((await clock.runUntil(client.tokensOf(stub.baseUrl).get())).scopes).toBeUndefined();
  });
});
