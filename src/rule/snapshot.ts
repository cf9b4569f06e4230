import type { SnapshotStream } from "../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../model/time.ts";
import { normalise, subtract, type TimeRange } from "../model/time-range.ts";
import type { StoredSeries } from "./answer.ts";
import type { LedgerChange } from "./apply.ts";
import { type AbsentEntries, countAbsences, requiredFor } from "./repetition.ts";

/** The ledger of a subscription. */
export type StoredCoverage = Pick<StoredSeries, "settledRanges">;

/** The sum of all pages of one list in a snapshot. */
export interface SnapshotPart {
  /** Distinguishes the lists of a snapshot: the derivative type; empty if there is only one list. */
  readonly part: string;
  /** Readable records. */
  readonly listed: number;
  readonly rejected: number;
  /** The newest plausible timestamp of each page, and of its stored records. */
  readonly timestamps: readonly Micros[];
  readonly storedTimestamps: readonly Micros[];
}

export interface Snapshot {
  readonly stream: SnapshotStream;
  /** Null: all exchanges. */
  readonly exchangeId: string | null;
  readonly cadence: Micros;
  readonly parts: readonly SnapshotPart[];
  /** When the first part was requested and the last had arrived, by the service's clock; undefined: unknown. */
  readonly askedAt?: Micros | undefined;
  readonly answeredAt?: Micros | undefined;
}

/** What the snapshots of a subscription have shown so far. The warehouse keeps it, so that a restart forgets nothing. */
export interface SnapshotState {
  /** The records of each list when it last counted. */
  readonly counts: Readonly<Record<string, number>>;
  /** Lists that are too short: they do not count before they are repeated. */
  readonly short: readonly AbsentEntries[];
  readonly refreshes?: Refreshes;
}

export const noSnapshot: SnapshotState = { counts: {}, short: [] };

/**
 * Why a snapshot does not count: most records are unreadable, it has less than half as many as before, or it
 * is empty although it must not be.
 */
export type SnapshotProblem = "unreadable" | "shrunken" | "empty";

/** Current pages of a snapshot are no further apart; an older page shows a market that does not trade. */
const MAX_SPREAD_CADENCES = 2;

/** What a snapshot changes, or why it does not count. `hadRows`: one of the subscription had rows before. */
export function takeSnapshot(
  snapshot: Snapshot,
  state: SnapshotState,
  stored: StoredCoverage & { readonly hadRows: boolean },
  now: Micros,
): { problem?: SnapshotProblem; changes: readonly LedgerChange[]; state: SnapshotState } {
  const { parts, exchangeId } = snapshot;
  const isEmpty = parts.every(({ listed, rejected }) => listed + rejected === 0);
  // All exchanges together are never empty.
  if (isEmpty && exchangeId === null) return { problem: "empty", changes: [], state };
  const isUnreadable = ({ listed, rejected, timestamps }: SnapshotPart) =>
    rejected > listed || (listed > 0 && timestamps.length === 0);
  const readable = parts.filter((part) => !isUnreadable(part));
  const countBefore = (part: string) => state.counts[part] ?? (isEmpty && stored.hadRows ? 1 : 0);
  const short = readable.filter(({ part, listed }) => listed * 2 < countBefore(part));
  // Half as long again is another list: what was cut after the service shortened it.
  const nameOf = ({ part, listed }: SnapshotPart) => `${part} ${Math.floor(Math.log2(listed))}`;
  const { accepted, pending } = countAbsences(
    short.map(nameOf),
    state.short,
    requiredFor("shorter snapshot"),
    now,
  );
  const doubtful = new Set(short.filter((part) => !accepted.includes(nameOf(part))));
  const counted = readable.filter((part) => !doubtful.has(part));
  const counts = {
    ...state.counts,
    ...Object.fromEntries(counted.map(({ part, listed }) => [part, listed])),
  };
  const after = { ...state, counts, short: pending };
  if (readable.length < parts.length) return { problem: "unreadable", changes: [], state: after };
  if (doubtful.size > 0) return { problem: isEmpty ? "empty" : "shrunken", changes: [], state: after };
  return coverSnapshot(snapshot, after, stored, now);
}

function coverSnapshot(
  { stream, parts, cadence, askedAt, answeredAt }: Snapshot,
  state: SnapshotState,
  stored: StoredCoverage,
  now: Micros,
) {
  // Pages differ in age: the oldest dates the snapshot, so that no page covers a time after it was made.
  // A page far behind the newest is ignored: its market does not trade.
  const timestamps = parts.flatMap((part) => part.timestamps);
  const newest = Math.max(...timestamps);
  const current = timestamps.filter((ts) => newest - ts <= MAX_SPREAD_CADENCES * cadence);
  const ts = timestamps.length === 0 ? now : Math.min(...current);
  const period = periodOf(ts, cadence);
  // Stamped ahead: what the service lists once the period has begun is not known.
  if (period.from > latestPresent(now)) return { changes: [], state };
  const isInPeriod = (at: Micros) => at >= period.from && at < period.to;
  if (!parts.some(({ storedTimestamps }) => storedTimestamps.some(isInPeriod)))
    return { changes: settlePeriod(period, false, stored), state };
  const observed = observeRefresh(state.refreshes, { stream, ts, askedAt, answeredAt, cadence });
  return {
    changes: settlePeriod(observed.range, true, stored),
    state: { ...state, refreshes: observed.refreshes },
  };
}

/** Reason of a range that an empty snapshot covers. */
const NOTHING_LISTED = "nothing listed";
/** Reason of a range in which the service denied access to a part of what the settings select. */
const FORBIDDEN = "forbidden";

/** An observed range has rows, or nothing was listed; then rows of the range stand: a market may have left within it. */
export function settlePeriod(range: TimeRange, hasRows: boolean, stored: StoredCoverage): LedgerChange[] {
  if (hasRows) return [{ kind: "settle", range, proof: "rows", reason: null }];
  const withRows = stored.settledRanges(range).filter(({ proof }) => proof === "rows");
  return subtract([range], normalise(withRows)).map((rest) => ({
    kind: "settle",
    range: rest,
    proof: "empty",
    reason: NOTHING_LISTED,
  }));
}

/** The service denies access: the present period is lost, unless it is covered. */
export function forbidPeriod(now: Micros, cadence: Micros): LedgerChange[] {
  return [{ kind: "settle", range: periodOf(now, cadence), proof: "lost", reason: FORBIDDEN }];
}

/** The service's time is known to about a second. */
export function latestPresent(now: Micros): Micros {
  return now + 2 * MICROS_PER_SECOND;
}

/** On the grid of the cadence: ranges merge only where they touch, and jitter would leave a short `lost` range per snapshot. */
function periodOf(ts: Micros, cadence: Micros): TimeRange {
  const from = Math.floor(ts / cadence) * cadence;
  return { from, to: from + cadence };
}

/** One observation of a snapshot stream; `ts`: the timestamp of the records. It is valid for a cadence. */
type Observation = Pick<Snapshot, "stream" | "cadence" | "askedAt" | "answeredAt"> & { readonly ts: Micros };

/** What the service documents. Other streams have no period until their records show one. */
const documentedPeriods: Readonly<Partial<Record<SnapshotStream, Micros>>> = {
  market_caps: 300 * MICROS_PER_SECOND,
};
/** A slower refresh is learned after this many; a faster one at once. None is learned while every poll returns a new one. */
const PERIODS_REMEMBERED = 5;
/** One period may come from a stale answer, which looks like a list that was not refreshed. */
const MIN_PERIODS = 2;
/** Two refreshes that are less than this many periods apart have none in between. */
const MAX_PERIODS_APART = 1.5;

/** Polls that are less than this many cadences apart have missed nothing. */
const MAX_CADENCES_APART = 2;
/** A record that polls this many cadences apart returned was not refreshed between them. Polls in quick succession show nothing. */
const MIN_CADENCES_REPEATED = 0.9;

/** How the service has refreshed a list so far. */
export interface Refreshes {
  readonly ts: Micros;
  /** When the first answer with it had arrived. */
  readonly answeredAt: Micros | undefined;
  /** When the last poll that returned it was sent: it was current until then. */
  readonly askedAt: Micros | undefined;
  /** Polls a cadence apart returned it, so the service refreshes the list less often than it is polled. */
  readonly isRepeated: boolean;
  readonly periods: readonly Micros[];
}

/**
 * Learns from the timestamps of the records how often the service refreshes a list. If that is less often than the list is
 * polled, a record stands until the next refresh: each poll that returns it again has observed it until then.
 * `range`: what the observation covers, on the grid of the cadence, at least `[ts, ts + cadence)`.
 */
function observeRefresh(last: Refreshes | undefined, observation: Observation) {
  const { stream, ts, askedAt, cadence } = observation;
  const known = last?.periods ?? [];
  const period = known.length >= MIN_PERIODS ? Math.min(...known) : documentedPeriods[stream];
  const floor = (at: Micros) => Math.floor(at / cadence) * cadence;
  const at = floor(ts);
  const reach = period === undefined ? 0 : MAX_PERIODS_APART * period;
  const isNextRefresh = last !== undefined && ts > last.ts && ts - last.ts <= reach;
  // No further than the period of the poll: after it, nothing is known.
  const observedTo = Math.min(floor(askedAt ?? ts) + cadence, at + floor(reach));
  return {
    range: { from: isNextRefresh ? floor(last.ts) : at, to: Math.max(at + cadence, observedTo) },
    refreshes: addObservation(last, observation),
  };
}

function addObservation(last: Refreshes | undefined, observation: Observation): Refreshes {
  const { ts, askedAt, answeredAt, cadence } = observation;
  if (!last) return { ts, answeredAt, askedAt, isRepeated: false, periods: [] };
  // An older answer came late.
  if (ts < last.ts) return last;
  if (ts === last.ts) {
    const cadences = countCadences(last.answeredAt, askedAt, cadence);
    const isSlow = cadences >= MIN_CADENCES_REPEATED && cadences <= MAX_CADENCES_APART;
    return { ...last, askedAt, isRepeated: last.isRepeated || isSlow };
  }
  const isFaster = last.periods.length > 0 && ts - last.ts < Math.min(...last.periods);
  const cadences = countCadences(last.askedAt, answeredAt, cadence);
  const isPeriod = (last.isRepeated || isFaster) && cadences >= 0 && cadences <= MAX_CADENCES_APART;
  const periods = isPeriod ? [...last.periods, ts - last.ts].slice(-PERIODS_REMEMBERED) : last.periods;
  return { ts, answeredAt, askedAt, isRepeated: false, periods };
}

/** From one poll to the next, if both times are known. A clock that was set in between gives a negative or a large number. */
function countCadences(from: Micros | undefined, to: Micros | undefined, cadence: Micros): number {
  return ((to ?? Number.NaN) - (from ?? Number.NaN)) / cadence;
}
