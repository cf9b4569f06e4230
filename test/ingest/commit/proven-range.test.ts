import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  findProvenRange,
  type PageEvidence,
  type PageProof,
  type WalkPosition,
} from "../../../src/ingest/commit/proven-range.ts";
import { type TimeRange, union } from "../../../src/model/time-range.ts";

const hole = { from: 10, to: 100 };
const start: WalkPosition = { gap: hole, provenFrom: hole.to };
const page = (moments: number[], more: Partial<PageEvidence> = {}): PageEvidence => ({
  timestamps: moments,
  foreign: 0,
  isLast: false,
  ...more,
});

describe("what a page proves", () => {
  it("is the span above its oldest record, since ties may be on the next page", () => {
    expect(findProvenRange(start, page([90, 80, 70]))).toMatchObject({
      proven: { from: 71, to: 100 },
      provenFrom: 71,
      isComplete: false,
    });
  });

  it("includes the moment of the previous page's oldest record", () => {
    expect(findProvenRange({ gap: hole, provenFrom: 71 }, page([70, 60]))).toMatchObject({
      proven: { from: 61, to: 71 },
    });
  });

  it("reaches the hole's start on the walk's last page", () => {
    expect(findProvenRange(start, page([90, 80], { isLast: true }))).toMatchObject({
      proven: { from: 10, to: 100 },
      isComplete: true,
    });
    expect(findProvenRange(start, page([], { isLast: true }))).toMatchObject({
      proven: { from: 10, to: 100 },
      isComplete: true,
    });
  });

  it("reaches the hole's start when a record lies below it, never further", () => {
    expect(findProvenRange(start, page([90, 50, 9]))).toMatchObject({
      proven: { from: 10, to: 100 },
      isComplete: true,
    });
    expect(findProvenRange(start, page([90, 50, 10]))).toMatchObject({
      proven: { from: 11, to: 100 },
      isComplete: false,
    });
  });

  it("is nothing on an empty page with a cursor, nor on one that lies above the hole", () => {
    expect(findProvenRange(start, page([]))).toMatchObject({
      proven: undefined,
      provenFrom: 100,
      isComplete: false,
    });
    expect(findProvenRange(start, page([130, 120]))).toMatchObject({ proven: undefined, provenFrom: 100 });
  });

  it("is nothing when the page holds records of another series", () => {
    expect(findProvenRange(start, page([90, 80], { foreign: 1, isLast: true }))).toEqual({
      contradiction: "foreign_rows",
    });
  });

  it("is taken back when a later page shows a record in what was claimed complete", () => {
    const position = { gap: hole, provenFrom: 71 };
    expect(findProvenRange(position, page([95, 60]))).toEqual({
      contradiction: "newer_than_proven",
      retract: { from: 71, to: 100 },
    });
  });

  it("is not taken back by records that a page anchored by timestamp shows again", () => {
    expect(findProvenRange({ gap: hole, provenFrom: 71, anchor: 75 }, page([75, 70, 60]))).toMatchObject({
      proven: { from: 61, to: 71 },
    });
    expect(findProvenRange({ gap: hole, provenFrom: 71, anchor: 75 }, page([76, 70, 60]))).toHaveProperty(
      "retract",
    );
  });

  it("does not change when an inclusive cursor repeats the last record", () => {
    expect(findProvenRange({ gap: hole, provenFrom: 71 }, page([70, 60]))).toEqual(
      findProvenRange({ gap: hole, provenFrom: 71 }, page([70, 70, 60])),
    );
  });

  it("is nothing when the page comes oldest first: the newest records may have been cut off", () => {
    expect(findProvenRange(start, page([70, 80, 90]))).toEqual({ contradiction: "disordered" });
  });

  it("is nothing when the order is neither: one stray moment would claim unread time", () => {
    expect(findProvenRange(start, page([90, 20, 80], { isLast: true }))).toEqual({
      contradiction: "disordered",
    });
  });
});

/** A service whose pages we can misbehave with: `records` newest first, cut into pages of any size. */
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
  const visible = records.filter((moment) => moment <= until);
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

describe("coverage never exceeds what the pages prove", () => {
  it("holds after every page of thousands of random walks: each record in the proven range was seen", () => {
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
          const claimed = srv.records.filter((m) => proven.some(({ from, to }) => from <= m && m < to));
          const held = seen.filter((m) => proven.some(({ from, to }) => from <= m && m < to));
          // Every record of the service in there, ties counted, was on a page (an inclusive cursor may repeat one).
          for (const moment of claimed) {
            const times = (list: number[]) => list.filter((m) => m === moment).length;
            expect(times(held)).toBeGreaterThanOrEqual(times(claimed));
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
      { numRuns: 5000 },
    );
  });

  it("is never credited by pages with foreign records, and is taken back when pages come in the wrong order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 10, max: 99 }), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 11, max: 99 }),
        (moments, provenFrom) => {
          expect(
            findProvenRange({ gap: hole, provenFrom: provenFrom }, page(moments, { foreign: 2 })),
          ).toHaveProperty("contradiction");
          const result = findProvenRange(
            { gap: hole, provenFrom: provenFrom },
            page(moments.sort((a, b) => b - a)),
          );
          const newest = Math.max(...moments);
          if (newest >= provenFrom) expect(result).toMatchObject({ retract: { from: provenFrom, to: hole.to } });
          else expect(result).toMatchObject({ provenFrom: Math.min(...moments) + 1 });
        },
      ),
      { numRuns: 2000 },
    );
  });
});
