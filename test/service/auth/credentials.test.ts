import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exitCode, Failure } from "../../../src/model/failure.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import {
  allScopes,
  grantWell,
  json,
  type StubService,
  startStub,
  zipped,
} from "../../support/service/stub-service.ts";

const minute = 60_000;
const asset = { endpoint: "/asset" };

let clock: TurnedClock;
const stubs: StubService[] = [];
beforeEach(() => {
  clock = new TurnedClock();
});
afterEach(async () => {
  for (const stub of stubs.splice(0)) await stub.stop();
});

async function start(options: Omit<Parameters<typeof startStub>[0], "clock">): Promise<StubService> {
  const stub = await startStub({ clock, ...options });
  stubs.push(stub);
  return stub;
}

const failureOf = (work: Promise<unknown>) =>
  clock.runUntil(
    work.then(
      () => undefined,
      (error: unknown) => error as Failure,
    ),
  );

describe("credentials", () => {
  it.each([400, 401, 403])(
    "A6: refused with %i, they are shown again only every five minutes",
    async (status) => {
      const stub = await start({
        grant: (_, response) => json(response, { error: "invalid_client" }, status),
      });
      const { client } = clientOf(stub.baseUrl, clock);
      const failure = await failureOf(client.request(asset, readPage));
      expect(failure).toBeInstanceOf(Failure);
      expect(failure).toMatchObject({
        code: "credentials_rejected",
        family: "operator",
        exit: exitCode.credentials,
      });
      expect(client.health().rest).toBe("credentials_rejected");
      for (let at = 0; at < 60; at++) {
        expect((await failureOf(client.request(asset, readPage)))?.code).toBe("credentials_rejected");
        await clock.advance(minute / 2);
      }
      const waits = stub.tokenRequests.map(({ at }, n) => at - (stub.tokenRequests[n - 1]?.at ?? -Infinity));
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(5 * minute);
      expect(stub.tokenRequests.length).toBeGreaterThan(4);
      expect(stub.requests).toEqual([]);
    },
  );

  it("A6: a rotated secret is picked up at once, without a restart", async () => {
    let secret = "the-old-one";
    const stub = await start({
      grant: (request, response, count) =>
        request.body.client_secret === "the-new-one"
          ? grantWell(request, response, count)
          : json(response, { error: "invalid_client" }, 401),
    });
    const { client } = clientOf(stub.baseUrl, clock, { readSecret: async () => `${secret}\n` });
    expect((await failureOf(client.request(asset, readPage)))?.code).toBe("credentials_rejected");
    secret = "the-new-one";
    expect(await failureOf(client.request(asset, readPage))).toBeUndefined();
    expect(client.health().rest).toBe("ok");
    expect(clock.monotonic()).toBe(0);
  });

  it("A6: credentials refused while a token lives harm nobody until its end", async () => {
    const stub = await start({
      grant: (request, response, count) =>
        count === 1 ? grantWell(request, response, count) : json(response, {}, 401),
    });
    const { client } = clientOf(stub.baseUrl, clock);
    await clock.runUntil(client.request(asset, readPage));
    await clock.advance(20 * 60 * minute);
    await clock.runUntil(client.request(asset, readPage));
    await clock.advance(1);
    expect(await failureOf(client.request(asset, readPage))).toBeUndefined();
    expect(client.health().rest).toBe("credentials_rejected");
    await clock.advance(5 * 60 * minute);
    expect((await failureOf(client.request(asset, readPage)))?.code).toBe("credentials_rejected");
  });

  it("says so when the secret cannot be read", async () => {
    const stub = await start({});
    const readSecret = () => Promise.reject(new Error("ENOENT"));
    const { client } = clientOf(stub.baseUrl, clock, { readSecret });
    const failure = await failureOf(client.request(asset, readPage));
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
  ])("A7: a token endpoint that answers 200 with %s is told from one that refuses", async (text) => {
    const stub = await start({ grant: (_, response) => void response.end(text) });
    const { client, logged } = clientOf(stub.baseUrl, clock);
    const failure = await failureOf(client.request(asset, readPage));
    expect(failure).toMatchObject({ code: "auth_malformed", family: "retry" });
    expect(client.health().rest).toBe("auth_malformed");
    expect(stub.tokenRequests.length).toBeLessThanOrEqual(6);
    if (text.includes("sign")) expect(JSON.stringify([logged, failure?.message])).not.toContain("sign");
  });

  it.each([301, 302, 303, 307, 308])("A8: a %i never carries the secret elsewhere", async (status) => {
    const elsewhere = await start({});
    const stub = await start({
      grant: (_, response) => {
        response.writeHead(status, { location: `${elsewhere.baseUrl}/v3/oauth/token` });
        response.end();
      },
    });
    const { client } = clientOf(stub.baseUrl, clock);
    expect((await failureOf(client.request(asset, readPage)))?.code).toBe("redirect_refused");
    expect(elsewhere.tokenRequests).toEqual([]);
    expect(stub.tokenRequests).toHaveLength(1);
  });

  it("A8: nor is a redirect of a page followed", async () => {
    const elsewhere = await start({});
    const stub = await start({
      answer: (_, response) => {
        response.writeHead(302, { location: `${elsewhere.baseUrl}/v3/asset` });
        response.end();
      },
    });
    const { client } = clientOf(stub.baseUrl, clock);
    expect((await failureOf(client.request(asset, readPage)))?.code).toBe("redirect_refused");
    expect(elsewhere.requests).toEqual([]);
  });
});

describe("scopes", () => {
  const caps = { endpoint: "/market-cap" };

  it("A11: a 403 parks that stream alone, is asked again hourly, and heals when the scope comes", async () => {
    let profile = "narrow";
    let isDown = false;
    const stub = await start({
      // It does not tell its scopes, and a token keeps those that it was granted with.
      grant: (_, response, count) =>
        isDown
          ? json(response, {}, 503)
          : json(response, { access_token: `${profile}-${count}`, expires_in: 86_400 }),
      answer: ({ path, token }, response) =>
        path === "/v3/market-cap" && token?.startsWith("narrow")
          ? json(response, {}, 403)
          : zipped(response, { content: [] }),
    });
    const { client } = clientOf(stub.baseUrl, clock);
    const failure = await failureOf(client.request(caps, readPage));
    expect(failure).toMatchObject({ code: "forbidden", exit: exitCode.incomplete });
    expect(failure?.message).toContain("read:market-cap");
    expect(client.health().parked.map(({ scopes }) => scopes)).toEqual([["read:market-cap"]]);
    for (let at = 0; at < 59; at++) {
      expect((await failureOf(client.request(caps, readPage)))?.code).toBe("forbidden");
      expect(await failureOf(client.request(asset, readPage))).toBeUndefined();
      await clock.advance(minute);
    }
    expect(stub.requests.filter(({ path }) => path === "/v3/market-cap")).toHaveLength(1);
    profile = "wide";
    isDown = true;
    await clock.advance(2 * minute);
    expect((await failureOf(client.request(caps, readPage)))?.code).toBe("auth_unreachable");
    // Without a new token nothing was found out, so that it does not wait for another hour.
    isDown = false;
    expect(await failureOf(client.request(caps, readPage))).toBeUndefined();
    expect(client.health().parked).toEqual([]);
  });

  it("A11: a scope that the token lacks is not even asked for, until an hourly new token brings it", async () => {
    let scope = allScopes.replace("read:market-cap ", "");
    const stub = await start({
      grant: (_, response, count) =>
        json(response, { access_token: `token-${count}`, expires_in: 86_400, scope }),
    });
    const { client } = clientOf(stub.baseUrl, clock);
    expect((await failureOf(client.request(caps, readPage)))?.code).toBe("forbidden");
    scope = allScopes;
    await clock.advance(59 * minute);
    expect((await failureOf(client.request(caps, readPage)))?.code).toBe("forbidden");
    expect([stub.requests.length, stub.tokenRequests.length]).toEqual([0, 1]);
    await clock.advance(2 * minute);
    expect(await failureOf(client.request(caps, readPage))).toBeUndefined();
    expect(stub.requests.map(({ token }) => token)).toEqual(["token-2"]);
  });

  it.each(["/index-ticker", "/ohlcv"])(
    "A12: without the LX scope %s goes on for the other indices",
    async (endpoint) => {
      const scope = allScopes.replace("read:LX ", "");
      const stub = await start({
        grant: (_, response) => json(response, { access_token: "token-1", expires_in: 86_400, scope }),
      });
      const { client } = clientOf(stub.baseUrl, clock);
      const lx = await failureOf(client.request({ endpoint, query: { indexType: "LX" } }, readPage));
      expect(lx?.message).toContain("read:LX");
      expect(
        await failureOf(client.request({ endpoint, query: { indexType: "GWA" } }, readPage)),
      ).toBeUndefined();
      expect(stub.requests.map(({ query }) => query.indexType)).toEqual(["GWA"]);
    },
  );

  it.each(["/index-ticker", "/ohlcv"])(
    "A12: with the LX scope alone %s is asked for LX",
    async (endpoint) => {
      let status = 200;
      const stub = await start({
        grant: (_, response) => json(response, { access_token: "t", expires_in: 86_400, scope: "read:LX" }),
        answer: (_, response) => json(response, { content: [] }, status),
      });
      const { client } = clientOf(stub.baseUrl, clock);
      const ask = (indexType: string) =>
        failureOf(client.request({ endpoint, query: { indexType } }, readPage));
      expect(await ask("LX")).toBeUndefined();
      expect((await ask("GWA"))?.code).toBe("forbidden");
      expect(stub.requests.map(({ query }) => query.indexType)).toEqual(["LX"]);
      // A service that wants the endpoint's own scope as well is believed, and not taken to want what the token has.
      status = 403;
      expect((await ask("LX"))?.message).toContain(`read:${endpoint.slice(1)} is missing`);
    },
  );

  it("A12: a 403 on LX leaves the other indices alone too", async () => {
    const stub = await start({
      grant: (_, response) => json(response, { access_token: "token-1", expires_in: 86_400 }),
      answer: ({ query }, response) =>
        query.indexType === "LX" ? json(response, {}, 403) : zipped(response, { content: [] }),
    });
    const { client } = clientOf(stub.baseUrl, clock);
    const ask = (indexType: string) => client.request({ endpoint: "/ohlcv", query: { indexType } }, readPage);
    expect((await failureOf(ask("LX")))?.message).toContain("read:LX");
    expect(await failureOf(ask("MWA"))).toBeUndefined();
  });
});
