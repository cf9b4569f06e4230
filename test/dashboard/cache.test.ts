import { describe, expect, it } from "vitest";
import { KeptReading } from "../../src/dashboard/cache.ts";
import { describeState } from "../../src/dashboard/daemon-status.ts";
import { rowsAsked } from "../../src/dashboard/query-params.ts";
import { Readings } from "../../src/dashboard/reader-thread.ts";
import type { StreamStatus } from "../../src/warehouse/read/status.ts";
import { openFilled, present } from "../support/dashboard/filled-warehouse.ts";
import { TurnedClock } from "../support/manual-clock.ts";

describe("a kept reading", () => {
  it("is shared while it is under way and for a while after, longer when it took long", async () => {
    const clock = new TurnedClock();
    let reads = 0;
    const kept = new KeptReading(clock, 3_000, async () => {
      reads++;
      await clock.sleep(reads === 1 ? 10 : 400);
      return reads;
    });
    const both = Promise.all([kept.get(), kept.get()]);
    await clock.advance(10);
    expect(await both).toEqual([1, 1]);
    await clock.advance(2_990);
    expect(await kept.get()).toBe(1);
    await clock.advance(20);
    const second = kept.get();
    await clock.advance(400 + 7_000);
    expect(await second).toBe(2);
    expect(await kept.get()).toBe(2);
    await clock.advance(1_001);
    void kept.get();
    await clock.advance(0);
    expect(reads).toBe(3);
  });

  it("that failed is tried again after a while, also when it fails at once", async () => {
    const clock = new TurnedClock();
    let reads = 0;
    const kept = new KeptReading<number>(clock, 1_000, () => {
      if (++reads < 2) throw new Error("not yet");
      return Promise.resolve(reads);
    });
    await expect(kept.get()).rejects.toThrow("not yet");
    await expect(kept.get()).rejects.toThrow("not yet");
    expect(reads).toBe(1);
    await clock.advance(1_000);
    expect(await kept.get()).toBe(2);
    expect(clock.held).toBe(0);
  });
});

describe("the readings", () => {
  it("come from a thread of their own, and end with it", async () => {
    const readings = new Readings({ path: openFilled().path, clock: new TurnedClock(), now: () => present });
    expect((await readings.ask("status")).streams).toHaveLength(9);
    expect((await readings.ask("latest")).map(({ name }) => name).slice(0, 4)).toEqual([
      "BLX",
      "ELX",
      "XRPLX",
      "BTC",
    ]);
    const last = readings.ask("missing");
    await Promise.all([readings.close(), expect(last).rejects.toMatchObject({ code: "not_readable" })]);
    await expect(readings.ask("status")).rejects.toMatchObject({ code: "not_readable" });
  });
});

describe("rows asked for", () => {
  it("are rounded to few sizes, so that equal looks share one reading", () => {
    const asked = (query: string) => rowsAsked(new URLSearchParams(query));
    expect(asked("rows=ohlcv:MWA,20&rows=index_ticks:GWA,48").key).toBe(
      asked("rows=index_ticks:GWA,33&rows=ohlcv:MWA,9").key,
    );
    expect(asked("rows=ohlcv:MWA,999999").shown.get("ohlcv:MWA")).toBe(408);
    expect(asked("rows=ohlcv:MWA,1&rows=a b:c,50").shown.size).toBe(0);
  });
});

describe("the daemon's state in one sentence", () => {
  const stream = (more: Partial<StreamStatus> = {}): StreamStatus => ({
    stream: "index_ticks",
    from_time: null,
    to_time: null,
    rows: 1,
    open: 0,
    open_seconds: 0,
    lost: 0,
    lost_seconds: 0,
    newest_age_s: 4,
    last_error: null,
    last_error_at: null,
    missing_scopes: [],
    ...more,
  });
  const say = (streams: StreamStatus[] | undefined, more: { ready?: boolean; problem?: string } = {}) =>
    describeState({ ready: true, problem: undefined, activity: "filling holes", ...more, streams });

  it("says the worst first", () => {
    expect(say([stream()])).toEqual({ tone: "well", sentence: "Everything is in place." });
    expect(say([stream({ open: 1 })])).toEqual({
      tone: "busy",
      sentence: "Filling holes: 1 range left to fetch.",
    });
    expect(say([stream({ lost: 1200 })]).sentence).toBe(
      "Everything is in place but 1,200 ranges that the service no longer has.",
    );
    expect(say([], { ready: false })).toEqual({ tone: "busy", sentence: "Starting: filling holes." });
    expect(say([stream({ open: 1 })], { problem: "the disk is full." })).toEqual({
      tone: "ill",
      sentence: "Stuck: the disk is full.",
    });
  });

  it("warns of a disk that will be full within a fortnight", () => {
    const disk = { warehouse_bytes: 1, wal_bytes: 0, free_bytes: 1, full_in_days: 9.6 };
    const facts = { ready: true, problem: undefined, activity: "", streams: [stream()] };
    expect(describeState({ ...facts, disk })).toEqual({
      tone: "busy",
      sentence: "Everything is in place; the disk will be full in 9 days.",
    });
    expect(describeState({ ...facts, disk: { ...disk, full_in_days: 15 } }).tone).toBe("well");
  });

  it("names what is forbidden and what fails, each once", () => {
    const derivatives = stream({ stream: "derivative_ticks", missing_scopes: ["x"], last_error: "403" });
    expect(
      say([derivatives, stream({ last_error: "503" }), stream({ stream: "ohlcv", last_error: "503" })]),
    ).toEqual({
      tone: "busy",
      sentence:
        "Everything is in place; a scope is missing for derivative ticks; the last attempt at index ticks and ohlcv failed.",
    });
  });
});
