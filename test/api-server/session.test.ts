import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { Fault } from "../simulator/faults.ts";
import { itOfSimulator } from "../support/simulator/server-under-test.ts";
import { WebSocketClient, WebSocketFixture } from "../support/simulator/websocket-client.ts";

let fixture: WebSocketFixture;
beforeAll(async () => {
  fixture = await WebSocketFixture.start();
});
afterEach(() => fixture.clear());
afterAll(() => fixture.stop());

const utc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const ERROR = (code: string) => ({
  ...{ event: "ERROR", code, message: expect.any(String), timestamp: expect.stringMatching(utc) },
});

describe("the connection", () => {
  it("“client connects to {ws_url} with a valid access_token query parameter … server sends CONNECTED”", async () => {
    const client = await fixture.connect();
    expect(client.messages).toEqual([{ event: "CONNECTED", timestamp: "2026-03-01T12:00:10.000Z" }]);
  });

  it("“when no valid token is supplied the response is 401”", async () => {
    const wsToken = await fixture.rest.fetchToken(fixture.simulator.wsUrl);
    for (const token of ["", "nonsense", `${wsToken}x`]) {
      const client = new WebSocketClient(fixture.url(token));
      expect((await client.waitForClose()).status).toBe(401);
    }
  });

  it("“Audience selects the target: the REST address or the websocket address”: a REST token is rejected", async () => {
    const client = new WebSocketClient(fixture.url(fixture.rest.token));
    expect((await client.waitForClose()).status).toBe(401);
  });

  it("“it must be used within 86400 seconds of being issued”", async () => {
    const token = await fixture.rest.fetchToken(fixture.simulator.wsUrl);
    fixture.clock.suspend(86_400_000);
    const client = new WebSocketClient(fixture.url(token));
    expect((await client.waitForClose()).status).toBe(401);
    await fixture.rest.signIn();
  });

  itOfSimulator("accepts a token that is percent-encoded in the URL", async () => {
    const odd = await WebSocketFixture.start({ quirks: { awkwardTokens: true } });
    onTestFinished(() => odd.stop());
    expect((await odd.connect()).messagesOf("CONNECTED").length).toBe(1);
  });

  itOfSimulator("logs attempts without their token", async () => {
    fixture.simulator.requests.clear();
    await fixture.connect();
    expect(fixture.simulator.requests.list.at(-1)).toMatchObject({ target: "/v3/stream", status: 101 });
  });
});

describe("liveness", () => {
  it("“PING: liveness check; the server answers PONG”, with requestId as “echo, optional”", async () => {
    const client = await fixture.connect();
    client.send({ event: "PING", requestId: 7 });
    client.send({ event: "PING" });
    expect(await client.waitFor("PONG", 2)).toEqual([
      { event: "PONG", requestId: 7, timestamp: expect.stringMatching(utc) },
      { event: "PONG", timestamp: expect.stringMatching(utc) },
    ]);
  });

  it("answers pings of the websocket protocol", async () => {
    const client = await fixture.connect();
    client.socket.ping();
    await once(client.socket, "pong");
    expect(client.pongs).toBe(1);
  });

  it("sends PINGs, every other one with a requestId, to a client that replies", async () => {
    const client = await fixture.connect();
    await fixture.clock.runUntil(client.waitFor("PING", 4));
    expect(client.messagesOf("PING").map(({ requestId }) => requestId)).toEqual([1, undefined, 3, undefined]);
  });

  it("“The server may close a connection when a client does not answer its PING”", async () => {
    const client = await fixture.connect({ answersPings: false });
    const start = fixture.clock.monotonic();
    expect((await fixture.clock.runUntil(client.waitForClose())).code).toBe(1008);
    expect(fixture.clock.monotonic() - start).toBeLessThanOrEqual(60_000);
  });
});

describe("requests that fail", () => {
  const unacceptable =
    "400: unacceptable request, e.g. an invalid event type or a missing required parameter";
  const notFound = "404: resource not found, typically a marketId or exchangeId in a subscription";
  it.each([
    [unacceptable, "no JSON", "{"],
    [unacceptable, "no object", "[]"],
    [unacceptable, "no event", {}],
    [unacceptable, "an unknown event", { event: "SUBSCRIBE_WEATHER" }],
    [unacceptable, "no index", { event: "SUBSCRIBE_INDEX_TICKER" }],
    [unacceptable, "an unknown index type", { event: "SUBSCRIBE_INDEX_TICKER", indexType: "NX" }],
    [unacceptable, "an id that is no string", { event: "SUBSCRIBE_INDEX_TICKER", indexId: 5 }],
    [unacceptable, "no integer", { event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX", requestId: "a" }],
    [unacceptable, "no exchange or market", { event: "SUBSCRIBE_EXCHANGE_TICKER" }],
    [unacceptable, "no index to end", { event: "UNSUBSCRIBE_INDEX_TICKER" }],
    [notFound, "index", { event: "SUBSCRIBE_INDEX_TICKER", indexId: "unknown" }],
    [notFound, "exchange", { event: "SUBSCRIBE_EXCHANGE_TICKER", exchangeId: "unknown" }],
    [notFound, "market", { event: "SUBSCRIBE_EXCHANGE_TICKER", marketId: "unknown" }],
    [notFound, "market name", { event: "SUBSCRIBE_EXCHANGE_TICKER", marketName: "BTC_NOTHING" }],
  ])("“%s”: %s", async (answer, _, message) => {
    const client = await fixture.connect();
    client.send(message);
    expect(await client.waitFor("ERROR")).toEqual([ERROR(answer.slice(0, 3))]);
  });

  it.each([
    ["read:LX", { event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX" }, { indexType: "GWA" }],
    ["read:index-ticker", { event: "SUBSCRIBE_INDEX_TICKER", indexType: "MWA" }, { indexType: "LX" }],
    [
      "read:exchange-ticker",
      { event: "SUBSCRIBE_EXCHANGE_TICKER", marketName: "BTC_USD" },
      { indexType: "MWA" },
    ],
  ])("“403: not authorised for the resource”: without %s", async (scope, rejected, allowed) => {
    fixture.simulator.setFaults(Fault.scopeWithout(scope));
    const client = await fixture.connect();
    client.send(rejected);
    expect(await client.waitFor("ERROR")).toEqual([ERROR("403")]);
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", ...allowed });
    expect(await client.waitFor("SUBSCRIBED_INDEX_TICKER")).toMatchObject([allowed]);
  });
});
