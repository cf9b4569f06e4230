import { describe, expect, it } from "vitest";
import { type LoadSign, Pace } from "../../../src/service/http/pace.ts";
import { type RecordedRun, runRecorded } from "../../support/service/recorded-service.ts";
import { type RecordedRow, recordedRows } from "./recorded-services.ts";

const SEEDS = [1, 2, 3];

/** A service that draws nothing does the same with every seed. */
function seedsOf({ service }: RecordedRow): readonly number[] {
  const isDrawn = service.some(({ random, latencyMs }) => random !== undefined || Array.isArray(latencyMs));
  return isDrawn ? SEEDS : SEEDS.slice(0, 1);
}

const MAX_AT_ONCE = 8;

const startPace = (maxAtOnce = MAX_AT_ONCE, maxPerSecond = 0) => new Pace(maxAtOnce, maxPerSecond);

function mean(runs: readonly RecordedRun[], figure: keyof RecordedRun): number {
  return runs.reduce((sum, run) => sum + run[figure], 0) / runs.length;
}

describe("the pace with recorded services", () => {
  const table: [string, RecordedRow][] = recordedRows.map((row) => [row.situation, row]);

  it.each(table)("B17: %s", (_, row) => {
    const runs = seedsOf(row).map((seed) => runRecorded(startPace(), { ...row, seed }));
    const good = mean(runs, "goodPerSecond");
    expect(good).toBeGreaterThanOrEqual(row.minGoodPerSecond);
    expect(mean(runs, "wastedShare")).toBeLessThanOrEqual(row.maxWastedShare);
  });
});

/** Sends one request after another as fast as the pace allows; each takes 5 ms. Returns the time at the end. */
function send(pace: Pace, requests: number, sign: LoadSign, from = 0, retryAfterMs = 0): number {
  let now = from;
  for (let at = 0; at < requests; at++) {
    const startedAt = Math.max(now, pace.startAt);
    pace.recordStart({ now: startedAt, hadToWait: startedAt > now, inFlight: 1 });
    now = startedAt + 5;
    pace.recordAnswer({ sign, now, startedAt, retryAfterMs });
  }
  return now;
}

describe("the pace", () => {
  it("is not limited until a limit is met: after the first answers as many at once as configured", () => {
    const pace = startPace(40);
    const numbers: number[] = [];
    for (let round = 0; round < 6; round++) {
      numbers.push(pace.atOnce);
      send(pace, pace.atOnce, "success", round * 1_000);
    }
    expect(numbers).toEqual([2, 2, 3, 6, 12, 24]);
    expect(send(pace, 500, "success", 10_000)).toBe(12_500);
    expect([pace.atOnce, pace.perSecond]).toEqual([40, Number.POSITIVE_INFINITY]);
  });

  it("keeps to a configured rate, and to a lower one that the service accepts", () => {
    const pace = startPace(MAX_AT_ONCE, 50);
    expect(send(pace, 100, "success")).toBeGreaterThan(1_900);
    const service = [{ limit: { requests: 10, ms: 1_000, window: "sliding" as const } }];
    const limited = startPace(MAX_AT_ONCE, 50);
    runRecorded(limited, { service, seconds: 60, settleSeconds: 0, seed: 1 });
    expect(limited.perSecond).toBeLessThan(15);
    const freed = startPace(MAX_AT_ONCE, 50);
    const ending = [...service, { fromMs: 30_000 }];
    runRecorded(freed, { service: ending, seconds: 60, settleSeconds: 0, seed: 1 });
    expect(freed.perSecond).toBe(50);
  });

  it("B3: 429s in a row are followed by longer and longer silence, at most five seconds", () => {
    const pace = startPace();
    const silences: number[] = [];
    for (let now = 0; silences.length < 20; ) {
      now = send(pace, 1, "rejected", now);
      silences.push(pace.startAt - now);
    }
    expect(silences[0]).toBe(1);
    expect(silences).toEqual(silences.toSorted((a, b) => a - b));
    expect(silences.at(-1)).toBe(5_000);
  });
});

describe("what limits the requests", () => {
  const tell = (service: RecordedRow["service"], seconds = 60) => {
    const pace = startPace();
    runRecorded(pace, { service, seconds, settleSeconds: 0, seed: 1 });
    return pace.describe(seconds * 1_000);
  };
  const limit = { requests: 10, ms: 1_000, window: "sliding" as const };

  it("is told in one clause, with the time since when", () => {
    expect(tell([{}])).toEqual({ reason: "settings", text: undefined, since: undefined });
    const limited = tell([{}, { fromMs: 20_000, limit }]);
    expect(limited).toMatchObject({ reason: "rate_limited" });
    expect(limited.text).toMatch(/^the service accepts (9.\d|10) requests a second$/);
    expect(Math.round((limited.since ?? 0) / 1_000)).toBe(20);
    expect(tell([{ maxAtOnce: 2 }])).toMatchObject({
      reason: "overloaded",
      text: "the service fails above 2 requests at once",
    });
    expect(tell([{ random: { status: 500, share: 0.3 } }])).toMatchObject({ reason: "settings" });
  });

  it("is a pause while the service asks for one", () => {
    const pace = startPace();
    const now = send(pace, 1, "rejected", 0, 7_000);
    expect(pace.describe(now)).toEqual({
      reason: "paused",
      text: "the service asked for a pause (Retry-After)",
      since: now,
    });
    expect(pace.describe(now + 7_000).text).toBeUndefined();
  });
});
