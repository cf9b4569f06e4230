import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocketFixture } from "../../support/simulator/websocket-client.ts";

let stage: WebSocketFixture;
beforeAll(async () => {
  stage = await WebSocketFixture.start({ pingSeconds: 0 });
});
afterEach(() => stage.clear());
afterAll(() => stage.stop());

const faults = (script: string) => stage.simulator.setFaults(script);
const struck = () => stage.rest.faultCounts();

/** All that was sent before is here once the PONG is. */
async function drain(client: Awaited<ReturnType<WebSocketFixture["connect"]>>): Promise<void> {
  const pongs = client.messagesOf("PONG").length;
  client.send({ event: "PING" });
  await client.waitFor("PONG", pongs + 1);
}

describe("faults of the upgrade", () => {
  it.each([401, 403, 429, 503])("upgrade-status %i refuses over HTTP", async (code) => {
    faults(`ws upgrade-status ${code} times=1 retry-after=seconds`);
    expect(await (await stage.startConnecting()).waitForClose()).toMatchObject({
      status: code,
      retryAfter: "7",
    });
    await stage.connect();
    expect(struck()).toEqual([1]);
  });

  it("upgrade-stall never answers, and turned time moves although the client holds it", async () => {
    faults("ws upgrade-stall");
    const client = await stage.startConnecting();
    const release = stage.clock.beginWork();
    await stage.clock.runUntil(stage.clock.sleep(600_000));
    expect([client.socket.readyState, client.end]).toEqual([client.socket.CONNECTING, {}]);
    client.socket.terminate();
    await client.waitForClose();
    release();
    while (stage.clock.busyCount !== 0) await stage.clock.advance(1);
  });
});

describe("faults of the greeting", () => {
  it("connected never: open, but silent; the rest works", async () => {
    faults("ws connected never");
    const client = await stage.startConnecting();
    await new Promise((resolve) => client.socket.once("open", resolve));
    await stage.clock.advance(3_600_000);
    await drain(client);
    expect(client.messagesOf("CONNECTED")).toEqual([]);
  });

  it("connected twice", async () => {
    faults("ws connected twice");
    const client = await stage.connect();
    expect((await client.waitFor("CONNECTED", 2)).length).toBe(2);
  });

  it("connected late", async () => {
    faults("ws connected late by=12s");
    const start = stage.clock.monotonic();
    const client = await stage.startConnecting();
    await stage.clock.runUntil(client.waitFor("CONNECTED"));
    expect(stage.clock.monotonic() - start).toBe(12_000);
  });
});

describe("faults of the connection", () => {
  it.each([1000, 1001, 1006, 1008, 1011, 4000, 4999])(
    "drop-connection %i ends it with this close code",
    async (code) => {
      faults(`ws drop-connection ${code}`);
      expect((await (await stage.startConnecting()).waitForClose()).code).toBe(code);
    },
  );

  it("drop-connection in=20s lets it live so long", async () => {
    faults("ws drop-connection 1001 in=20s");
    const client = await stage.connect();
    const start = stage.clock.monotonic();
    await stage.clock.runUntil(client.waitForClose());
    expect(stage.clock.monotonic() - start).toBe(20_000);
  });

  it("drop-connection on=tick and on=subscribe wait for that moment", async () => {
    faults("ws drop-connection 4001 on=tick\nws drop-connection 4002 on=subscribe query=indexType=GWA");
    const first = await stage.connectAndSubscribe("LX");
    expect((await stage.clock.runUntil(first.waitForClose())).code).toBe(4001);
    const second = await stage.connectAndSubscribe("GWA");
    expect((await second.waitForClose()).code).toBe(4002);
  });

  it("mute: PONG is fine, ticks do not come", async () => {
    faults("ws mute in=40s");
    const client = await stage.connectAndSubscribe("LX");
    await stage.clock.runUntil(client.waitFor("INDEX_TICKER", 3));
    const seen = client.messagesOf("INDEX_TICKER").length;
    await stage.clock.runUntil(stage.clock.sleep(300_000));
    await drain(client);
    expect(client.messagesOf("INDEX_TICKER").length - seen).toBeLessThanOrEqual(3);
    expect(client.end).toEqual({});
  });

  it("half-open: no frame and no end, whatever the client says", async () => {
    faults("ws half-open on=subscribe");
    const client = await stage.connectAndSubscribe("LX");
    const seen = client.messages.length;
    client.send({ event: "PING" });
    client.socket.ping();
    await stage.clock.runUntil(stage.clock.sleep(600_000));
    expect([client.messages.length, client.pongs, client.end]).toEqual([seen, 0, {}]);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
  });

  it("ping-storm sends a PING every so often, and the controls tell how quickly it was answered", async () => {
    faults("ws ping-storm every=100ms");
    const client = await stage.connect();
    const start = stage.clock.monotonic();
    await stage.clock.runUntil(client.waitFor("PING", 50));
    expect(stage.clock.monotonic() - start).toBeLessThan(6000);
    await drain(client);
    const pongs = await (await fetch(`${stage.simulator.baseUrl}/simulator/pongs`)).json();
    expect(pongs).toMatchObject({ answered: client.messagesOf("PING").length, worstMs: expect.any(Number) });
  });
});

describe("messages out of turn", () => {
  it.each([
    ["binary", true, /^\{"event":"TRADE"/],
    ["array", false, /^\[/],
    ["null", false, /^null$/],
    ["string", false, /^"INDEX_TICKER"$/],
    ["number", false, /^42$/],
    ["not-json", false, /^\{"event":$/],
  ])("message %s", async (is, isBinary, text) => {
    faults(`ws message ${is}`);
    const client = await stage.connect();
    await drain(client);
    expect(client.raw.map((message) => [message.isBinary, text.test(message.data.toString())])).toEqual([
      [isBinary, true],
    ]);
  });

  it("message garbage is binary that nobody can read", async () => {
    faults("ws message garbage");
    const client = await stage.connect();
    await drain(client);
    expect(client.raw).toMatchObject([{ isBinary: true }]);
    expect(client.raw[0]?.data.length).toBe(64);
  });

  it("message trade and no-event are JSON objects of another kind", async () => {
    faults("ws message trade\nws message no-event");
    const client = await stage.connect();
    await drain(client);
    expect(client.messages).toMatchObject([
      { event: "CONNECTED" },
      { event: "TRADE" },
      { price: "1" },
      { event: "PONG" },
    ]);
  });

  it.each([
    ["utf8", 1007],
    ["deflated", 1002],
    ["oversized", 1009],
    ["fragments", 1009],
  ])("message %s makes a careful client hang up with %i", async (is, code) => {
    faults(`ws message ${is}`);
    const client = await stage.connect();
    let said = 0;
    client.socket.on("close", (own) => {
      said = own;
    });
    await client.waitForClose();
    expect([said, client.end.error]).toEqual([1006, expect.stringMatching(/^WS_ERR/)]);
    const causes: Record<number, string> = {
      1007: "WS_ERR_INVALID_UTF8",
      1002: "WS_ERR_UNEXPECTED_RSV_1",
      1009: "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH",
    };
    expect(client.end.error).toBe(causes[code]);
  });

  it.each([
    ["500", "string", { code: "500" }],
    ["404", "number", { code: 404 }],
    ["401", "none", {}],
  ])("message error code=%s as=%s", async (code, as, said) => {
    faults(`ws message error code=${code} as=${as}`);
    const client = await stage.connect();
    const [error] = await client.waitFor("ERROR");
    expect(error).toEqual({ event: "ERROR", message: expect.any(String), ...said });
  });
});

describe("faults of subscriptions", () => {
  it("subscribed never: the ticks come all the same", async () => {
    faults("ws subscribed never");
    const client = await stage.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX" });
    await drain(client);
    await stage.clock.runUntil(client.waitFor("INDEX_TICKER", 3));
    expect(client.messagesOf("SUBSCRIBED_INDEX_TICKER")).toEqual([]);
  });

  it("subscribed other confirms what was not asked for", async () => {
    faults("ws subscribed other");
    const client = await stage.connectAndSubscribe("GWA");
    expect(client.messagesOf("SUBSCRIBED_INDEX_TICKER")).toMatchObject([{ indexType: "LX" }]);
    client.send({ event: "SUBSCRIBE_EXCHANGE_TICKER", marketName: "BTC_USD" });
    expect(await client.waitFor("SUBSCRIBED_EXCHANGE_TICKER")).toMatchObject([{ exchangeId: "another" }]);
  });

  it("subscribed late comes after the first ticks", async () => {
    faults("ws subscribed late by=45s");
    const client = await stage.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX" });
    await stage.clock.runUntil(client.waitFor("SUBSCRIBED_INDEX_TICKER"));
    const order = client.messages.map(({ event }) => event);
    expect(order.indexOf("INDEX_TICKER")).toBeLessThan(order.indexOf("SUBSCRIBED_INDEX_TICKER"));
  });

  it.each([
    ["code=403", { code: "403" }],
    ["code=404 as=number", { code: 404 }],
    ["as=none", {}],
  ])("error %s answers the subscription, and there is none", async (how, said) => {
    faults(`ws error ${how} times=1`);
    const client = await stage.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX", requestId: 1 });
    const [error] = await client.waitFor("ERROR");
    expect(error).toEqual({
      event: "ERROR",
      message: expect.any(String),
      timestamp: expect.any(String),
      ...said,
    });
    await stage.clock.advance(60_000);
    await drain(client);
    expect(client.messagesOf("INDEX_TICKER")).toEqual([]);
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX", requestId: 2 });
    await client.waitFor("SUBSCRIBED_INDEX_TICKER");
  });

  it.each(["ignore-unsubscribe", "late-unsubscribe by=60s"])("%s: ticks after UNSUBSCRIBE", async (fault) => {
    faults(`ws ${fault}`);
    const client = await stage.connectAndSubscribe("LX");
    client.send({ event: "UNSUBSCRIBE_INDEX_TICKER", indexType: "LX" });
    await drain(client);
    expect((await stage.clock.runUntil(client.waitFor("INDEX_TICKER", 3))).length).toBe(3);
  });

  it("replay sends the last ticks of before again", async () => {
    faults("ws replay ticks=4");
    const client = await stage.connectAndSubscribe("LX");
    await drain(client);
    const times = client.messagesOf("INDEX_TICKER").map(({ timestamp }) => Date.parse(String(timestamp)));
    expect(times.length).toBe(12);
    expect(Math.max(...times)).toBeLessThanOrEqual(stage.clock.now());
  });
});

describe("faults of ticks", () => {
  const round = async (script: string, count = 3) => {
    faults(script);
    const client = await stage.connectAndSubscribe("LX");
    await stage.clock.runUntil(client.waitFor("INDEX_TICKER", count));
    await drain(client);
    return client;
  };

  it("duplicate-tick sends it twice", async () => {
    const ids = (await round("ws duplicate-tick", 6)).messagesOf("INDEX_TICKER").map(({ id }) => id);
    expect(new Set(ids.slice(0, 6)).size).toBe(3);
  });

  it("missing-tick leaves it out: here, all of one index", async () => {
    const client = await round(`ws missing-tick query=name=ELX`, 4);
    expect(new Set(client.messagesOf("INDEX_TICKER").map(({ name }) => name))).toEqual(
      new Set(["BLX", "XRPLX"]),
    );
  });

  it("late-tick sends it after later ones", async () => {
    const client = await round("ws late-tick by=45s query=name=BLX", 10);
    const times = client.messagesOf("INDEX_TICKER").map(({ timestamp }) => String(timestamp));
    expect(times).not.toEqual(times.toSorted());
  });

  it("other-value has another price and id than REST for the same moment", async () => {
    const [tick] = (await round("ws other-value")).messagesOf("INDEX_TICKER");
    const { content } = await stage.rest.getPage(`/index-ticker?indexType=LX&indexId=${tick?.indexId}`);
    expect(content[0]?.timestamp).toBe(tick?.timestamp);
    expect(content[0]?.price).not.toBe(tick?.price);
    expect(content[0]?.id).not.toBe(tick?.id);
  });

  it("binary-tick sends the tick's JSON in a binary frame", async () => {
    faults("ws binary-tick query=name=BLX");
    const client = await stage.connectAndSubscribe("LX");
    await stage.clock.runUntil(client.waitFor("INDEX_TICKER", 2));
    await drain(client);
    expect(client.raw[0]?.isBinary).toBe(true);
    expect(JSON.parse(String(client.raw[0]?.data))).toMatchObject({ event: "INDEX_TICKER", name: "BLX" });
  });

  it("payload words mangle ticks as they mangle rows", async () => {
    const client = await round(
      "ws set price NaN query=name=BLX\nws drop timestamp query=name=ELX\nws unknown-fields",
    );
    const [blx, elx] = client.messagesOf("INDEX_TICKER");
    expect(blx).toMatchObject({ name: "BLX", price: "NaN", grade: "A+" });
    expect(elx && "timestamp" in elx).toBe(false);
    expect(struck().every((count) => count > 0)).toBe(true);
  });
});
