import { describe, expect, it } from "vitest";
import { describeDaemonState } from "../../src/dashboard/daemon-status.ts";
import type { StreamStatus } from "../../src/model/status/warehouse-status.ts";
import { unlimited } from "../support/dashboard/dashboard-harness.ts";

describe("the daemon's state in one sentence", () => {
  const stream = (more: Partial<StreamStatus> = {}): StreamStatus => ({
    ...{ stream: "index_ticks", from_time: null, to_time: null, rows: 1, newest_age_s: 4, is_followed: true },
    ...{ open: 0, open_seconds: 0, open_max_seconds: 0, unconfirmed: 0, oldest_open_age_s: null },
    ...{ lost: 0, lost_seconds: 0, lost_max_seconds: 0 },
    ...{ last_error: null, last_error_at: null, missing_scopes: [], live_offset_ms: null },
    ...more,
  });
  type Arguments = Parameters<typeof describeDaemonState>;
  interface Facts extends Partial<NonNullable<Arguments[1]>> {
    isReady?: boolean;
    problem?: string;
    activity?: string;
    service?: ReturnType<Arguments[0]["service"]>;
  }
  const disk = { warehouse_bytes: 1, wal_bytes: 0, free_bytes: 1, full_in_days: null };
  const describeFacts = (facts: Facts) => {
    const { isReady = true, problem, activity = "filling gaps", service = unlimited, ...status } = facts;
    const view = {
      now: () => Date.parse("2026-03-01T05:57:30Z") * 1000,
      isReady: () => isReady,
      hasSelection: () => true,
      problem: () => problem,
      activity: () => activity,
      service: () => service,
    };
    const confirmations = { starts: 0, not_found: 0, due_at: null };
    return describeDaemonState(view, { streams: [], confirmations, disk, withdrawals: [], ...status });
  };
  const describeStreams = (streams: StreamStatus[], more: Facts = {}) => describeFacts({ ...more, streams });

  it("names the worst problem first", () => {
    expect(describeStreams([stream()])).toEqual({ tone: "well", sentence: "Complete." });
    const filling = "Filling gaps: 1 range left to fetch.";
    expect(describeStreams([stream({ open: 1 })])).toEqual({ tone: "busy", sentence: filling });
    expect(describeStreams([stream({ lost: 1200 })]).sentence).toBe(
      "Complete except 1,200 ranges that the service no longer has.",
    );
    const starting = { tone: "busy", sentence: "Starting: filling gaps." };
    expect(describeStreams([], { isReady: false })).toEqual(starting);
    const stuck = { tone: "ill", sentence: "Stuck: the disk is full." };
    expect(describeStreams([stream({ open: 1 })], { problem: "the disk is full." })).toEqual(stuck);
  });

  it("calls complete what only awaits confirmation, and says when that comes", () => {
    const sentenceOf = (starts: number, not_found: number, due_at: string | null) =>
      describeStreams([stream()], { confirmations: { starts, not_found, due_at } });
    expect(sentenceOf(33, 0, "2026-03-01T06:06:41.000000Z")).toEqual({
      tone: "well",
      sentence: "Complete. 33 series: start of history not confirmed yet; asked again at 06:07 UTC.",
    });
    expect(sentenceOf(1, 2, "2026-03-02T00:00:00.000000Z").sentence).toBe(
      "Complete. 1 series: start of history not confirmed yet, 2 series: not found, not confirmed yet; asked again at 2026-03-02 00:00 UTC.",
    );
    expect(sentenceOf(0, 1, "2026-03-01T05:00:00.000000Z").sentence).toBe(
      "Complete. 1 series: not found, not confirmed yet; asked again now.",
    );
    expect(sentenceOf(0, 0, null).sentence).toBe("Complete.");
  });

  it("calls only data synced, and only once some is stored", () => {
    const lookup = stream({ stream: "assets" });
    const empty = stream({ rows: 0 });
    const nothing = { tone: "busy", sentence: "Nothing is synced yet." };
    expect(describeStreams([stream({ stream: "assets", rows: 0 }), empty])).toEqual(nothing);
    expect(describeStreams([lookup, empty]).sentence).toBe("Nothing but lookups is synced.");
    expect(describeStreams([lookup, stream({ rows: 0, open: 2 })]).sentence).toBe(
      "Filling gaps: 2 ranges left to fetch.",
    );
    expect(describeStreams([lookup, stream()]).sentence).toBe("Complete.");
  });

  it("warns of a disk that will be full within 14 days", () => {
    const filling = (full_in_days: number) =>
      describeStreams([stream()], { disk: { ...disk, full_in_days } });
    expect(filling(9.6)).toEqual({ tone: "busy", sentence: "Complete; the disk will be full in 9 days." });
    expect(filling(15).tone).toBe("well");
  });

  it("says that the service is the bottleneck", () => {
    const streams = [stream({ open: 7 })];
    const service = {
      ...{ ...unlimited, per_second: 9.234, reason: "rate_limited" as const, throttled: true },
      ...{ limit: "the service accepts 9.2 requests a second", limit_since: "2026-03-01T12:07:10.123Z" },
    } as const;
    expect(describeStreams(streams, { service }).sentence).toBe(
      "Filling gaps: 7 ranges left to fetch; the service accepts 9.2 requests a second, since 2026-03-01 12:07 UTC.",
    );
    const failing = { ...service, reason: "settings", limit: null, open_breakers: ["/market-cap"] } as const;
    expect(describeStreams(streams, { service: failing }).sentence).toContain(
      "; /market-cap keeps failing at the service.",
    );
    const limit = "the service fails above 2 requests at once";
    const dead = { ...service, reason: "overloaded", limit, open_breakers: ["host"] } as const;
    expect(describeStreams(streams, { service: dead }).sentence).toContain("; the service does not answer.");
  });

  it("names each stream once: either its missing scope or its failure", () => {
    const derivatives = stream({ stream: "derivative_ticks", missing_scopes: ["x"], last_error: "403" });
    const failing = [stream({ last_error: "503" }), stream({ stream: "ohlcv", last_error: "503" })];
    expect(describeStreams([derivatives, ...failing]).sentence).toBe(
      "Complete; a scope is missing for derivative ticks; the last attempt at index ticks and ohlcv failed.",
    );
  });
});
