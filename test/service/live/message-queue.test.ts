import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  DEFAULT_QUEUE_LIMITS,
  MessageQueue,
  type QueueLimits,
} from "../../../src/service/live/message-queue.ts";
import type { FeedMessage } from "../../../src/service/live/subscription-states.ts";
import { startSubscribedFeed } from "../../support/service/feed-harness.ts";

const tight: QueueLimits = { ticks: 100, bytes: 1_000_000 };
const tick = (n: number) => ({ indexType: "GWA", indexId: "btc", n });

describe("E12: more ticks than the reader can handle", () => {
  it("a burst of all markets is queued in order and read in batches", async () => {
    const feed = await startSubscribedFeed();
    feed.isReading = false;
    for (let n = 0; n < 6_000; n++) feed.sendTick(tick(n));
    feed.connection.sendEvent("PING");
    await feed.waitUntil(() => feed.received("PONG") === 1);
    feed.isReading = true;
    await feed.waitUntil(() => feed.ticks.length === 6_000);
    expect(feed.ticks.map((text) => (JSON.parse(text) as { n: number }).n)).toEqual([...Array(6_000).keys()]);
    expect(feed.count("update")).toBeLessThan(20);
    expect(feed.messagesOf("gap")).toEqual([]);
  });

  it("the socket pauses before a tick is dropped, and resumes when the reader has caught up", async () => {
    const feed = await startSubscribedFeed({}, { limits: { ...tight, ticks: 10_000 } });
    feed.isReading = false;
    feed.sendTick({ ...tick(0) });
    await feed.waitUntil(() => feed.ticks.length === 1);
    const padding = "x".repeat(2_000);
    for (let n = 1; n < 20_000; n++) feed.sendTick({ ...tick(n), padding });
    for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(feed.connection.socket.bufferedAmount).toBeGreaterThan(10_000_000);
    feed.isReading = true;
    await feed.waitUntil(() => feed.ticks.length === 20_000);
    expect(feed.messagesOf("gap")).toEqual([]);
  });

  it("E6: a stalled reader gets a gap instead of ticks, and PINGs are answered within a second", async () => {
    const feed = await startSubscribedFeed({}, { limits: tight });
    feed.isReading = false;
    const start = feed.clock.now() * 1000;
    for (let n = 0; n < 5_000; n++) feed.sendTick({ ...tick(n), padding: "x".repeat(300) });
    feed.connection.sendEvent("PING", { requestId: 1 });
    await feed.clock.advance(900);
    await feed.waitUntil(() => feed.received("PONG") === 1);
    feed.isReading = true;
    await feed.waitUntil(() => feed.count("gap") > 0);
    feed.sendTick(tick(9_999));
    await feed.waitUntil(() => feed.ticks.at(-1)?.includes("9999") === true);
    const dropped = feed.messagesOf("gap").reduce((sum, gap) => sum + gap.dropped, 0);
    expect(dropped).toBeGreaterThan(4_000);
    expect(feed.ticks.length + dropped).toBe(5_001);
    const [gap] = feed.messagesOf("gap");
    expect(gap?.from).toBeGreaterThanOrEqual(start);
    expect(gap?.to).toBeGreaterThanOrEqual(start + 700_000);
    expect(feed.server.upgrades).toBe(1);
  });
});

describe("the queue", () => {
  it("keeps all messages in order", () => {
    const action = fc.oneof(
      { weight: 5, arbitrary: fc.constant("tick" as const) },
      fc.constantFrom("push" as const, "take" as const),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 400 }), (actions) => {
        let now = 0;
        const queue = new MessageQueue({ ...tight, ticks: 15 }, () => now);
        const sent: number[] = [];
        const read: FeedMessage[] = [];
        for (const next of actions) {
          now++;
          if (next === "take") {
            const message = queue.take();
            if (message) read.push(message);
          } else {
            sent.push(now);
            if (next === "tick") queue.pushTick(String(now));
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
        const delivered = new Set(order);
        for (const ts of sent.filter((at) => !delivered.has(at)))
          expect(gaps.some(({ from, to }) => from <= ts && ts <= to)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it("is bounded in bytes and in ticks", () => {
    const queue = new MessageQueue(DEFAULT_QUEUE_LIMITS, () => 0);
    for (let n = 0; n < 100; n++) queue.pushTick("x".repeat(1_000_000));
    expect(queue.shouldPause).toBe(true);
    expect(queue.take()).toMatchObject({ kind: "update", texts: { length: 16 } });
    expect(queue.take()).toMatchObject({ kind: "gap", dropped: 84 });
    expect(queue.shouldPause).toBe(false);
  });
});
