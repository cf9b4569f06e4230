import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocketFixture } from "../../support/simulator/websocket-client.ts";

let fixture: WebSocketFixture;
beforeAll(async () => {
  fixture = await WebSocketFixture.start({ pingSeconds: 0 });
});
afterEach(() => fixture.clear());
afterAll(() => fixture.stop());

const faults = (script: string) => fixture.simulator.setFaults(script);
const faultCounts = () => fixture.rest.faultCounts();

/** Waits for a PONG: everything that was sent before it has arrived by then. */
async function drain(client: Awaited<ReturnType<WebSocketFixture["connect"]>>): Promise<void> {
  const pongs = client.messagesOf("PONG").length;
  client.send({ event: "PING" });
  await client.waitFor("PONG", pongs + 1);
}

describe("faults of the upgrade", () => {
  it.each([401, 403, 429, 503])("upgrade-status %i rejects the upgrade over HTTP", async (code) => {
    faults(`ws upgrade-status ${code} times=1 retry-after=seconds`);
    expect(await (await fixture.startConnecting()).waitForClose()).toMatchObject({
      status: code,
      retryAfter: "7",
    });
    await fixture.connect();
    expect(faultCounts()).toEqual([1]);
  });

  it("upgrade-stall never responds, and a manual clock can advance although the client holds it", async () => {
    faults("ws upgrade-stall");
    const client = await fixture.startConnecting();
    const release = fixture.clock.beginWork();
    await fixture.clock.runUntil(fixture.clock.sleep(600_000));
    expect([client.socket.readyState, client.end]).toEqual([client.socket.CONNECTING, {}]);
    client.socket.terminate();
    await client.waitForClose();
    release();
    while (fixture.clock.busyCount !== 0) await fixture.clock.advance(1);
  });
});

describe("faults of CONNECTED", () => {
  it("connected never: sends no CONNECTED, but everything else works", async () => {
    faults("ws connected never");
    const client = await fixture.startConnecting();
    await new Promise((resolve) => client.socket.once("open", resolve));
    await fixture.clock.advance(3_600_000);
    await drain(client);
    expect(client.messagesOf("CONNECTED")).toEqual([]);
  });

  it("connected twice sends CONNECTED twice", async () => {
    faults("ws connected twice");
    const client = await fixture.connect();
    expect((await client.waitFor("CONNECTED", 2)).length).toBe(2);
  });

  it("connected late sends CONNECTED after the delay", async () => {
    faults("ws connected late by=12s");
    const start = fixture.clock.monotonic();
    const client = await fixture.startConnecting();
    await fixture.clock.runUntil(client.waitFor("CONNECTED"));
    expect(fixture.clock.monotonic() - start).toBe(12_000);
  });
});

describe("faults of the connection", () => {
  it.each([1000, 1001, 1006, 1008, 1011, 4000, 4999])(
    "drop-connection %i closes the connection with this code",
    async (code) => {
      faults(`ws drop-connection ${code}`);
      expect((await (await fixture.startConnecting()).waitForClose()).code).toBe(code);
    },
  );

  it("drop-connection in=20s closes the connection after that time", async () => {
    faults("ws drop-connection 1001 in=20s");
    const client = await fixture.connect();
    const start = fixture.clock.monotonic();
    await fixture.clock.runUntil(client.waitForClose());
    expect(fixture.clock.monotonic() - start).toBe(20_000);
  });

  it("drop-connection on=tick and on=subscribe wait for that event", async () => {
    faults("ws drop-connection 4001 on=tick\nws drop-connection 4002 on=subscribe query=indexType=GWA");
    const first = await fixture.connectAndSubscribe("LX");
    expect((await fixture.clock.runUntil(first.waitForClose())).code).toBe(4001);
    const second = await fixture.connectAndSubscribe("GWA");
    expect((await second.waitForClose()).code).toBe(4002);
  });

  it("mute: sends PONG but no ticks", async () => {
    faults("ws mute in=40s");
    const client = await fixture.connectAndSubscribe("LX");
    await fixture.clock.runUntil(client.waitFor("INDEX_TICKER", 3));
    const seen = client.messagesOf("INDEX_TICKER").length;
    await fixture.clock.runUntil(fixture.clock.sleep(300_000));
    await drain(client);
    expect(client.messagesOf("INDEX_TICKER").length - seen).toBeLessThanOrEqual(3);
    expect(client.end).toEqual({});
  });

  it("half-open: sends nothing and does not close, whatever the client sends", async () => {
    faults("ws half-open on=subscribe");
    const client = await fixture.connectAndSubscribe("LX");
    const seen = client.messages.length;
    client.send({ event: "PING" });
    client.socket.ping();
    await fixture.clock.runUntil(fixture.clock.sleep(600_000));
    expect([client.messages.length, client.pongs, client.end]).toEqual([seen, 0, {}]);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
  });

  it("ping-storm sends PINGs at the interval, and the controls report the round-trip times", async () => {
    faults("ws ping-storm every=100ms");
    const client = await fixture.connect();
    const start = fixture.clock.monotonic();
    await fixture.clock.runUntil(client.waitFor("PING", 50));
    expect(fixture.clock.monotonic() - start).toBeLessThan(6000);
    await drain(client);
    const pongs = await (await fetch(`${fixture.simulator.baseUrl}/simulator/pongs`)).json();
    expect(pongs).toMatchObject({ answered: client.messagesOf("PING").length, worstMs: expect.any(Number) });
  });
});

describe("unexpected messages", () => {
  it.each([
    ["array", /^\[/],
    ["null", /^null$/],
    ["not-json", /^\{"event":$/],
  ])("message %s", async (is, text) => {
    faults(`ws message ${is}`);
    const client = await fixture.connect();
    await drain(client);
    expect(client.raw.map((message) => [message.isBinary, text.test(message.data.toString())])).toEqual([
      [false, true],
    ]);
  });

  it("message garbage sends random bytes", async () => {
    faults("ws message garbage");
    const client = await fixture.connect();
    await drain(client);
    expect(client.raw).toMatchObject([{ isBinary: true }]);
    expect(client.raw[0]?.data.length).toBe(64);
  });

  it("message trade and no-event send other JSON objects", async () => {
    faults("ws message trade\nws message no-event");
    const client = await fixture.connect();
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
  ])("message %s makes a strict client close with %i", async (is, code) => {
    faults(`ws message ${is}`);
    const client = await fixture.connect();
    let closeCode = 0;
    client.socket.on("close", (code) => {
      closeCode = code;
    });
    await client.waitForClose();
    expect([closeCode, client.end.error]).toEqual([1006, expect.stringMatching(/^WS_ERR/)]);
    const causes: Record<number, string> = {
      1007: "WS_ERR_INVALID_UTF8",
      1002: "WS_ERR_UNEXPECTED_RSV_1",
      1009: "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH",
    };
    expect(client.end.error).toBe(causes[code]);
  });
});

describe("faults of subscriptions", () => {
  it("subscribed never: the ticks come anyway", async () => {
    faults("ws subscribed never");
    const client = await fixture.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX" });
    await drain(client);
    await fixture.clock.runUntil(client.waitFor("INDEX_TICKER", 3));
    expect(client.messagesOf("SUBSCRIBED_INDEX_TICKER")).toEqual([]);
  });

  it("subscribed other confirms another subscription", async () => {
    faults("ws subscribed other");
    const client = await fixture.connectAndSubscribe("GWA");
    expect(client.messagesOf("SUBSCRIBED_INDEX_TICKER")).toMatchObject([{ indexType: "LX" }]);
    client.send({ event: "SUBSCRIBE_EXCHANGE_TICKER", marketName: "BTC_USD" });
    expect(await client.waitFor("SUBSCRIBED_EXCHANGE_TICKER")).toMatchObject([{ exchangeId: "another" }]);
  });

  it("subscribed late comes after the first ticks", async () => {
    faults("ws subscribed late by=45s");
    const client = await fixture.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX" });
    await fixture.clock.runUntil(client.waitFor("SUBSCRIBED_INDEX_TICKER"));
    const order = client.messages.map(({ event }) => event);
    expect(order.indexOf("INDEX_TICKER")).toBeLessThan(order.indexOf("SUBSCRIBED_INDEX_TICKER"));
  });

  it.each([
    ["code=403", { code: "403" }],
    ["code=404 as=number", { code: 404 }],
    ["as=none", {}],
  ])("error %s rejects the subscription", async (how, expected) => {
    faults(`ws error ${how} times=1`);
    const client = await fixture.connect();
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX", requestId: 1 });
    const [error] = await client.waitFor("ERROR");
    expect(error).toEqual({
      event: "ERROR",
      message: expect.any(String),
      timestamp: expect.any(String),
      ...expected,
    });
    await fixture.clock.advance(60_000);
    await drain(client);
    expect(client.messagesOf("INDEX_TICKER")).toEqual([]);
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", indexType: "LX", requestId: 2 });
    await client.waitFor("SUBSCRIBED_INDEX_TICKER");
  });

  it("replay sends the last ticks again", async () => {
    faults("ws replay ticks=4");
    const client = await fixture.connectAndSubscribe("LX");
    await drain(client);
    const times = client.messagesOf("INDEX_TICKER").map(({ timestamp }) => Date.parse(String(timestamp)));
    expect(times.length).toBe(12);
    expect(Math.max(...times)).toBeLessThanOrEqual(fixture.clock.now());
  });
});

describe("faults of ticks", () => {
  const round = async (script: string, count = 3) => {
    faults(script);
    const client = await fixture.connectAndSubscribe("LX");
    await fixture.clock.runUntil(client.waitFor("INDEX_TICKER", count));
    await drain(client);
    return client;
  };

  it("duplicate-tick sends each tick twice", async () => {
    const ids = (await round("ws duplicate-tick", 6)).messagesOf("INDEX_TICKER").map(({ id }) => id);
    expect(new Set(ids.slice(0, 6)).size).toBe(3);
  });

  it("missing-tick drops the ticks of one index", async () => {
    const client = await round(`ws missing-tick query=name=ELX`, 4);
    expect(new Set(client.messagesOf("INDEX_TICKER").map(({ name }) => name))).toEqual(
      new Set(["BLX", "XRPLX"]),
    );
  });

  it("late-tick sends a tick after newer ones", async () => {
    const client = await round("ws late-tick by=45s query=name=BLX", 10);
    const times = client.messagesOf("INDEX_TICKER").map(({ timestamp }) => String(timestamp));
    expect(times).not.toEqual(times.toSorted());
  });

  it("other-value sends another price and id than REST for the same timestamp", async () => {
    const [tick] = (await round("ws other-value")).messagesOf("INDEX_TICKER");
    const { content } = await fixture.rest.getPage(`/index-ticker?indexType=LX&indexId=${tick?.indexId}`);
    expect(content[0]?.timestamp).toBe(tick?.timestamp);
    expect(content[0]?.price).not.toBe(tick?.price);
    expect(content[0]?.id).not.toBe(tick?.id);
  });

  it("binary-tick sends the JSON of the tick in a binary frame", async () => {
    faults("ws binary-tick query=name=BLX");
    const client = await fixture.connectAndSubscribe("LX");
    await fixture.clock.runUntil(client.waitFor("INDEX_TICKER", 2));
    await drain(client);
    expect(client.raw[0]?.isBinary).toBe(true);
    expect(JSON.parse(String(client.raw[0]?.data))).toMatchObject({ event: "INDEX_TICKER", name: "BLX" });
  });

  it("payload faults change ticks like rows", async () => {
    const client = await round(
      "ws set price NaN query=name=BLX\nws drop timestamp query=name=ELX\nws unknown-fields",
    );
    const [blx, elx] = client.messagesOf("INDEX_TICKER");
    expect(blx).toMatchObject({ name: "BLX", price: "NaN", grade: "A+" });
    expect(elx && "timestamp" in elx).toBe(false);
    expect(faultCounts().every((count) => count > 0)).toBe(true);
  });
});
