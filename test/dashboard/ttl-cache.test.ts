import { describe, expect, it } from "vitest";
import { TtlCache } from "../../src/dashboard/ttl-cache.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("a cached value", () => {
  it("is shared during the read and for a while after; after a slow read for longer", async () => {
    const clock = new ManualClock();
    let reads = 0;
    const cache = new TtlCache<number>(clock);
    const get = () =>
      cache.get("key", { minTtlMs: 3_000 }, async () => {
        reads++;
        await clock.sleep(reads === 1 ? 10 : 400);
        return reads;
      });
    const both = Promise.all([get(), get()]);
    await clock.advance(10);
    expect(await both).toEqual([1, 1]);
    await clock.advance(2_990);
    expect(await get()).toBe(1);
    await clock.advance(20);
    const second = get();
    await clock.advance(400 + 7_000);
    expect(await second).toBe(2);
    expect(await get()).toBe(2);
    await clock.advance(1_001);
    void get();
    await clock.advance(0);
    expect(reads).toBe(3);
  });

  it("is returned for a while after its end, while one caller has it read anew", async () => {
    const clock = new ManualClock();
    let reads = 0;
    const cache = new TtlCache<number>(clock);
    const get = () =>
      cache.get("key", { minTtlMs: 1_000, maxStaleMs: 5_000 }, async () => {
        const value = ++reads;
        await clock.sleep(value === 1 ? 0 : 10);
        return value;
      });
    const first = get();
    await clock.advance(0);
    expect(await first).toBe(1);
    await clock.advance(4_000);
    expect(await Promise.all([get(), get()])).toEqual([1, 1]);
    await clock.advance(5);
    expect(await get()).toBe(1);
    await clock.advance(5);
    expect([await get(), reads]).toEqual([2, 2]);
    await clock.advance(6_001);
    const late = get();
    await clock.advance(10);
    expect(await late).toBe(3);
    expect(clock.busyCount).toBe(0);
  });

  it("stays when it cannot be read anew, for as long as an old one may be shown", async () => {
    const clock = new ManualClock();
    let isBroken = false;
    let reads = 0;
    const cache = new TtlCache<number>(clock);
    const get = () =>
      cache.get("key", { minTtlMs: 1_000, maxStaleMs: 5_000 }, async () => {
        reads++;
        if (isBroken) throw new Error("busy");
        return reads;
      });
    expect(await get()).toBe(1);
    isBroken = true;
    for (const seconds of [2, 3, 4, 5]) {
      await clock.advance(1_000 + (seconds === 2 ? 1_000 : 0));
      expect(await get()).toBe(1);
      await clock.advance(0);
    }
    // It was tried again each time, and is not kept for ever.
    expect(reads).toBe(5);
    await clock.advance(1_001);
    await expect(get()).rejects.toThrow("busy");
    isBroken = false;
    await clock.advance(1_000);
    expect(await get()).toBe(7);
  });

  it("is rejected for a new key until another is no longer new; a cached key is still answered", async () => {
    const clock = new ManualClock();
    const cache = new TtlCache<string>(clock);
    const startTimes: number[] = [];
    const get = (key: string) =>
      cache.get(key, { minTtlMs: 1_000 }, async () => {
        startTimes.push(clock.monotonic());
        await clock.sleep(100);
        return key;
      });
    const flood = Promise.allSettled(Array.from({ length: 56 }, (_, n) => get(`key ${n}`)));
    await clock.advance(100);
    const rejected = (await flood).filter(({ status }) => status === "rejected");
    expect(rejected).toHaveLength(24);
    expect(rejected[0]).toMatchObject({ reason: { code: "too_many" } });
    expect(await get("key 31")).toBe("key 31");
    // A read of 100 ms is cached for 2 seconds, but makes room after one.
    await clock.advance(999);
    await expect(get("key 32")).rejects.toMatchObject({ code: "too_many" });
    await clock.advance(1);
    const next = get("key 32");
    await clock.advance(100);
    expect(await next).toBe("key 32");
    expect(startTimes).toEqual([...Array.from({ length: 32 }, () => 0), 1_100]);
  });
});
