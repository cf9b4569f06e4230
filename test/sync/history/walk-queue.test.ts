import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Micros } from "../../../src/model/time.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { type QueueRunOptions, runQueue } from "../../support/sync/queue-run.ts";

const cadence = 30 * MICROS_PER_SECOND;
const end = 20_500 * MICROS_PER_DAY;
const start = end - 200 * MICROS_PER_DAY;
const window = { open: [{ from: start, to: end }], targetEnd: end, windowStart: start, cadence, workers: 12 };

/** A row every `seconds` in the last `days`. */
function regularRows(seconds: number, days: number): Micros[] {
  const count = Math.floor((days * 86_400) / seconds);
  return Array.from({ length: count }, (_, at) => end - (count - at) * seconds * MICROS_PER_SECOND);
}

/** Fills the window and checks that nothing is missing. Returns the requests of each series. */
async function fill(options: Pick<QueueRunOptions, "histories"> & Partial<QueueRunOptions>) {
  const result = await runQueue({ ...window, ...options });
  const { open } = { ...window, ...options };
  for (const [series, history] of options.histories.entries()) {
    const isMissing = (ts: Micros, row: number) =>
      result.received[series]?.[row] !== 1 && open.some(({ from, to }) => from <= ts && ts < to);
    expect(history.filter(isMissing)).toEqual([]);
    expect(result.covered[series]).toEqual(open);
  }
  return result;
}

describe("the walks of a round", () => {
  it.each([
    ["the whole window", 30, 200, 1],
    ["every 45 seconds", 45, 200, 1],
    ["each minute", 60, 200, 2],
    ["every five minutes", 300, 200, 2],
    ["100 days", 30, 100, 4],
    ["5 days", 30, 5, 3],
    ["2 days", 30, 2, 2],
    ["half an hour", 30, 0.02, 2],
  ])("H9: rows of %s need their full pages and few requests more", async (_, seconds, days, more) => {
    const history = regularRows(seconds, days);
    const { requests } = await fill({ histories: [history, history, history] });
    const pages = Math.ceil(history.length / 2000);
    for (const count of requests) expect(count).toBeLessThanOrEqual(pages + more);
  });

  it("H9: a series without rows needs three requests", async () => {
    const { requests } = await fill({ histories: [[], []] });
    expect(requests).toEqual([3, 3]);
  });

  it("use all workers, for one long series as for many", async () => {
    const history = regularRows(30, 200);
    const one = await fill({ histories: [history], workers: 8 });
    expect(one.maxInFlight).toBe(8);
    expect(one.steps).toBeLessThan((1.15 * 288) / 8);
    const many = await fill({ histories: [history, history, history], workers: 8 });
    expect(many.steps).toBeLessThan((1.05 * 3 * 288) / 8);
  });

  const histories = fc
    .record({
      /** In seconds, repeated. */
      distances: fc.array(fc.integer({ min: 20, max: 90 }), { minLength: 1, maxLength: 40 }),
      count: fc.integer({ min: 0, max: 6_000 }),
      holes: fc.array(
        fc.record({ at: fc.integer({ max: 6_000 }), hours: fc.integer({ min: 1, max: 500 }) }),
        { maxLength: 3 },
      ),
      endsBefore: fc.constantFrom(0, 0, 0, 3_600, 40 * 86_400),
    })
    .map(({ distances, count, holes, endsBefore }) => {
      const rows: Micros[] = [];
      let ts = end - endsBefore * MICROS_PER_SECOND;
      for (let at = 0; at < count; at++) {
        const hole = holes.find((each) => each.at === at);
        ts -= ((distances[at % distances.length] as number) + (hole?.hours ?? 0) * 3_600) * MICROS_PER_SECOND;
        rows.push(ts);
      }
      return { rows: rows.reverse(), holes: holes.length + (endsBefore > 0 ? 1 : 0) };
    });

  it("H9: fetch any history whole, with a bounded number of requests", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(histories, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(2000, 100, 37),
        fc.boolean(),
        fc.integer({ min: 1, max: 16 }),
        async (series, pageSize, hasNextIdAtEnd, workers) => {
          const { requests } = await fill({
            histories: series.map(({ rows }) => rows),
            pageSize,
            hasNextIdAtEnd,
            workers,
          });
          for (const [at, { rows, holes }] of series.entries()) {
            const pages = Math.ceil(rows.filter((ts) => ts >= start).length / pageSize);
            // A hole at the end of a page needs a probe; an exploration may fall into one too.
            expect(requests[at]).toBeLessThanOrEqual(1.05 * pages + 5 + 2 * holes);
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
