import { describe, expect, it } from "vitest";
import { exitCode, Failure } from "../../../src/model/failure.ts";
import { startServedClient } from "../../support/service/client-harness.ts";
import { allScopes, reply, sendJson } from "../../support/service/stub-service.ts";

const minute = 60_000;
const asset = { endpoint: "/asset" };

describe("credentials", () => {
  it.each([400, 401, 403])(
    "A6: credentials rejected with %i are sent again only every five minutes",
    async (status) => {
      const { client, clock, stub, failureOf } = await startServedClient({
        respondToTokenRequest: () => status,
      });
      const failure = await failureOf(asset);
      expect(failure).toBeInstanceOf(Failure);
      expect(failure).toMatchObject({
        code: "credentials_rejected",
        family: "operator",
        exit: exitCode.credentials,
      });
      expect(client.health().authState).toBe("credentials_rejected");
      for (let at = 0; at < 60; at++) {
        expect((await failureOf(asset))?.code).toBe("credentials_rejected");
        await clock.advance(minute / 2);
      }
      const waits = stub.tokenRequests.map(({ at }, n) => at - (stub.tokenRequests[n - 1]?.at ?? -Infinity));
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(5 * minute);
      expect(stub.tokenRequests.length).toBeGreaterThan(4);
      expect(stub.requests).toEqual([]);
    },
  );

  it("A6: a rotated secret is used at once, without a restart", async () => {
    let secret = "the-old-secret";
    const { client, clock, failureOf } = await startServedClient(
      { respondToTokenRequest: ({ body }) => (body.client_secret === "the-new-secret" ? 200 : 401) },
      { readSecret: async () => `${secret}\n` },
    );
    expect((await failureOf(asset))?.code).toBe("credentials_rejected");
    secret = "the-new-secret";
    expect(await failureOf(asset)).toBeUndefined();
    expect(client.health().authState).toBe("ok");
    expect(clock.monotonic()).toBe(0);
  });

  it("A6: rejected credentials have no effect until the current token expires", async () => {
    const { client, clock, send, failureOf } = await startServedClient({
      respondToTokenRequest: ({ count }) => (count === 1 ? 200 : 401),
    });
    await send(asset);
    await clock.advance(20 * 60 * minute);
    await send(asset);
    await clock.advance(1);
    expect(await failureOf(asset)).toBeUndefined();
    expect(client.health().authState).toBe("credentials_rejected");
    await clock.advance(5 * 60 * minute);
    expect((await failureOf(asset))?.code).toBe("credentials_rejected");
  });

  it("fails with secret_unreadable if the secret cannot be read", async () => {
    const readSecret = () => Promise.reject(new Error("ENOENT"));
    const { stub, failureOf } = await startServedClient({}, { readSecret });
    const failure = await failureOf(asset);
    expect(failure).toMatchObject({ code: "secret_unreadable", exit: exitCode.credentials });
    expect(stub.tokenRequests).toEqual([]);
  });

  it.each([
    "<html>sign in</html>",
    "{}",
    "",
    '{"access_token": 7}',
    '{"access_token":"two words"}',
    "[1]",
    "null",
  ])("A7: 200 with the body %s is auth_malformed, not rejected credentials", async (text) => {
    const { client, stub, logLines, failureOf } = await startServedClient({
      respondToTokenRequest: (_, response) => void response.end(text),
    });
    const failure = await failureOf(asset);
    expect(failure).toMatchObject({ code: "auth_malformed", family: "retry" });
    expect(client.health().authState).toBe("auth_malformed");
    expect(stub.tokenRequests.length).toBeLessThanOrEqual(6);
    if (text.includes("sign")) expect(JSON.stringify([logLines, failure?.message])).not.toContain("sign");
  });

  it.each([301, 302, 303, 307, 308])(
    "A8: a %i redirect never sends the secret to another address",
    async (status) => {
      const { stub: elsewhere } = await startServedClient();
      const { stub, failureOf } = await startServedClient({
        respondToTokenRequest: (_, response) => {
          response.writeHead(status, { location: `${elsewhere.baseUrl}/v3/oauth/token` });
          response.end();
        },
      });
      const failure = await failureOf(asset);
      expect(failure).toMatchObject({ code: "auth_unreachable", family: "retry" });
      expect(failure?.message).toContain(`${stub.baseUrl}/v3/oauth/token redirects (${status})`);
      expect(elsewhere.tokenRequests).toEqual([]);
      expect(stub.tokenRequests.length).toBeLessThanOrEqual(6);
    },
  );

  it.each([404, 405, 410])(
    "A6: a token endpoint that answers %i refuses no credentials: the client tries again",
    async (status) => {
      let isUnderMaintenance = true;
      const { failureOf } = await startServedClient({
        respondToTokenRequest: (_, response) =>
          isUnderMaintenance ? reply(response, status) : sendJson(response, { access_token: "good" }),
      });
      const failure = await failureOf(asset);
      expect(failure).toMatchObject({ code: "auth_unreachable", family: "retry" });
      expect(failure?.summary).toMatch(/\/v3\/oauth\/token answered \d+: check service.authUrl/);
      isUnderMaintenance = false;
      expect(await failureOf(asset)).toBeUndefined();
    },
  );

  it("A8: a redirect of a page is not followed", async () => {
    const { stub: elsewhere } = await startServedClient();
    const { failureOf } = await startServedClient({
      respond: (_, response) => {
        response.writeHead(302, { location: `${elsewhere.baseUrl}/v3/asset` });
        response.end();
      },
    });
    expect((await failureOf(asset))?.code).toBe("redirect_refused");
    expect(elsewhere.requests).toEqual([]);
  });
});

describe("scopes", () => {
  const caps = { endpoint: "/market-cap" };

  const bars = { endpoint: "/ohlcv" };

  it("A11: a 403 that repeats parks only that stream, is retried every ten minutes, and recovers when the scope is granted", async () => {
    let profile = "narrow";
    let isDown = false;
    const { client, clock, stub, failureOf } = await startServedClient({
      // The response lists no scopes, and a token keeps the scopes that it was granted with.
      respondToTokenRequest: (_, response, count) =>
        isDown
          ? reply(response, 503)
          : sendJson(response, { access_token: `${profile}-${count}`, expires_in: 86_400 }),
      respond: ({ path, token }) => (path === "/v3/ohlcv" && token?.startsWith("narrow") ? 403 : 200),
    });
    const failure = await failureOf(bars);
    expect(failure).toMatchObject({ code: "forbidden", family: "operator", exit: exitCode.incomplete });
    expect(failure?.message).toContain("read:ohlcv");
    expect(client.health().parkedEndpoints.map(({ scopes }) => scopes)).toEqual([["read:ohlcv"]]);
    for (let at = 0; at < 9; at++) {
      expect((await failureOf(bars))?.code).toBe("forbidden");
      expect(await failureOf(asset)).toBeUndefined();
      await clock.advance(minute);
    }
    expect(stub.requests.filter(({ path }) => path === "/v3/ohlcv")).toHaveLength(3);
    profile = "wide";
    isDown = true;
    await clock.advance(2 * minute);
    expect((await failureOf(bars))?.code).toBe("auth_unreachable");
    // The refresh failed, so the request was not parked again.
    isDown = false;
    expect(await failureOf(bars)).toBeUndefined();
    expect(client.health().parkedEndpoints).toEqual([]);
  });

  it.each([
    ["lists the scope", allScopes],
    ["lists no scopes", undefined],
  ])("A11: a single 403 parks nothing, if the token %s", async (_, scope) => {
    const { client, clock, stub, failureOf } = await startServedClient({
      token: { scope },
      respond: ({ count }) => (count === 1 ? 403 : 200),
    });
    expect(await failureOf(caps)).toBeUndefined();
    expect(clock.monotonic()).toBeLessThan(5_000);
    expect(client.health().parkedEndpoints).toEqual([]);
    expect(stub.tokenRequests).toHaveLength(1);
  });

  it("A11: what cannot be fetched later is probed every minute, with a new token every ten", async () => {
    const scope = allScopes.replace("read:market-cap ", "");
    const { clock, stub, failureOf } = await startServedClient({ token: { scope }, respond: () => 403 });
    // The token lacks the scope, so the first 403 decides.
    const failure = await failureOf(caps);
    expect(failure?.summary).toMatch(
      /\/market-cap \(403\): the scope read:market-cap is missing: .* every minute$/,
    );
    expect(stub.requests).toHaveLength(1);
    for (let second = 0; second < 3600; second += 5) {
      await clock.advance(5_000);
      expect((await failureOf(caps))?.code).toBe("forbidden");
    }
    expect(stub.requests).toHaveLength(61);
    expect(stub.tokenRequests).toHaveLength(7);
  });

  it("A11: an index that was denied before its type is retried with its type", async () => {
    let isAllowed = false;
    const { clock, codeOf } = await startServedClient({ respond: () => (isAllowed ? 200 : 403) });
    const ask = (indexId: string) => codeOf({ endpoint: "/ohlcv", query: { indexType: "GWA", indexId } });
    // One denied index shows nothing about the others, two show that the type is denied.
    expect([await ask("first"), await ask("second")]).toEqual(["index_forbidden", "forbidden"]);
    isAllowed = true;
    await clock.advance(11 * minute);
    expect([await ask("second"), await ask("first")]).toEqual([undefined, undefined]);
  });

  it("A11: a derivative type that is denied parks neither the others nor the scope", async () => {
    const { client, failureOf } = await startServedClient({
      respond: ({ path }) => (path.endsWith("/options") ? 403 : 200),
    });
    const ask = (derivativeType: string) =>
      failureOf({ endpoint: "/derivatives/ticker/{derivativeType}", params: { derivativeType } });
    expect(await ask("futures")).toBeUndefined();
    expect((await ask("options"))?.message).toContain("access to /derivatives/ticker/options is missing");
    expect(await ask("perpetuals")).toBeUndefined();
    expect(client.health().parkedEndpoints).toMatchObject([{ scopes: [] }]);
  });

  it.each([
    ["names nothing known", "openid service-internal:all"],
    ["is in upper case", allScopes.toUpperCase()],
    ["is a list", allScopes.split(" ")],
    ["is a list of one text", [allScopes]],
    ["is an object", { "read:market-cap": true }],
    ["is missing", undefined],
    ["lists others", "read:ohlcv"],
  ])("H12: a token whose scope %s is tried before a scope counts as missing", async (_, scope) => {
    const { stub, failureOf } = await startServedClient({ token: { scope } });
    expect(await failureOf(caps)).toBeUndefined();
    expect(stub.requests.map(({ path }) => path)).toEqual(["/v3/market-cap"]);
  });

  const withoutLx = allScopes.replace("read:LX ", "");
  // Without listed scopes the first 403 must be repeated.
  it.each([
    ["/index-ticker", withoutLx, 1],
    ["/ohlcv", withoutLx, 1],
    ["/ohlcv", undefined, 3],
  ])("A12: without the LX scope %s continues for the other indices", async (endpoint, scope, requests) => {
    const { stub, failureOf } = await startServedClient({
      token: { scope },
      respond: ({ query }) => (query.indexType === "LX" ? 403 : 200),
    });
    const ask = (indexType: string) => failureOf({ endpoint, query: { indexType } });
    expect((await ask("LX"))?.message).toContain("read:LX");
    expect(await ask("GWA")).toBeUndefined();
    expect((await ask("LX"))?.message).toContain("read:LX");
    const types = stub.requests.map(({ query }) => query.indexType);
    expect(types).toEqual([...Array<string>(requests).fill("LX"), "GWA"]);
  });

  it.each(["/index-ticker", "/ohlcv"])(
    "A12: with only the LX scope %s is requested for LX",
    async (endpoint) => {
      let isLxAllowed = true;
      const { stub, failureOf, codeOf } = await startServedClient({
        token: { scope: "read:LX" },
        respond: ({ query }) => (query.indexType === "LX" && isLxAllowed ? 200 : 403),
      });
      const ask = (indexType: string) => codeOf({ endpoint, query: { indexType } });
      const codes = [await ask("LX"), await ask("GWA"), await ask("GWA")];
      expect(codes).toEqual([undefined, "forbidden", "forbidden"]);
      expect(stub.requests.map(({ query }) => query.indexType)).toEqual(["LX", "GWA"]);
      // On a 403 the failure names the endpoint's own scope, not the LX scope that the token already has.
      isLxAllowed = false;
      const failure = await failureOf({ endpoint, query: { indexType: "LX" } });
      expect(failure?.message).toContain(`read:${endpoint.slice(1)} is missing`);
    },
  );
});
