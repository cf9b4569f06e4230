import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readFrame, subscriptionKeysOfTick } from "../../../src/service/live/frames.ts";
import { type startFeed, startSubscribedFeed } from "../../support/service/feed-harness.ts";

describe("E8: frames that no service should send", () => {
  const expectRecovery = async (feed: Awaited<ReturnType<typeof startFeed>>) => {
    await feed.advanceUntil(() => feed.count("subscribed") === 2, 10_000);
    feed.sendTick();
    await feed.waitUntil(() => feed.ticks.length > 0);
  };

  it("JSON in a binary frame is read", async () => {
    const feed = await startSubscribedFeed();
    feed.connection.socket.send(Buffer.from('{"event":"INDEX_TICKER","indexType":"GWA"}'), { binary: true });
    await feed.waitUntil(() => feed.ticks.length === 1);
  });

  it("binary garbage is counted and has no other effect", async () => {
    const feed = await startSubscribedFeed();
    for (let n = 0; n < 50; n++)
      feed.connection.socket.send(Buffer.concat([Buffer.from([0xff]), randomBytes(999)]));
    await feed.waitUntil(() => feed.unknown.length === 50);
    expect(feed.unknown[0]).toMatchObject({ event: "(binary)", reason: "not text" });
    expect(feed.server.upgrades).toBe(1);
  });

  it("a frame of 100 MB closes the connection before it is buffered, and is counted", async () => {
    const feed = await startSubscribedFeed();
    const before = process.memoryUsage().arrayBuffers;
    const huge = Buffer.alloc(100_000_000, 120);
    feed.connection.socket.send(huge, { binary: false });
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    expect(process.memoryUsage().arrayBuffers - before - huge.length).toBeLessThan(20_000_000);
    expect(feed.unknown[0]).toMatchObject({ event: "(frame)", reason: "ws_err_unsupported_message_length" });
    await expectRecovery(feed);
  });

  it("a message with too many fragments closes the connection", async () => {
    const feed = await startSubscribedFeed();
    const { socket } = feed.connection;
    for (let n = 0; n < 5_000; n++) socket.send("x", { fin: false });
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    expect(feed.unknown[0]?.reason).toMatch(/^ws_err_/);
    await expectRecovery(feed);
  });

  it.each([
    ["text that is not UTF-8", Buffer.from([0x81, 2, 0xc3, 0x28]), "ws_err_invalid_utf8"],
    ["a compressed frame", Buffer.from([0xc1, 2, 0x00, 0x00]), "ws_err_unexpected_rsv_1"],
    ["a masked frame", Buffer.from([0x81, 0x81, 0, 0, 0, 0, 65]), "ws_err_unexpected_mask"],
    ["an opcode that does not exist", Buffer.from([0x83, 0]), "ws_err_invalid_opcode"],
  ])("%s is counted and closes the connection", async (_, bytes, reason) => {
    const feed = await startSubscribedFeed();
    rawSocket(feed.connection.socket).write(bytes);
    await feed.waitUntil(() => feed.count("disconnected") === 1);
    expect(feed.unknown).toMatchObject([{ event: "(frame)", reason }]);
    await expectRecovery(feed);
  });
});

describe("E9: messages that this version does not know", () => {
  it.each([
    ['{"event":"TRADE","price":"1"}', "TRADE", "not an event that this version knows"],
    ['{"price":"1"}', "(none)", "no event name"],
    ["[]", "(none)", "not an object"],
    ["null", "(none)", "not an object"],
    ["nonsense", "(none)", "not JSON"],
  ])("%s is sampled", async (text, event, reason) => {
    const feed = await startSubscribedFeed();
    feed.connection.socket.send(text);
    await feed.waitUntil(() => feed.unknown.length === 1);
    expect(feed.unknown[0]).toEqual({ event, reason, sample: text });
  });

  it("thousands do not wait for the reader, and a sample is short", async () => {
    const feed = await startSubscribedFeed();
    feed.isReading = false;
    feed.sendTick();
    for (let n = 0; n < 3_000; n++) feed.connection.sendEvent("TRADE", { id: n, noise: "x".repeat(3_000) });
    await feed.waitUntil(() => feed.unknown.length === 3_000);
    expect(feed.unknown[0]?.sample).toHaveLength(2_000);
  });
});

describe("reading a frame", () => {
  it("recognises ticks with any order of properties, and ignores lookalikes in texts", () => {
    const frame = (text: string) => readFrame(Buffer.from(text), false);
    expect(frame('{"a":1,\n "event" :\t"INDEX_TICKER"}')).toMatchObject({ kind: "tick", source: "index" });
    expect(frame('{"\\u0065vent":"EXCHANGE_TICKER"}')).toMatchObject({ kind: "tick", source: "exchange" });
    const quoted = JSON.stringify({ event: "ERROR", code: "400", message: '"event":"INDEX_TICKER"' });
    expect(frame(quoted)).toMatchObject({ kind: "error", code: "400" });
    expect(frame('{"event":"ERROR","of":{"event":"INDEX_TICKER"}}')).toMatchObject({ kind: "error" });
    expect(frame('{"event":"INDEX_TICKER"')).toMatchObject({ kind: "unknown", reason: "not JSON" });
  });

  it("finds the ids of a tick in its text", () => {
    expect(subscriptionKeysOfTick("index", '{"indexId" : "b\\u0074c","indexType":"GWA"}')).toEqual([
      "index btc",
      "type GWA",
    ]);
    const ofExchange = '{"exchangeId":17,"x":"\\"marketId\\":\\"no\\""}';
    expect(new Set(subscriptionKeysOfTick("exchange", ofExchange))).toEqual(
      new Set(["exchange 17", "market undefined"]),
    );
  });

  it("never throws", () => {
    const messages = fc.record(
      {
        event: fc.oneof(
          fc.constantFrom("PING", "ERROR", "CONNECTED", "SUBSCRIBED_INDEX_TICKER"),
          fc.jsonValue(),
        ),
        code: fc.jsonValue(),
        message: fc.jsonValue(),
        timestamp: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    const bytes = fc.oneof(
      messages.map((message) => Buffer.from(JSON.stringify(message))),
      fc.json().map((text) => Buffer.from(text)),
      fc.uint8Array().map((array) => Buffer.from(array)),
    );
    fc.assert(
      fc.property(bytes, fc.boolean(), (data, isBinary) => {
        const frame = readFrame(data, isBinary);
        if (frame.kind === "tick") subscriptionKeysOfTick(frame.source, frame.text);
        expect(frame.kind).toBeTypeOf("string");
      }),
      { numRuns: 1_000 },
    );
  });
});

function rawSocket(socket: unknown): { write(bytes: Uint8Array): void } {
  return (socket as { _socket: { write(bytes: Uint8Array): void } })._socket;
}
