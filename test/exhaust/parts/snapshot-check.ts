import { type Micros, MICROS_PER_SECOND as SECOND } from "../../../src/model/time.ts";
import { noSnapshot, type Snapshot, type SnapshotPart, takeSnapshot } from "../../../src/rule/snapshot.ts";
import {
  combinations,
  inTurn,
  type PartCheck,
  type PartResult,
  type PartSize,
  tryCases,
} from "./part-check.ts";
import {
  type Before,
  type SpecifiedSnapshot,
  specifySnapshot,
  type Taken,
} from "./snapshot-specification.ts";
import { settled, toStoredSeries } from "./stored-content.ts";

const CADENCE = 10 * SECOND;
const START = 100 * CADENCE;
const nothing: Before = { hadRows: false, ledger: [] };

/** Takes the snapshots one after another. Undefined: the last one is as specified. */
function differ(taken: readonly Taken[], before: Before): string | undefined {
  let state = noSnapshot;
  let actual: SpecifiedSnapshot | undefined;
  const stored = toStoredSeries({ served: [], previews: [], ledger: before.ledger });
  for (const { snapshot, now } of taken) {
    const result = takeSnapshot(snapshot, state, { ...stored, hadRows: before.hadRows }, now);
    state = result.state;
    const covered = result.changes.flatMap((change): SpecifiedSnapshot["covered"] => {
      if (change.kind !== "settle") return [[0, 0, change.kind]];
      const { range, proof, reason } = change;
      if ((reason === null) !== (proof === "rows")) return [[0, 0, "a wrong reason"]];
      if (proof === "rows") return [[range.from, range.to, proof]];
      const seconds = Array.from(
        { length: (range.to - range.from) / SECOND },
        (_, i) => range.from + i * SECOND,
      );
      return seconds.map((from) => [from, from + SECOND, proof] as const);
    });
    const { problem } = result;
    actual = { problem, lengths: state.counts, covered, periods: state.refreshes?.periods ?? [] };
  }
  const wanted = specifySnapshot(taken, before);
  const textOf = (each: SpecifiedSnapshot | undefined) =>
    JSON.stringify({ ...each, lengths: Object.entries(each?.lengths ?? {}).sort() });
  if (textOf(actual) === textOf(wanted)) return undefined;
  const given = taken.map((each) => JSON.stringify(each)).join("\n");
  return `${JSON.stringify(before)}\n${given}\n  is ${textOf(actual)}\nwanted ${textOf(wanted)}`;
}

/** Every sequence of so many steps; a step adds snapshots to those before. */
function trySequences<Step>(
  steps: readonly Step[],
  length: number,
  add: (taken: readonly Taken[], step: Step) => readonly Taken[],
  before: Before = nothing,
): PartResult {
  let cases = 0;
  const extend = (taken: readonly Taken[], left: number): string | undefined => {
    for (const step of left > 0 ? steps : []) {
      const more = add(taken, step);
      cases++;
      const violation = differ(more, before) ?? extend(more, left - 1);
      if (violation !== undefined) return violation;
    }
    return undefined;
  };
  return { violation: extend([], length), cases };
}

const wholeList = (ts: Micros): SnapshotPart => ({
  ...{ part: "", listed: 4, rejected: 0, timestamps: [ts], storedTimestamps: [ts] },
});
const snapshotOf = (parts: readonly SnapshotPart[], more: Partial<Snapshot> = {}): Snapshot => ({
  ...{ stream: "exchange_ticks", exchangeId: "x", cadence: CADENCE, parts, ...more },
});

/** A refresh, in tenths of a cadence: after the one before, how late polls return it again, and when the next one is asked. */
interface RefreshStep {
  readonly length: number;
  readonly repeatedAfter: number | undefined;
  readonly apart: number | undefined;
}

const refreshSteps = (
  lengths: readonly number[],
  repeats: readonly (number | undefined)[],
  aparts: RefreshStep["apart"][],
) => [...combinations<RefreshStep>({ length: lengths, repeatedAfter: repeats, apart: aparts })];

const polled = (stream: Snapshot["stream"], unit: Micros) => (taken: readonly Taken[], step: RefreshStep) => {
  const { length, repeatedAfter, apart } = step;
  const last = taken.at(-1)?.snapshot;
  const ts = (last?.parts[0]?.timestamps[0] ?? START) + length * unit;
  const askedBefore = last?.askedAt ?? START;
  const at = (askedAt: Micros | undefined): Taken => {
    const times = askedAt === undefined ? {} : { askedAt, answeredAt: askedAt + 1 };
    const now = Math.max(ts, askedAt ?? ts);
    return { now, snapshot: snapshotOf([wholeList(ts)], { stream, cadence: 10 * unit, ...times }) };
  };
  const asked = apart === undefined ? undefined : askedBefore + apart * unit - 1;
  const first = at(asked);
  if (repeatedAfter === undefined || asked === undefined) return [...taken, first];
  return [...taken, first, at(asked + 1 + repeatedAfter * unit)];
};

function tryRefreshes(size: PartSize): PartResult {
  const usual = refreshSteps([-1, 7, 10, 15, 16, 31], [undefined, 8, 9, 20, 21], [undefined, 0, -1, 20, 21]);
  const long = refreshSteps([7, 10, 20], [9], [20]);
  const isSmall = size === "small";
  const sequences = [
    { steps: usual, length: isSmall ? 1 : 2 },
    // After five periods the first one is forgotten.
    { steps: long, length: isSmall ? 6 : 7 },
    { steps: refreshSteps([10, 14, 15], [undefined, 9], [10]), length: isSmall ? 3 : 4 },
  ];
  const polls = [polled("exchange_ticks", SECOND), polled("market_caps", 15 * SECOND)];
  return inTurn(combinations({ poll: polls, sequence: sequences }), ({ poll, sequence }) =>
    trySequences(sequence.steps, sequence.length, poll),
  );
}

const withoutPages = { timestamps: [], storedTimestamps: [] };

/** Lists of some lengths, with unreadable records, without pages; a second one is beside them or not. */
function listsOf(size: PartSize): readonly (readonly SnapshotPart[])[] {
  const counts = [0, 1, 2, 3, 4, 7].flatMap((listed) =>
    (size === "small" ? [0, listed + 1] : [0, listed, listed + 1]).map((rejected) => ({ listed, rejected })),
  );
  const first = counts.flatMap((each): SnapshotPart[] => {
    const list = { ...wholeList(START), ...each };
    return each.listed === 0 ? [{ ...list, ...withoutPages }] : [list, { ...list, ...withoutPages }];
  });
  const options = { ...wholeList(START), part: "options" };
  const beside =
    size === "small" ? [] : [options, { ...options, listed: 1 }, { ...options, listed: 0, ...withoutPages }];
  return [
    ...first.map((each) => [each]),
    ...first.filter(({ rejected }) => rejected === 0).flatMap((each) => beside.map((other) => [each, other])),
  ];
}

/** Each snapshot just before, or when, an equal one counts. */
function tryLists(size: PartSize): PartResult {
  const steps = listsOf(size).flatMap((parts) => [10, 20].map((pause) => ({ parts, pause })));
  const few = steps.filter(({ parts }) => parts.length === 1 && parts[0]?.rejected === 0);
  const sequences = [{ steps, length: 2 }, ...(size === "small" ? [] : [{ steps: few, length: 3 }])];
  const cases = combinations({ exchangeId: ["x", null], hadRows: [false, true], sequence: sequences });
  return inTurn(cases, ({ exchangeId, hadRows, sequence }) => {
    const add = (taken: readonly Taken[], { parts, pause }: (typeof steps)[number]) => {
      const now = (taken.at(-1)?.now ?? START) + pause * SECOND - (pause === 10 ? 1 : 0);
      return [...taken, { now, snapshot: snapshotOf(parts, { exchangeId }) }];
    };
    return trySequences(sequence.steps, sequence.length, add, { hadRows, ledger: [] });
  });
}

/** One snapshot with pages of several ages, of which some are stored, over a ledger that has rows. */
function tryDates(): PartResult {
  const ages = [0, 1, 9, 10, 20, 21];
  const pages = ages.flatMap((a) => [[a], ...ages.map((b) => [a, b])]);
  const kept = [[], [0], [9], [10], [30]];
  const nows = [-8, -3, -2, 0, 5];
  const rows = [settled(START - 5 * SECOND, START + 3 * SECOND, null, "rows")];
  const more = settled(START + 5 * SECOND, START + 20 * SECOND, "nothing listed");
  const ledger = [[], rows, [...rows, more]];
  const cases = combinations({ ledger, page: pages, stored: kept, seconds: nows });
  return tryCases(cases, ({ ledger, page, stored, seconds }) => {
    const at = (age: number) => START + 9 * SECOND - age * SECOND;
    const parts = [{ ...wholeList(START), timestamps: page.map(at), storedTimestamps: stored.map(at) }];
    const taken = [{ now: START + seconds * SECOND, snapshot: snapshotOf(parts) }];
    return differ(taken, { hadRows: true, ledger });
  });
}

export const snapshotChecks: readonly PartCheck[] = [
  { name: "takeSnapshot: dates", run: tryDates },
  { name: "takeSnapshot: refreshes", run: tryRefreshes },
  { name: "takeSnapshot: lists", run: tryLists },
];
