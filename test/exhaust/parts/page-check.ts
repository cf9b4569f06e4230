import { MICROS_PER_SECOND, type Micros } from "../../../src/model/time.ts";
import type { TimeRange } from "../../../src/model/time-range.ts";
import {
  type Claim,
  NO_LONGER_SERVED,
  NO_RECORDS,
  NOT_FOUND,
  NOTHING_OLDER,
  type PageAnswer,
  type SeriesRules,
} from "../../../src/rule/answer.ts";
import { decideNotFound } from "../../../src/rule/decide.ts";
import {
  claimNotFound,
  claimRecords,
  findContradiction,
  ignoreClaims,
  interpret,
  type PageAlarm,
} from "../../../src/rule/interpret.ts";
import { withinPresent } from "../../../src/rule/provable-until.ts";
import { plainRules as commonRules, page as onlyPage } from "../../support/rule/pages.ts";
import {
  moments,
  specifyContradiction,
  specifyNotFound,
  specifyPage,
  specifyRecords,
  specifyYoung,
} from "./page-specification.ts";
import {
  combinations,
  type PartCheck,
  type PartResult,
  type PartSize,
  subsets,
  tryAll,
} from "./part-check.ts";
import { hole, type StoredContent, settled, toStoredSeries } from "./stored-content.ts";

const plainPage = onlyPage([], { gap: { from: 2, to: 8 } });
const plainRules: SeriesRules = { ...commonRules, period: 2 };
const noContent: StoredContent = { served: [], previews: [], ledger: [] };

const textOf = ({ kind, range, says, subject, because, lostTo }: Claim) =>
  `${kind} ${range.from} ${range.to} ${says} ${JSON.stringify(subject)} ${because}${because === NO_RECORDS ? "" : ` ${lostTo}`}`;

/** What is said of each moment, and of rows that are missing. */
function textsOf(claims: readonly Claim[]): readonly string[] {
  return claims.flatMap((claim) => {
    const { kind, range, says, because } = claim;
    if (!(range.from < range.to)) return [`about nothing: ${textOf(claim)}`];
    return kind === "records" ? moments(range).map((ts) => `${ts} ${says} ${because}`) : [textOf(claim)];
  });
}

const inner = [5, 4, 3, 2, 1];
const outer = [0, 6];
const holes: readonly (readonly TimeRange[])[] = [
  [],
  [{ from: 2, to: 4 }],
  [{ from: 0, to: 2 }],
  [
    { from: 1, to: 2 },
    { from: 4, to: 7 },
  ],
];

/** Pages of up to five moments, with any rows stored there: each is on the page or not, of REST, a preview or absent. */
function tryRecords(size: PartSize): PartResult {
  const isFull = size === "full";
  const proven = { from: 1, to: 6 };
  const cases = combinations({
    timestamps: size === "small" ? [[], [3], [5, 2]] : subsets(inner),
    rows: Array.from({ length: 3 ** inner.length }, (_, set) => set),
    outer: isFull ? [[], outer] : [[]],
    outerRows: isFull ? [[], outer] : [outer],
    holes,
    page: [{}, { isContinued: true }, { isStale: true }] satisfies Partial<PageAnswer>[],
  });
  return tryAll(cases, (each) => {
    const state = (i: number) => Math.floor(each.rows / 3 ** i) % 3;
    const content = {
      served: [...inner.filter((_, i) => state(i) === 1), ...each.outerRows],
      previews: inner.filter((_, i) => state(i) === 2),
      ledger: [],
    };
    const timestamps = [...each.timestamps, ...each.outer].sort((a, b) => b - a);
    const page = { ...plainPage, gap: proven, provenFrom: proven.to, timestamps, ...each.page };
    const pending = each.holes.map(({ from, to }) => hole(from, to));
    const claims = claimRecords(proven, page, toStoredSeries(content), pending);
    return [textsOf(claims).toSorted(), specifyRecords(proven, page, content, each.holes).toSorted()];
  });
}

/** Longer pages: how many rows may be missing depends on their size. */
function tryLimits(): PartResult {
  const sizes = [0, 1, 19, 20, 21, 29, 30, 31, 39, 40];
  const cases = combinations({ size: sizes, missing: [0, 1, 2, 3, 4, 5] });
  return tryAll(cases, ({ size, missing }) => {
    const proven = { from: 0, to: 100 };
    const page = {
      ...plainPage,
      gap: proven,
      provenFrom: proven.to,
      timestamps: Array.from({ length: size }, (_, i) => 2 * (size - i)),
    };
    const content = { ...noContent, served: Array.from({ length: missing }, (_, i) => 1 + 2 * i) };
    const claims = claimRecords(proven, page, toStoredSeries(content), []);
    return [textsOf(claims).toSorted(), specifyRecords(proven, page, content, []).toSorted()];
  });
}

interface PageCase {
  readonly timestamps: readonly Micros[];
  readonly position: Partial<PageAnswer>;
  readonly final: Micros | undefined;
  readonly isLast: boolean;
  readonly isStale: boolean;
  readonly period: Micros;
  readonly step: Micros;
  readonly windowStart: Micros;
  readonly floor: Micros;
  readonly targetStart: Micros | undefined;
  readonly served: readonly Micros[];
  readonly previews: readonly Micros[];
  readonly ledger: StoredContent["ledger"];
  readonly holes: readonly TimeRange[];
}

const LOWEST = Number.MIN_SAFE_INTEGER;
const positions: readonly Partial<PageAnswer>[] = [
  {},
  { isContinued: true },
  { provenFrom: 6 },
  { provenFrom: 6, isContinued: false },
  { provenFrom: 3 },
];

function tryPage(each: PageCase): readonly [unknown, unknown] {
  const { timestamps, isLast, isStale, final, period, step, windowStart, floor } = each;
  const { served, previews, ledger, targetStart } = each;
  const slack = isStale ? 0 : 5 * MICROS_PER_SECOND;
  const madeAt = final === undefined ? undefined : final - slack;
  const page = { ...plainPage, ...each.position, timestamps, isLast, isStale, madeAt };
  const content = { served, previews, ledger, targetStart };
  const rules = { ...plainRules, period, step, windowStart, floor };
  const pending = each.holes.map(({ from, to }) => hole(from, to));
  const actual = interpret(page, toStoredSeries(content), pending, rules);
  const { proven, isComplete, reopened, endsAt } = actual;
  const end = actual.claims.find(({ because }) => because === NOTHING_OLDER);
  const specified = specifyPage(page, content, each.holes, rules);
  const said = actual.claims.filter(({ because }) => because !== NOTHING_OLDER);
  const wanted = proven ? specifyRecords(proven, page, content, each.holes) : [];
  return [
    {
      proven: proven && moments(proven),
      isComplete,
      reopened,
      end: end && textOf(end),
      endsAt,
      said: textsOf(said).toSorted(),
    },
    { ...specified, said: wanted.toSorted() },
  ];
}

/** What the records of a page prove, for every page of up to two records at ten moments. */
function tryProven(size: PartSize): PartResult {
  const isSmall = size === "small";
  const all = [9, 8, 7, 6, 5, 4, 3, 2, 1, 0];
  const pages = subsets(all).filter((timestamps) => timestamps.length <= 2);
  const cases = combinations<PageCase>({
    timestamps: pages,
    position: positions,
    final: isSmall ? [undefined, 6] : [undefined, 6, 4],
    isLast: [false, true],
    isStale: [false, true],
    period: [2],
    step: [1],
    windowStart: isSmall ? [LOWEST, 3] : [LOWEST, 3, 4],
    floor: [LOWEST],
    targetStart: [undefined],
    served: [[]],
    previews: [[]],
    ledger: [[], [settled(0, 5, NOTHING_OLDER)]],
    holes: [[]],
  });
  return tryAll(cases, tryPage);
}

/** A page of the head: above its only record it proves one period, since the service may not have published more. */
function tryHeads(): PartResult {
  const cases = combinations({
    timestamps: subsets([8, 7, 6, 5, 4, 3, 2, 1]).filter(({ length }) => length <= 1),
    final: [undefined, 7, 4],
    isLast: [false, true],
  });
  return tryAll(cases, ({ timestamps, final, isLast }) => {
    const madeAt = final === undefined ? undefined : final - 5 * MICROS_PER_SECOND;
    const page = { ...plainPage, timestamps, isLast, madeAt, isHead: true };
    const { proven, bound } = interpret(page, toStoredSeries(noContent), [], plainRules);
    const wanted = specifyPage(page, noContent, [], plainRules).proven ?? [];
    const publishedTo = (timestamps[0] ?? Number.NEGATIVE_INFINITY) + plainRules.period;
    const isEmptyEnd = isLast && timestamps.length === 0;
    return [
      { proven: proven ? moments(proven) : [], isUnpublished: bound.isUnpublished },
      {
        proven: wanted.filter((ts) => ts < publishedTo),
        isUnpublished: isEmptyEnd || wanted.some((ts) => ts >= publishedTo),
      },
    ];
  });
}

/** What a last page says about older records, for any rows and ledger below it. */
function tryEnds(size: PartSize): PartResult {
  const isFull = size === "full";
  const isSmall = size === "small";
  const cases = combinations<PageCase>({
    timestamps: [[], [7], [7, 4]],
    position: isFull ? positions : [{}, { provenFrom: 6 }],
    final: isSmall ? [undefined] : [undefined, 6, 2],
    isLast: [true],
    isStale: isFull ? [false, true] : [false],
    period: [2],
    step: isSmall ? [1] : [1, 2],
    windowStart: [LOWEST, 1, 5],
    floor: [LOWEST, 1],
    targetStart: isFull ? [undefined, 0, 3] : [undefined, 0],
    served: subsets([0, 1, 3, 8]),
    previews: isFull ? [[], [4]] : [[]],
    ledger: [
      [],
      [settled(0, 2, NOTHING_OLDER)],
      [settled(0, 2, NO_RECORDS)],
      [settled(-1, 1, NOTHING_OLDER), settled(1, 8, null, "rows")],
      [settled(0, 2, NOTHING_OLDER), settled(3, 5, NO_RECORDS)],
      [settled(0, 3, NO_LONGER_SERVED, "lost"), settled(3, 8, NOTHING_OLDER)],
      [settled(0, 8, NOTHING_OLDER)],
    ],
    holes: isFull ? [[], [{ from: 0, to: 1 }], [{ from: 1, to: 4 }]] : [[], [{ from: 1, to: 4 }]],
  });
  return tryAll(cases, tryPage);
}

function tryNotFound(): PartResult {
  const cases = combinations({
    served: subsets([0, 7, 8]),
    previews: [[], [5]],
    ledger: [
      [],
      [settled(0, 2, NOT_FOUND)],
      [settled(0, 3, NOT_FOUND)],
      [settled(0, 1, NOT_FOUND)],
      [settled(0, 2, NOTHING_OLDER)],
    ],
    targetStart: [undefined, 0, 3],
    floor: [LOWEST, 1, 4],
    step: [1, 2],
  });
  const { gap } = plainPage;
  return tryAll(cases, ({ floor, step, ...content }) => {
    const rules = { ...plainRules, floor, step };
    const stored = toStoredSeries(content);
    const sides = [gap, { from: 3, to: 3 }].map((range) => {
      const claim = claimNotFound(range, stored, rules);
      const known = { stored, rules, pending: [], confirmation: { answers: 2, over: 1 }, now: 0 };
      const recorded = decideNotFound(range, known).recorded.map(
        (one) => `${one.range.from}-${one.range.to}`,
      );
      const { from, to } = claim.range;
      const mustRepeat = from < to && claim.kind === "not found";
      return [
        `${textOf(claim)} ${recorded}`,
        `${specifyNotFound(range, content, rules)} ${mustRepeat ? `${from}-${to}` : ""}`,
      ];
    });
    return [sides.map(([actual]) => actual).join(), sides.map(([, wanted]) => wanted).join()];
  });
}

/** Pages of up to three records in any order. */
function tryContradictions(): PartResult {
  const points = [0, 1, 2, 3, 4];
  const lists: number[][] = [[]];
  for (const list of lists) if (list.length < 3) lists.push(...points.map((ts) => [...list, ts]));
  const cases = combinations({
    timestamps: lists,
    provenFrom: [1, 2, 3, 4],
    anchor: [undefined, 0, 1, 2, 3],
    foreign: [0, 1],
  });
  return tryAll(cases, (each) => {
    const page = { ...plainPage, gap: { from: 1, to: 4 }, ...each };
    return [findContradiction(page), specifyContradiction(page)];
  });
}

/** The ranges that a page with a contradiction opens: those it shows to be wrong. */
function tryIgnored(): PartResult {
  const cases = combinations({
    timestamps: subsets([0, 1, 2, 3]).map((list) => [...list].reverse()),
    ledger: [
      [],
      [settled(0, 2, NO_RECORDS)],
      [settled(0, 1, NO_RECORDS), settled(1, 3)],
      [settled(1, 2, NO_RECORDS), settled(3, 4, NOTHING_OLDER)],
    ],
    alarm: ["newer_than_proven", "disordered", "foreign_rows", "mass_rejection"] satisfies PageAlarm[],
  });
  return tryAll(cases, ({ timestamps, ledger, alarm }) => {
    const page = { ...plainPage, gap: { from: 1, to: 4 }, provenFrom: 2, timestamps };
    const { young, reopened } = ignoreClaims(page, toStoredSeries({ ...noContent, ledger }), alarm);
    const wrong = ledger.filter(
      (range) => range.proof === "empty" && timestamps.some((ts) => moments(range).includes(ts)),
    );
    return [
      [young, reopened],
      [alarm === "newer_than_proven" ? [{ from: 2, to: 4 }] : [], wrong],
    ];
  });
}

function tryYoung(): PartResult {
  const cases = combinations({
    lateness: [0, 5, 6, 7],
    isDaily: [false, true],
    step: [1, 4],
    isHead: [false, true],
    isStale: [false, true],
    asOf: [100, 103],
  });
  return tryAll(cases, ({ isHead, isStale, asOf, ...each }) => {
    const page = { ...plainPage, isHead, isStale, asOf };
    const rules = { ...plainRules, settleDelay: 6, ...each };
    const { young } = interpret(page, toStoredSeries(noContent), [], rules);
    const from = specifyYoung(page, rules);
    return [young, from === undefined ? [] : [{ from, to: Number.MAX_SAFE_INTEGER }]];
  });
}

/** An absence is proven step by step: as far as both clocks have passed it, or all of it if another series has later records. */
function tryPresent(): PartResult {
  const cases = combinations({
    to: [0, 2, 4, 6],
    step: [1, 2],
    present: [undefined, 0, 1, 2, 3, 4, 5, 6, 7, 8],
    isPublished: [false, true],
  });
  return tryAll(cases, ({ to, step, present, isPublished }) => {
    const stored = { ...toStoredSeries(noContent), hasOtherPublished: () => isPublished };
    const until = withinPresent(to, stored, present === undefined ? { step } : { step, present });
    const ends = Array.from({ length: 8 / step }, (_, at) => (at + 1) * step);
    const isProven = (end: Micros) => end <= to && (isPublished || end <= (present ?? to));
    return [ends.filter((end) => end <= until), ends.filter(isProven)];
  });
}

export const pageChecks: readonly PartCheck[] = [
  { name: "withinPresent", run: tryPresent },
  { name: "findContradiction", run: tryContradictions },
  { name: "claimNotFound", run: tryNotFound },
  { name: "ignoreClaims", run: tryIgnored },
  { name: "interpret: young", run: tryYoung },
  { name: "interpret: head", run: tryHeads },
  { name: "interpret: proven", run: tryProven },
  { name: "claimRecords: limits", run: tryLimits },
  { name: "claimRecords", run: tryRecords },
  { name: "interpret: ends", run: tryEnds },
];
