import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  findProvenRange,
  findQuietMargin,
  type PageEvidence,
  type PageProof,
  type SilenceEvidence,
  type WalkPosition,
} from "../../../src/ingest/commit/proven-range.ts";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import { type TimeRange, union } from "../../../src/model/time-range.ts";

const gap = { from: 10, to: 100 };
const start: WalkPosition = { gap: gap, provenFrom: gap.to };
const page = (timestamps: number[], more: Partial<PageEvidence> = {}): PageEvidence => ({
  timestamps: timestamps,
  foreign: 0,
  isLast: false,
  ...more,
});

describe("what a page proves", () => {
  it("is the range above its oldest record, since the next page may have the same timestamp", () => {
    expect(findProvenRange(start, page([90, 80, 70]))).toMatchObject({
      proven: { from: 71, to: 100 },
      provenFrom: 71,
      isComplete: false,
    });
  });

  it("includes the timestamp of the previous page's oldest record", () => {
    expect(findProvenRange({ gap: gap, provenFrom: 71 }, page([70, 60]))).toMatchObject({
      proven: { from: 61, to: 71 },
    });
  });

  it("reaches the gap's start on the walk's last page", () => {
    expect(findProvenRange(start, page([90, 80], { isLast: true }))).toMatchObject({
      proven: { from: 10, to: 100 },
      isComplete: true,
    });
    expect(findProvenRange(start, page([], { isLast: true }))).toMatchObject({
      proven: { from: 10, to: 100 },
      isComplete: true,
    });
  });

  it("reaches the gap's start if a record is below it, never further", () => {
    expect(findProvenRange(start, page([90, 50, 9]))).toMatchObject({
      proven: { from: 10, to: 100 },
      isComplete: true,
    });
    expect(findProvenRange(start, page([90, 50, 10]))).toMatchObject({
      proven: { from: 11, to: 100 },
      isComplete: false,
    });
  });

  it("is nothing for an empty page with a cursor, or a page above the gap", () => {
    expect(findProvenRange(start, page([]))).toMatchObject({
      proven: undefined,
      provenFrom: 100,
      isComplete: false,
    });
    expect(findProvenRange(start, page([130, 120]))).toMatchObject({ proven: undefined, provenFrom: 100 });
  });

  it("is nothing if the page has records of another series", () => {
    expect(findProvenRange(start, page([90, 80], { foreign: 1, isLast: true }))).toEqual({
      contradiction: "foreign_rows",
    });
  });

  it("is retracted if a later page has a record in the proven range", () => {
    const position = { gap: gap, provenFrom: 71 };
    expect(findProvenRange(position, page([95, 60]))).toEqual({
      contradiction: "newer_than_proven",
      retract: { from: 71, to: 100 },
    });
  });

  it("is not retracted by records that repeat after a restart at an anchor", () => {
    expect(findProvenRange({ gap: gap, provenFrom: 71, anchor: 75 }, page([75, 70, 60]))).toMatchObject({
      proven: { from: 61, to: 71 },
    });
    expect(findProvenRange({ gap: gap, provenFrom: 71, anchor: 75 }, page([76, 70, 60]))).toHaveProperty(
      "retract",
    );
  });

  it("does not change when an inclusive cursor repeats the last record", () => {
    expect(findProvenRange({ gap: gap, provenFrom: 71 }, page([70, 60]))).toEqual(
      findProvenRange({ gap: gap, provenFrom: 71 }, page([70, 70, 60])),
    );
  });

  it("is nothing if the page is oldest first: the newest records may be cut off", () => {
    expect(findProvenRange(start, page([70, 80, 90]))).toEqual({ contradiction: "disordered" });
  });

  it("is nothing if the page is unordered: a stray timestamp would prove an unread range", () => {
    expect(findProvenRange(start, page([90, 20, 80], { isLast: true }))).toEqual({
      contradiction: "disordered",
    });
  });
});

/** A service with `records` (newest first) in pages of any size, and optional misbehaviour. */
interface Service {
  records: number[];
  sizes: number[];
  inclusive: boolean;
  emptyAt: number[];
  nextIdOnLast: boolean;
}

const service: fc.Arbitrary<Service> = fc.record({
  records: fc
    .array(fc.integer({ min: 0, max: 60 }), { maxLength: 60 })
    .map((list) => list.sort((a, b) => b - a)),
  sizes: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 }),
  inclusive: fc.boolean(),
  emptyAt: fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 2 }),
  nextIdOnLast: fc.boolean(),
});

function* pagesOf(
  { records, sizes, inclusive, emptyAt, nextIdOnLast }: Service,
  until: number,
): Generator<PageEvidence> {
  const visible = records.filter((ts) => ts <= until);
  let at = 0;
  for (let number = 0; at < visible.length || number === 0; number++) {
    if (emptyAt.includes(number)) yield page([]);
    const size = Math.max(sizes[number % sizes.length] ?? 1, inclusive ? 2 : 1);
    const rows = visible.slice(Math.max(0, inclusive ? at - 1 : at), at + size);
    at += size;
    const last = at >= visible.length;
    yield page(rows, { isLast: last && !nextIdOnLast });
    if (last && nextIdOnLast) yield page([], { isLast: true });
    if (last) return;
  }
}

describe("a page that repeats", () => {
  it("only the oldest record of the page before proves nothing", () => {
    const position = { gap, provenFrom: 50 };
    const nothing = { proven: undefined, provenFrom: 50, isComplete: false };
    expect(findProvenRange(position, page([49]))).toEqual(nothing);
    expect(findProvenRange(position, page([49, 49]))).toEqual(nothing);
    expect(findProvenRange(position, page([49, 48]))).toMatchObject({ proven: { from: 49, to: 50 } });
  });

  it("records between the anchor and the proven range contradicts nothing", () => {
    const position = { gap, provenFrom: 50, anchor: 30 };
    expect(findProvenRange(position, page([40, 20]))).toMatchObject({ proven: { from: 21, to: 50 } });
    expect(findProvenRange(position, page([50, 20]))).toMatchObject({ contradiction: "newer_than_proven" });
  });
});

describe("coverage never exceeds what the pages prove", () => {
  it("after every page of a thousand random walks, each record in the proven range was on a page", () => {
    fc.assert(
      fc.property(service, fc.tuple(fc.nat(60), fc.nat(60)), fc.nat(30), (srv, [a, b], stopAfter) => {
        const target: TimeRange = { from: Math.min(a, b), to: Math.max(a, b) + 1 };
        let position: WalkPosition = { gap: target, provenFrom: target.to };
        let proven = union([], []);
        const seen: number[] = [];
        let complete = false;
        let pages = 0;
        for (const evidence of pagesOf(srv, target.to)) {
          if (pages++ > stopAfter) break;
          seen.push(...Array.from(evidence.timestamps));
          const proof = findProvenRange(position, evidence) as PageProof;
          expect(proof).not.toHaveProperty("contradiction");
          if (proof.proven) proven = union(proven, [proof.proven]);
          position = { gap: target, provenFrom: proof.provenFrom };
          const inProven = srv.records.filter((m) => proven.some(({ from, to }) => from <= m && m < to));
          const received = seen.filter((m) => proven.some(({ from, to }) => from <= m && m < to));
          // Every record in the range, counting equal timestamps, was on a page (an inclusive cursor may repeat one).
          for (const ts of inProven) {
            const times = (list: number[]) => list.filter((m) => m === ts).length;
            expect(times(received)).toBeGreaterThanOrEqual(times(inProven));
          }
          if (proof.isComplete) {
            complete = true;
            break;
          }
        }
        for (const range of proven) expect(range.from >= target.from && range.to <= target.to).toBe(true);
        if (complete) expect(proven).toEqual([target]);
        else if (stopAfter >= 30) expect(complete).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it("pages with foreign records prove nothing, and pages in the wrong order retract", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 10, max: 99 }), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 11, max: 99 }),
        (timestamps, provenFrom) => {
          expect(findProvenRange({ gap, provenFrom }, page(timestamps, { foreign: 2 }))).toHaveProperty(
            "contradiction",
          );
          const result = findProvenRange({ gap, provenFrom }, page(timestamps.sort((a, b) => b - a)));
          const newest = Math.max(...timestamps);
          if (newest >= provenFrom)
            expect(result).toMatchObject({ retract: { from: provenFrom, to: gap.to } });
          else expect(result).toMatchObject({ provenFrom: Math.min(...timestamps) + 1 });
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("silence above the newest record", () => {
  const HOUR = 3600 * MICROS_PER_SECOND;
  const asOf = 100 * 24 * HOUR;
  const marginOf = (duration: number, more: Partial<SilenceEvidence> = {}) =>
    findQuietMargin({
      nextDue: asOf - duration,
      asOf,
      quietMargin: HOUR,
      isConfirmed: true,
      hasOtherPublished: () => true,
      ...more,
    });
  const silentFor = (...silence: Parameters<typeof marginOf>) => marginOf(...silence) === HOUR;

  it("counts once it is longer than the margin and REST has newer records of another series", () => {
    expect(silentFor(HOUR)).toBe(false);
    expect(silentFor(HOUR + 1)).toBe(true);
    expect(marginOf(HOUR + 1, { quietMargin: 2 * HOUR })).toBeUndefined();
  });

  it("counts only after a day if REST as a whole may lag", () => {
    const hasOtherPublished = () => false;
    expect(silentFor(24 * HOUR, { hasOtherPublished })).toBe(false);
    expect(silentFor(24 * HOUR + 1, { hasOtherPublished })).toBe(true);
  });

  it("H1: of a series without any record counts up to a day before if REST as a whole may lag", () => {
    expect(marginOf(0, { nextDue: undefined })).toBe(HOUR);
    const late = { nextDue: undefined, hasOtherPublished: () => false };
    expect(marginOf(0, late)).toBe(24 * HOUR);
    expect(marginOf(0, { ...late, quietMargin: 30 * HOUR })).toBe(30 * HOUR);
    expect(marginOf(0, { ...late, quietMargin: 0 })).toBe(24 * HOUR);
  });

  it("never counts without a second response", () => {
    expect(silentFor(48 * HOUR, { isConfirmed: false })).toBe(false);
    expect(marginOf(0, { nextDue: undefined, isConfirmed: false })).toBeUndefined();
  });
});
