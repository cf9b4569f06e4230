import { MICROS_PER_DAY as DAY, type Micros, MICROS_PER_SECOND as SECOND } from "../../../src/model/time.ts";
import type { PageAnswer, Proof, Publication, SeriesRules, SettledRange } from "../../../src/rule/answer.ts";
import { provableUntil } from "../../../src/rule/provable-until.ts";
import { type BoundCase, judgeBound, type StoredFacts, toStored } from "./bound-specification.ts";
import { type PartCheck, sample, tryCases } from "./part-check.ts";

// Every page of up to three records on a coarse grid with what may be stored beside it. Times are distances from the end of the gap.

const HOUR = 3600 * SECOND;
const PERIOD = 30 * SECOND;
const SETTLE = 60 * SECOND;
const noon = Date.parse("2026-03-01T12:00:00Z") * 1000;
const midnight = Date.parse("2026-03-01T00:00:00Z") * 1000;

const tickRules: SeriesRules = {
  period: PERIOD,
  settleDelay: SETTLE,
  lateness: 0,
  step: 1,
  isDaily: false,
  quietMargin: HOUR,
  windowStart: Number.MIN_SAFE_INTEGER,
  floor: Number.MIN_SAFE_INTEGER,
};
const barRules: SeriesRules = { ...tickRules, period: DAY, step: DAY, isDaily: true };

/** Which server made the page, of which walk. */
const kinds = [
  { isHead: true, isStale: false },
  { isHead: false, isStale: false },
  { isHead: true, isStale: true },
] as const;
const booleans = [false, true];

interface Draft {
  readonly zero: Micros;
  readonly gapFrom?: number;
  readonly ages: readonly number[];
  readonly asOf: number;
  readonly kind: (typeof kinds)[number];
  readonly page?: Partial<PageAnswer>;
  readonly rules?: Partial<SeriesRules>;
  readonly live?: readonly number[];
  readonly served?: readonly number[];
  readonly settled?: readonly SettledRange[];
  readonly publication?: Partial<Publication> | undefined;
  readonly othersTo?: number;
  readonly servesRunningDay?: boolean;
  readonly continuesAt?: number | undefined;
}

/** The cases of a draft: what the page may prove begins with the gap, above its oldest record, or nowhere. */
function* complete(draft: Draft): Generator<BoundCase> {
  const { zero, ages, asOf, kind, publication, continuesAt, gapFrom = -3 * DAY } = draft;
  const move = (age: number) => zero + age;
  const gap = { from: move(gapFrom), to: zero };
  const timestamps = ages.map(move);
  const stored: StoredFacts = {
    served: (draft.served ?? []).map(move),
    live: (draft.live ?? []).map(move).sort((a, b) => a - b),
    settled: (draft.settled ?? []).map((range) => ({ ...range, from: move(range.from), to: move(range.to) })),
    publication: publication && {
      ...{ askedAt: 0, askedTo: 0, quietMargin: 0, ...publication },
      publishedTo: publication.publishedTo === undefined ? 0 : move(publication.publishedTo),
    },
    othersTo: move(draft.othersTo ?? Number.NEGATIVE_INFINITY),
    servesRunningDay: draft.servesRunningDay ?? false,
  };
  const page: PageAnswer = {
    gap,
    provenFrom: move(continuesAt ?? 0),
    isContinued: continuesAt === 0 ? true : undefined,
    timestamps,
    foreign: 0,
    isLast: false,
    isSilenceConfirmed: false,
    madeAt: move(asOf),
    asOf: move(asOf),
    ...kind,
    ...draft.page,
  };
  const rules = { ...(zero === midnight ? barRules : tickRules), ...draft.rules };
  const oldest = timestamps.at(-1);
  const above = oldest === undefined ? Number.POSITIVE_INFINITY : Math.max(gap.from, oldest + 1);
  for (const lower of new Set([gap.from, above])) yield { page, lower, stored, rules };
}

/** What was final when the page was made. */
function* finality(): Generator<Draft> {
  for (const kind of kinds)
    for (const [zero, ages] of [
      [noon, [-PERIOD, -2 * PERIOD]],
      [midnight, [-DAY, -2 * DAY]],
    ] as const)
      for (const lateness of [0, PERIOD, 3 * PERIOD])
        for (const delay of [SETTLE, 3 * PERIOD])
          for (const early of [5 * SECOND + 1, 5 * SECOND, 1, 0])
            for (const isDated of booleans)
              for (const continuesAt of [undefined, -1, 0])
                for (const live of [[], [-1], [-PERIOD + 20 * SECOND]]) {
                  const asOf = delay - early;
                  const page = isDated ? {} : { madeAt: undefined };
                  yield { zero, ages, asOf, kind, page, rules: { lateness }, continuesAt, live };
                  // The walk began with an earlier page.
                  const madeAt = zero + asOf - PERIOD;
                  if (isDated) yield { zero, ages, asOf, kind, page: { madeAt }, rules: { lateness }, live };
                }
}

const distances = [0, 2, 15, 15.000001, 29.993, 30, 60].map((seconds) => seconds * SECOND);

/** Pages with this newest record: one, two or three records. */
function* pagesBelow(newest: number): Generator<readonly number[]> {
  yield [newest];
  for (const distance of distances) {
    yield [newest, newest - distance];
    yield [newest, newest - PERIOD, newest - PERIOD - distance];
  }
}

const OLD = -600 * SECOND;

/** Records and live ticks at the end of the gap, near each other and apart. */
function* liveTicks(): Generator<Draft> {
  const asOf = SETTLE;
  for (const newest of [asOf + PERIOD + 1, asOf + PERIOD, 0, -PERIOD, -PERIOD - 1, OLD])
    for (const records of [[newest], [newest, OLD], [newest, newest - 29.993 * SECOND, OLD]])
      for (const kind of kinds) {
        const shown = newest > asOf + PERIOD ? OLD : newest;
        const ticks = [-10, 0, 15, 15.000001, 29.992999, 29.993, 29.999999, 30].map(
          (s) => shown + s * SECOND,
        );
        for (const live of [[], ...ticks.map((tick) => [tick]), [shown + 1, shown + 20 * SECOND], [-1]])
          for (const lateness of [0, 3 * PERIOD])
            for (const isSilenceConfirmed of booleans)
              yield {
                ...{ zero: noon, ages: records, asOf, kind, live },
                page: { isSilenceConfirmed },
                rules: { lateness },
              };
        // REST lags behind the websocket for up to an hour.
        for (const tick of [20 * SECOND, 29 * SECOND])
          for (const more of [-1, 0, 1])
            yield {
              ...{ zero: noon, ages: records, asOf: shown + tick + HOUR + more, kind, live: [shown + tick] },
              page: { madeAt: undefined },
            };
      }
  const publication = { publishedTo: 0 };
  for (const kind of kinds)
    for (const tick of [OLD - 1, OLD, OLD + 1, -1, 0])
      for (const more of [SETTLE, HOUR - 1, HOUR])
        yield { zero: noon, gapFrom: OLD, ages: [], asOf: tick + more, kind, live: [tick], publication };
}

/** Silence above the newest record, shorter and longer than what decides. */
function* silence(): Generator<Draft> {
  for (const quietMargin of [0, HOUR, 30 * HOUR])
    for (const kind of kinds)
      for (const since of [...new Set([PERIOD, HOUR, DAY, quietMargin])])
        for (const more of [-1, 0, 1])
          for (const asOf of [SETTLE, 2 * HOUR]) {
            const youngest = asOf + 5 * SECOND - quietMargin;
            const newest = asOf - since - PERIOD - more;
            for (const ages of [...pagesBelow(newest), []])
              for (const othersTo of [undefined, youngest - 1, youngest])
                for (const live of [[], [-1], [0], [newest + PERIOD], [newest + PERIOD - 1]])
                  for (const isSilenceConfirmed of booleans)
                    yield {
                      ...{ zero: noon, ages, asOf, kind, live, rules: { quietMargin } },
                      ...(othersTo === undefined ? {} : { othersTo }),
                      page: { isSilenceConfirmed },
                    };
          }
}

/** What earlier pages have shown. */
function* shownBefore(): Generator<Draft> {
  const proofs: readonly Proof[] = ["rows", "empty", "lost"];
  const ranges = [
    [-HOUR, 0],
    [0, HOUR],
    [-HOUR, 1],
  ] as const;
  const ledgers: (readonly SettledRange[])[] = [
    [],
    ...proofs.flatMap((proof) => ranges.map(([from, to]) => [{ from, to, proof, reason: null }])),
    [
      { from: 0, to: HOUR, proof: "rows", reason: null },
      { from: HOUR, to: 2 * HOUR, proof: "empty", reason: null },
    ],
  ];
  for (const settled of ledgers)
    for (const kind of kinds)
      for (const ages of [
        [],
        [-PERIOD],
        [-PERIOD - 1],
        [-HOUR],
        [-HOUR, -HOUR - 29.993 * SECOND],
        [-2 * DAY],
      ])
        for (const publishedTo of [undefined, -2 * HOUR, -1, 0, HOUR])
          for (const served of [[], [-40 * SECOND], [-PERIOD], [-2 * HOUR], [HOUR]])
            for (const asOf of [SETTLE, 3 * HOUR])
              for (const live of [[], [-1]]) {
                const publication = publishedTo === undefined ? undefined : { publishedTo };
                yield { zero: noon, ages, asOf, kind, settled, served, live, publication };
              }
}

/** Bars: of a running day, of the last one, and none for days. */
function* bars(): Generator<Draft> {
  const newestDays = [1, 0, -1, -2, -4, -7];
  const pages = newestDays.flatMap((day) => [[day], [day, day - 1], [day, day - 1, day - 3]]);
  for (const days of [[], ...pages]) {
    const ages = days.map((day) => day * DAY);
    const newest = ages[0] ?? 0;
    const due = newest + 2 * DAY;
    const moments = [-HOUR - 1, -HOUR, -1, SETTLE - 5 * SECOND - 1, SETTLE, DAY / 2];
    const edges = [HOUR, DAY, 30 * HOUR].flatMap((margin) => [
      due + margin,
      due + margin + 1,
      due + margin - DAY + 1,
    ]);
    for (const asOf of [...moments, ...edges])
      for (const kind of kinds)
        for (const servesRunningDay of booleans)
          for (const quietMargin of [HOUR, 30 * HOUR]) {
            const youngest = asOf + 5 * SECOND - quietMargin;
            const whole = Math.floor(youngest / DAY) * DAY;
            const common = { zero: midnight, ages, asOf, kind, servesRunningDay, rules: { quietMargin } };
            for (const othersTo of [undefined, whole - 1, whole])
              for (const served of [[], [-2 * DAY], [-DAY]])
                yield {
                  ...common,
                  served,
                  ...(othersTo === undefined ? {} : { othersTo }),
                  page: { isSilenceConfirmed: asOf !== DAY / 2 },
                };
            for (const quiet of [undefined, 0, HOUR])
              for (const continuesAt of [-DAY + 1, 1 - 2 * DAY])
                yield {
                  ...common,
                  ages: [-3 * DAY],
                  continuesAt,
                  publication: quiet === undefined ? undefined : { publishedTo: -DAY, quietMargin: quiet },
                };
          }
  }
}

const groups = { finality, liveTicks, shownBefore, bars, silence };

function* casesOf(drafts: Iterable<Draft>): Generator<BoundCase> {
  for (const draft of drafts) yield* complete(draft);
}

function judge(each: BoundCase): string | undefined {
  const { page, lower, stored, rules } = each;
  return judgeBound(each, provableUntil(page, lower, toStored(stored), rules));
}

export const boundChecks: readonly PartCheck[] = Object.entries(groups).map(([name, drafts]) => ({
  name: `provableUntil, ${name}`,
  run: (size) => tryCases(sample(casesOf(drafts()), size, 199), judge),
}));
