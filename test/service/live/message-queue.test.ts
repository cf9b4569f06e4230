import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FeedQueue, type QueueLimits, usualLimits } from "../../../src/service/live/message-queue.ts";
import type { FeedMessage } from "../../../src/service/live/messages.ts";
import { followSubscribed } from "../../support/service/feed-harness.ts";

const tight: QueueLimits = {
  batch: 10,
  pauseCount: 100,
  pauseBytes: 1_000_000,
  mostCount: 200,
  mostBytes: 2_000_000,
};
const tick = (n: number) => ({ indexType: "GWA", indexId: "btc", n });

describe("E12: more ticks than the reader can take", () => {
  it("a burst of all markets waits in order, in batches", async () => {
    const feed = await followSubscribed();
    feed.isReading = false;
    for (let n = 0; n < 6_000; n++) feed.server.peer.say("INDEX_TICKER", tick(n));
    feed.server.peer.say("PING");
    await feed.until(() => feed.server.peer.asked("PONG").length === 1);
    feed.isReading = true;
    await feed.until(() => feed.ticks.length === 6_000);
    expect(feed.ticks.map((text) => (JSON.parse(text) as { n: number }).n)).toEqual([...Array(6_000).keys()]);
    expect(feed.of("update").length).toBeLessThan(20);
    expect(feed.of("gap")).toEqual([]);
  });

  it("the socket is paused before anything is dropped, and read on when the reader has caught up", async () => {
    const feed = await followSubscribed({}, { limits: { ...tight, mostCount: 20_000 } });
    feed.isReading = false;
    feed.server.peer.say("INDEX_TICKER", { ...tick(0) });
    await feed.until(() => feed.ticks.length === 1);
    const padding = "x".repeat(2_000);
    for (let n = 1; n < 20_000; n++) feed.server.peer.say("INDEX_TICKER", { ...tick(n), padding });
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(feed.server.peer.socket.bufferedAmount).toBeGreaterThan(10_000_000);
    feed.isReading = true;
    await feed.until(() => feed.ticks.length === 20_000);
    expect(feed.of("gap")).toEqual([]);
  });

  it("E6: a reader that sleeps on gets a gap instead of ticks, and PINGs are answered within a second meanwhile", async () => {
    const feed = await followSubscribed({}, { limits: tight });
    feed.isReading = false;
    const start = feed.clock.now() * 1000;
    for (let n = 0; n < 5_000; n++)
      feed.server.peer.say("INDEX_TICKER", { ...tick(n), padding: "x".repeat(300) });
    feed.server.peer.say("PING", { requestId: 1 });
    await feed.clock.advance(900);
    await feed.until(() => feed.server.peer.asked("PONG").length === 1);
    feed.isReading = true;
    await feed.until(() => feed.of("gap").length > 0);
    feed.server.peer.say("INDEX_TICKER", tick(9_999));
    await feed.until(() => feed.ticks.at(-1)?.includes("9999") === true);
    const dropped = feed.of("gap").reduce((sum, gap) => sum + gap.dropped, 0);
    expect(dropped).toBeGreaterThan(4_000);
    expect(feed.ticks.length + dropped).toBe(5_001);
    const [gap] = feed.of("gap");
    expect(gap).toMatchObject({ reason: "overflow" });
    expect(gap?.from).toBeGreaterThanOrEqual(start);
    expect(gap?.to).toBeGreaterThanOrEqual(start + 700_000);
    expect(feed.server.upgrades).toBe(1);
  });
});

describe("the queue", () => {
  it("keeps the order of everything, whatever comes", () => {
    const action = fc.oneof(
      { weight: 5, arbitrary: fc.constant("tick" as const) },
      fc.constantFrom("push" as const, "noise" as const, "take" as const),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 400 }), (actions) => {
        let now = 0;
        const queue = new FeedQueue({ ...tight, mostCount: 30 }, () => now);
        const sent: number[] = [];
        const read: FeedMessage[] = [];
        let noise = 0;
        for (const act of actions) {
          now++;
          if (act === "take") {
            const message = queue.take();
            if (message) read.push(message);
          } else if (act === "noise") {
            noise++;
            queue.noise({ kind: "unknown", event: "X", reason: "r", sample: "", count: 1 });
          } else {
            sent.push(now);
            if (act === "tick") queue.tick(String(now));
            else queue.push({ kind: "swapped", at: now });
          }
        }
        for (let message = queue.take(); message; message = queue.take()) read.push(message);
        const order = read.flatMap((message) =>
          message.kind === "update"
            ? message.texts.map(Number)
            : message.kind === "swapped"
              ? [message.at]
              : [],
        );
        expect(order).toEqual([...order].sort((a, b) => a - b));
        const gaps = read.filter((message) => message.kind === "gap");
        expect(order.length + gaps.reduce((sum, gap) => sum + gap.dropped, 0)).toBe(sent.length);
        const held = new Set(order);
        for (const moment of sent.filter((at) => !held.has(at)))
          expect(gaps.some(({ from, to }) => from <= moment && moment <= to)).toBe(true);
        const counted = read.reduce(
          (sum, message) => sum + (message.kind === "unknown" ? message.count : 0),
          0,
        );
        expect(counted).toBe(noise);
      }),
      { numRuns: 300 },
    );
  });

  it("is bounded by bytes as by count", () => {
    const queue = new FeedQueue(usualLimits, () => 0);
    for (let n = 0; n < 100; n++) queue.tick("x".repeat(1_000_000));
    expect(queue.isPressed).toBe(true);
    expect(queue.take()).toMatchObject({ kind: "update", texts: { length: 16 } });
    expect(queue.take()).toMatchObject({ kind: "gap", dropped: 84 });
    expect(queue.isPressed).toBe(false);
  });
});
