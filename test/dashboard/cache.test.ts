import { describe, expect, it } from "vitest";
import { CachedValue } from "../../src/dashboard/cache.ts";
import { describeDaemonState } from "../../src/dashboard/daemon-status.ts";
import { parseRowsQuery } from "../../src/dashboard/query-params.ts";
import { ReaderThread } from "../../src/dashboard/reader-thread.ts";
import type { StreamStatus } from "../../src/warehouse/read/status.ts";
import { nowTs, openFilledWarehouse } from "../support/dashboard/filled-warehouse.ts";
import { ManualClock } from "../support/manual-clock.ts";

describe("a cached value", () => {
  it("is shared during the read and for a while after; after a slow read for longer", async () => {
    const clock = new ManualClock();
    let reads = 0;
    const cached = new CachedValue(clock, 3_000, async () => {
      reads++;
      await clock.sleep(reads === 1 ? 10 : 400);
      return reads;
    });
    const both = Promise.all([cached.get(), cached.get()]);
    await clock.advance(10);
    expect(await both).toEqual([1, 1]);
    await clock.advance(2_990);
    expect(await cached.get()).toBe(1);
    await clock.advance(20);
    const second = cached.get();
    await clock.advance(400 + 7_000);
    expect(await second).toBe(2);
    expect(await cached.get()).toBe(2);
    await clock.advance(1_001);
    void cached.get();
    await clock.advance(0);
    expect(reads).toBe(3);
  });

  it("that failed to load is read again after the minimum time, also when the read throws at once", async () => {
    const clock = new ManualClock();
    let reads = 0;
    const cached = new CachedValue<number>(clock, 1_000, () => {
      if (++reads < 2) throw new Error("not yet");
      return Promise.resolve(reads);
    });
    await expect(cached.get()).rejects.toThrow("not yet");
    await expect(cached.get()).rejects.toThrow("not yet");
    expect(reads).toBe(1);
    await clock.advance(1_000);
    expect(await cached.get()).toBe(2);
    expect(clock.busyCount).toBe(0);
  });
});

describe("the reader thread", () => {
  it("answers queries, and rejects them once it is closed", async () => {
    const reader = new ReaderThread({
      path: openFilledWarehouse().path,
      clock: new ManualClock(),
      now: () => nowTs,
    });
    expect((await reader.query("status")).streams).toHaveLength(9);
    expect((await reader.query("latest")).map(({ name }) => name).slice(0, 4)).toEqual([
      "BLX",
      "ELX",
      "XRPLX",
      "BTC",
    ]);
    const last = reader.query("missing");
    await Promise.all([reader.close(), expect(last).rejects.toMatchObject({ code: "not_readable" })]);
    await expect(reader.query("status")).rejects.toMatchObject({ code: "not_readable" });
  });
});

describe("the rows query of the heat map", () => {
  it("is rounded to a few sizes, so that similar queries share one cached value", () => {
    const parse = (query: string) => parseRowsQuery(new URLSearchParams(query));
    expect(parse("rows=ohlcv:MWA,20&rows=index_ticks:GWA,48").key).toBe(
      parse("rows=index_ticks:GWA,33&rows=ohlcv:MWA,9").key,
    );
    expect(parse("rows=ohlcv:MWA,999999").shown.get("ohlcv:MWA")).toBe(408);
    expect(parse("rows=ohlcv:MWA,1&rows=a b:c,50").shown.size).toBe(0);
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
  const describeStreams = (
    streams: StreamStatus[] | undefined,
    more: { isReady?: boolean; problem?: string } = {},
  ) => describeDaemonState({ isReady: true, problem: undefined, activity: "filling gaps", ...more, streams });

  it("names the worst problem first", () => {
    expect(describeStreams([stream()])).toEqual({ tone: "well", sentence: "Everything is synced." });
    expect(describeStreams([stream({ open: 1 })])).toEqual({
      tone: "busy",
      sentence: "Filling gaps: 1 range left to fetch.",
    });
    expect(describeStreams([stream({ lost: 1200 })]).sentence).toBe(
      "Everything is synced except 1,200 ranges that the service no longer has.",
    );
    expect(describeStreams([], { isReady: false })).toEqual({
      tone: "busy",
      sentence: "Starting: filling gaps.",
    });
    expect(describeStreams([stream({ open: 1 })], { problem: "the disk is full." })).toEqual({
      tone: "ill",
      sentence: "Stuck: the disk is full.",
    });
  });

  it("warns of a disk that will be full within 14 days", () => {
    const disk = { warehouse_bytes: 1, wal_bytes: 0, free_bytes: 1, full_in_days: 9.6 };
    const facts = { isReady: true, problem: undefined, activity: "", streams: [stream()] };
    expect(describeDaemonState({ ...facts, disk })).toEqual({
      tone: "busy",
      sentence: "Everything is synced; the disk will be full in 9 days.",
    });
    expect(describeDaemonState({ ...facts, disk: { ...disk, full_in_days: 15 } }).tone).toBe("well");
  });

  it("names each stream once: either its missing scope or its failure", () => {
    const derivatives = stream({ stream: "derivative_ticks", missing_scopes: ["x"], last_error: "403" });
    expect(
      describeStreams([
        derivatives,
        stream({ last_error: "503" }),
        stream({ stream: "ohlcv", last_error: "503" }),
      ]),
    ).toEqual({
      tone: "busy",
      sentence:
        "Everything is synced; a scope is missing for derivative ticks; the last attempt at index ticks and ohlcv failed.",
    });
  });
});
