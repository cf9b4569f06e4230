import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { exitCode, Failure } from "../../../src/model/failure.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import {
  allScopes,
  grantWell,
  json,
  type StubOptions,
  type StubService,
  startStub,
  zipped,
} from "../../support/service/stub-service.ts";

const minute = 60_000;
const hour = 60 * minute;
const asset = { endpoint: "/asset" };

let clock: TurnedClock;
let stub: StubService | undefined;
beforeEach(() => {
  clock = new TurnedClock();
});
afterEach(async () => stub?.stop());

async function start(options: Omit<StubOptions, "clock">) {
  stub = await startStub({ clock, ...options });
  return { ...clientOf(stub.baseUrl, clock), stub };
}

const failureOf = async (work: Promise<unknown>): Promise<Failure | undefined> => {
  try {
    await clock.runUntil(work);
    return undefined;
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
};
const codeOf = async (work: Promise<unknown>) => (await failureOf(work))?.code;

describe("access tokens", () => {
  it("asks once for all who need one, as JSON, with the audience, and keeps the token", async () => {
    const { client, stub } = await start({});
    await clock.runUntil(Promise.all([1, 2, 3].map(() => client.request(asset, readPage))));
    await clock.runUntil(client.request(asset, readPage));
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

  it("A1: a token that ends in the middle is refreshed once, and the same requests go again", async () => {
    const { client, stub } = await start({
      answer: ({ token }, response) =>
        token === "token-1" ? json(response, {}, 401) : zipped(response, { content: [{ id: "a" }] }),
    });
    const asks = ["x", "y", "z"].map((id) =>
      client.request({ endpoint: "/ohlcv", query: { startAfter: id } }, readPage),
    );
    const pages = await clock.runUntil(Promise.all(asks));
    expect(pages.map(({ rows }) => rows)).toEqual([1, 1, 1]);
    expect(stub.tokenRequests).toHaveLength(2);
    const renewed = stub.requests.filter(({ token }) => token === "token-2");
    expect(renewed.map(({ query }) => query.startAfter).sort()).toEqual(["x", "y", "z"]);
    expect(clock.monotonic()).toBe(0);
  });

  it("A2: a service that refuses every token is asked twice, and once elsewhere, then probed calmly", async () => {
    const { client, stub } = await start({ answer: (_, response) => json(response, {}, 401) });
    expect(await failureOf(client.request(asset, readPage))).toMatchObject({
      code: "auth_failed",
      exit: exitCode.credentials,
    });
    expect(stub.requests.map(({ path }) => path.split("/")[2])).toEqual(["asset", "asset", "market"]);
    expect(stub.tokenRequests).toHaveLength(2);
    expect(client.health().rest).toBe("auth_failed");

    const times: number[] = [];
    for (let at = 0; at < 60; at++) {
      const before = stub.requests.length;
      expect(await codeOf(client.request(asset, readPage))).toBe("auth_failed");
      if (stub.requests.length > before) times.push(clock.monotonic());
      await clock.advance(30_000);
    }
    const waits = times.map((time, at) => time - (times[at - 1] ?? 0));
    expect(waits.length).toBeLessThan(8);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(minute);
    expect(waits.at(-1)).toBeGreaterThan(3 * minute);
  });

  it("A2: heals at the next probe when the service takes tokens again", async () => {
    let broken = true;
    const { client } = await start({
      answer: (_, response) => (broken ? json(response, {}, 401) : zipped(response, { content: [] })),
    });
    expect(await codeOf(client.request(asset, readPage))).toBe("auth_failed");
    broken = false;
    await clock.advance(2 * minute);
    expect(await codeOf(client.request(asset, readPage))).toBeUndefined();
    expect(client.health().rest).toBe("ok");
  });

  const tickers = ["futures", "perpetuals", "options"].map((derivativeType) => ({
    endpoint: "/derivatives/ticker/{derivativeType}",
    params: { derivativeType },
  }));
  const caps = { endpoint: "/market-cap" };

  it("A2: an endpoint that refuses tokens which others accept waits alone, is probed ever more rarely, and heals", async () => {
    let broken = true;
    const { client, stub } = await start({
      answer: ({ path }, response) =>
        broken && path.includes("/ticker/") ? json(response, {}, 401) : zipped(response, { content: [] }),
    });
    for (let at = 0; at < 120; at++) {
      const [cap, ...others] = await Promise.all(
        [caps, ...tickers].map((ask) => failureOf(client.request(ask, readPage))),
      );
      expect([cap, client.health().rest]).toEqual([undefined, "ok"]);
      for (const failure of others)
        expect(failure).toMatchObject({ code: "auth_failed", exit: exitCode.incomplete });
      await clock.advance(minute);
    }
    const refused = stub.requests.filter(({ path }) => path.includes("/ticker/")).map(({ at }) => at);
    const waits = refused.map((at, n) => at - (refused[n - 1] ?? 0)).filter((wait) => wait > 0);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(minute);
    expect(waits.at(-1)).toBeGreaterThan(25 * minute);
    expect(waits.length).toBeGreaterThan(4);
    expect(refused.length).toBeLessThan(20);
    expect(stub.tokenRequests.length).toBeLessThan(12);
    broken = false;
    await clock.advance(40 * minute);
    for (const ask of tickers) expect(await codeOf(client.request(ask, readPage))).toBeUndefined();
  });

  const gwa = { endpoint: "/index-ticker", query: { indexType: "GWA" } };
  const lx = { endpoint: "/index-ticker", query: { indexType: "LX" } };
  const bars = { endpoint: "/ohlcv", query: { indexType: "GWA" } };

  it.each([
    ["for two kinds of index", [gwa, lx]],
    ["together with another", [gwa, bars]],
  ])("A2: an endpoint that refuses tokens %s takes nothing else with it", async (_, refusing) => {
    let broken: string[] = [];
    const { client } = await start({
      answer: ({ path }, response) =>
        broken.includes(path) ? json(response, {}, 401) : zipped(response, { content: [] }),
    });
    // Those that are to break were the last to answer, and would be asked first whether the token is good.
    for (const ask of [caps, asset, ...refusing])
      expect(await codeOf(client.request(ask, readPage))).toBeUndefined();
    broken = refusing.map(({ endpoint }) => `/v3${endpoint}`);
    for (const ask of refusing)
      expect(await failureOf(client.request(ask, readPage))).toMatchObject({ exit: exitCode.incomplete });
    expect([await codeOf(client.request(caps, readPage)), client.health().rest]).toEqual([undefined, "ok"]);
  });

  it("A2: one such endpoint does not keep the others from healing after all had refused", async () => {
    let answering: string | undefined;
    const { client } = await start({
      answer: ({ path }, response) =>
        answering !== undefined && path.includes(answering)
          ? zipped(response, { content: [] })
          : json(response, {}, 401),
    });
    const [ticker = asset] = tickers;
    expect(await codeOf(client.request(ticker, readPage))).toBe("auth_failed");
    expect(client.health().rest).toBe("auth_failed");
    answering = "/asset";
    await clock.advance(2 * minute);
    expect((await failureOf(client.request(ticker, readPage)))?.exit).toBe(exitCode.incomplete);
    expect(client.health().rest).toBe("ok");
    expect(await codeOf(client.request(asset, readPage))).toBeUndefined();
  });

  it("A2: a token that was accepted and is revoked, twice in a row, is no fault of the endpoint that meets it", async () => {
    const revoked = new Set<string>();
    let revocations = 0;
    const { client } = await start({
      async answer({ path, token = "" }, response) {
        if (path.includes("/ticker/") && revocations < 2) {
          revocations++;
          // Good until this very moment.
          expect(await codeOf(client.request(caps, readPage))).toBeUndefined();
          revoked.add(token);
        }
        if (revoked.has(token)) json(response, {}, 401);
        else zipped(response, { content: [] });
      },
    });
    const [ticker = asset] = tickers;
    expect((await failureOf(client.request(ticker, readPage)))?.exit).toBe(exitCode.credentials);
    expect(revocations).toBe(2);
    expect([await codeOf(client.request(ticker, readPage)), client.health().rest]).toEqual([undefined, "ok"]);
  });

  it("A2: a witness that does not answer decides nothing", async () => {
    let down = true;
    const { client } = await start({
      answer: ({ path }, response) => {
        if (path.includes("/ticker/")) return json(response, {}, 401);
        return down ? json(response, {}, 503) : json(response, {}, 404);
      },
    });
    const [ticker = asset] = tickers;
    expect((await failureOf(client.request({ ...ticker, attempts: 2 }, readPage)))?.family).toBe("retry");
    expect(client.health().rest).toBe("ok");
    down = false;
    expect((await failureOf(client.request(ticker, readPage)))?.exit).toBe(exitCode.incomplete);
  });

  it("A3: tokens of different audiences never meet", async () => {
    const { client, stub } = await start({});
    const ws = stub.baseUrl.replace("http", "ws");
    const [rest, feed] = await clock.runUntil(
      Promise.all([client.tokens.get(stub.baseUrl), client.tokens.get(ws)]),
    );
    expect(rest.text).not.toBe(feed.text);
    client.tokens.refused(ws, rest);
    expect(await client.tokens.get(ws)).toBe(feed);
    expect(stub.tokenRequests.map(({ body }) => body.audience).sort()).toEqual([stub.baseUrl, ws].sort());
  });

  it.each([0, -5, 1, "3", "soon", null, undefined, 1e12, Number.NaN])(
    "A4: expires_in %s costs at most one token request in 30 seconds",
    async (expires_in) => {
      const { client, stub } = await start({
        grant: (_, response, count) => json(response, { access_token: `token-${count}`, expires_in }),
      });
      for (let at = 0; at < 60; at++) {
        await clock.runUntil(client.tokens.get(stub.baseUrl));
        await clock.advance(1000);
      }
      expect(stub.tokenRequests.length).toBeLessThanOrEqual(2);
      const { issuedAt, endsAt } = await clock.runUntil(client.tokens.get(stub.baseUrl));
      expect(endsAt - issuedAt).toBeGreaterThanOrEqual(30_000);
      expect(endsAt - issuedAt).toBeLessThanOrEqual(86_400_000);
    },
  );

  it("A4: a cached token that comes back with its remaining time is used until its end, asked for calmly", async () => {
    const { client, stub } = await start({
      grant: (_, response) =>
        json(response, { access_token: "cached", expires_in: Math.round(600 - clock.monotonic() / 1000) }),
    });
    for (let at = 0; at < 90; at++) {
      const token = await clock.runUntil(client.tokens.get(stub.baseUrl));
      expect(token.issuedAt).toBe(0);
      await clock.advance(6000);
    }
    expect(stub.tokenRequests.length).toBeGreaterThan(1);
    expect(stub.tokenRequests.length).toBeLessThanOrEqual(6);
  });

  it("A4: a 401 earns a refresh however young the token is, also when the same token comes back", async () => {
    const { client, stub } = await start({
      grant: (_, response) => json(response, { access_token: "cached", expires_in: 3600 }),
      answer: (_, response, count) =>
        count === 1 ? json(response, {}, 401) : zipped(response, { content: [] }),
    });
    expect(await codeOf(client.request(asset, readPage))).toBeUndefined();
    expect(stub.tokenRequests).toHaveLength(2);
  });

  it("A5: an outage of the token endpoint of four hours goes by unseen", async () => {
    let down = false;
    const { client, stub } = await start({
      grant: (request, response, count) =>
        down ? json(response, {}, 503) : grantWell(request, response, count),
    });
    await clock.runUntil(client.request(asset, readPage));
    await clock.advance(19 * hour);
    down = true;
    const before = stub.tokenRequests.length;
    for (let at = 0; at < 4 * 60; at++) {
      await clock.advance(minute);
      expect(await codeOf(client.request(asset, readPage))).toBeUndefined();
    }
    expect(stub.tokenRequests.length - before).toBeGreaterThan(10);
    expect(stub.tokenRequests.length - before).toBeLessThan(120);
    down = false;
    await clock.advance(10 * minute);
    await clock.runUntil(client.request(asset, readPage));
    await clock.runUntil(client.request(asset, readPage));
    expect(stub.requests.at(-1)?.token).not.toBe("token-1");
    expect(client.health().rest).toBe("ok");
  });

  it("A9: a wall clock that jumps a day neither ends a token nor prolongs it", async () => {
    const { client, stub } = await start({});
    const first = await clock.runUntil(client.tokens.get(stub.baseUrl));
    clock.stepWall(24 * hour);
    expect(await client.tokens.get(stub.baseUrl)).toBe(first);
    clock.stepWall(-48 * hour);
    expect(await client.tokens.get(stub.baseUrl)).toBe(first);
    await clock.advance(24 * hour);
    expect((await clock.runUntil(client.tokens.get(stub.baseUrl))).text).toBe("token-2");
  });

  it("A10: after 25 hours of suspension the old token is not shown any more", async () => {
    const { client, stub } = await start({});
    await clock.runUntil(client.request(asset, readPage));
    clock.suspend(25 * hour);
    await clock.runUntil(client.request(asset, readPage));
    expect(stub.requests.map(({ token }) => token)).toEqual(["token-1", "token-2"]);
  });

  it("passes the scopes on, and says nothing about scopes that the service did not name", async () => {
    const { client, stub } = await start({
      grant: (_, response, count) =>
        json(response, {
          access_token: `t${count}`,
          expires_in: 60,
          ...(count === 1 ? { scope: allScopes } : {}),
        }),
    });
    const first = await clock.runUntil(client.tokens.get(stub.baseUrl));
    expect(first.scopes?.has("read:LX")).toBe(true);
    client.tokens.refused(stub.baseUrl, first);
    expect((await clock.runUntil(client.tokens.get(stub.baseUrl))).scopes).toBeUndefined();
  });
});
