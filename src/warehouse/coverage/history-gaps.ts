import { type GapState, gapState, SETTLING_REASON } from "../../model/status/gap-state.ts";
import { type HistoryStream, historyStreams } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { AGED_OUT_REASON, NOT_FOUND } from "../../rule/claim.ts";
import { isIncident } from "../../rule/confirm.ts";
import type { Connection } from "../sqlite/connection.ts";
import { computeTargetEnd, findGaps, type GapPart, type HistoryTarget, readHistoryTargets } from "./gaps.ts";
import type { KeyRanges } from "./ledger.ts";
import {
  type Absence,
  findAbsence,
  NIGHTLY_INTERVAL_MICROS,
  readPendingClaims,
  WITHDRAWAL_REASON,
} from "./pending-claims.ts";
import { extendSettleDelay, NOT_PUBLISHED_REASON } from "./publication.ts";
import { readPresentTs } from "./targets.ts";

/** A range of a ledger key of a history stream. */
interface HistoryRange extends TimeRange {
  readonly state: "covered" | GapState;
  /** Null if it is covered. */
  readonly reason: string | null;
  /** When an open range leaves the service's window; null: never. */
  readonly lostAt: Micros | null;
}

type SettledTuple = readonly [series: number, from: Micros, to: Micros, isLost: 0 | 1, reason: string | null];

interface ReasonedRange extends TimeRange {
  readonly reason: string | null;
}

/** What the ledger knows about one key. */
interface HistoryLedger {
  readonly settled: readonly ReasonedRange[];
  readonly liveSpans: readonly TimeRange[];
  readonly absence: Absence | undefined;
  /** Where the service seems to have withdrawn rows. */
  readonly withdrawn: readonly TimeRange[];
}

const settledSql = `SELECT series, from_ts, to_ts, proof = 'lost', reason FROM settled_ranges
  WHERE stream = ? ORDER BY series, from_ts`;

const liveSpansSql = `SELECT w.series, l.from_ts AS "from", l.to_ts AS "to" FROM targets w
    JOIN series s ON s.series = w.series
    JOIN live_spans l ON l.stream = w.stream AND l.index_type = s.index_type AND l.index_id IN ('', s.index_id)
  WHERE w.stream = ? AND w.is_snapshot = 0 AND w.stream IN (SELECT stream FROM live_spans)`;

/**
 * Every key of the history streams with its ranges: what is covered, and the gaps of the view `gaps` (a test compares them).
 * Two reads of the whole ledger take a fifth of the time of the view, which seeks several times per gap.
 */
export function* readHistoryRanges(connection: Connection): Generator<KeyRanges<HistoryRange>> {
  const now = readPresentTs(connection);
  for (const stream of historyStreams) {
    const settled = Map.groupBy(connection.tuples<SettledTuple>(settledSql, [stream]), ([series]) => series);
    const targets = readHistoryTargets(connection, stream);
    const liveSpans = readBySeries<TimeRange>(connection, liveSpansSql, stream);
    const claims = readPendingClaims(connection, stream);
    for (const series of new Set([...settled.keys(), ...targets.keys()])) {
      const own = settled.get(series) ?? [];
      const told = own.map(
        ([, from, to, isLost, reason]): HistoryRange =>
          isLost
            ? { from, to, state: "lost", reason, lostAt: null }
            : { from, to, state: "covered", reason: null, lostAt: null },
      );
      const pending = claims.get(series) ?? [];
      const ledger = {
        settled: own.map(([, from, to, , reason]) => ({ from, to, reason })),
        liveSpans: liveSpans.get(series) ?? [],
        absence: findAbsence(pending),
        withdrawn: pending.filter(({ kind }) => isIncident(kind)).map(({ range }) => range),
      };
      const gaps = (targets.get(series) ?? []).flatMap((target) => describeGaps(target, ledger, now));
      yield { key: { stream, series }, ranges: [...told, ...gaps] };
    }
  }
}

function readBySeries<Range>(
  connection: Connection,
  sql: string,
  stream: HistoryStream,
): ReadonlyMap<number, readonly Range[]> {
  const rows = connection.rows<Range & { readonly series: number }>(sql, [stream]);
  return Map.groupBy(rows, ({ series }) => series);
}

/** Parts that touch. */
interface Gap {
  readonly from: Micros;
  to: Micros;
  readonly parts: GapPart[];
}

/** The gaps of one target with their reasons. */
function describeGaps(target: HistoryTarget, ledger: HistoryLedger, now: Micros): HistoryRange[] {
  const gaps: Gap[] = [];
  for (const part of findGaps([{ ...target, absence: ledger.absence }], ledger.settled, now)) {
    const last = gaps.at(-1);
    if (last?.to === part.from) {
      last.parts.push(part);
      last.to = part.to;
    } else gaps.push({ from: part.from, to: part.to, parts: [part] });
  }
  return gaps.flatMap((gap) => describeGap(gap, target, ledger, now));
}

function describeGap(
  { from, to, parts }: Gap,
  target: HistoryTarget,
  ledger: HistoryLedger,
  now: Micros,
): HistoryRange[] {
  const { serviceWindow, blockedReason } = target;
  const settlingFrom = findSettlingStart(from, target, ledger, now);
  const isWithdrawn = ledger.withdrawn.some((range) => range.to > from && range.from < to);
  const ranges: HistoryRange[] = [];
  const add = (range: TimeRange, reason: string) => {
    const state = gapState(reason);
    const lostAt = state === "open" && serviceWindow !== null ? range.from + serviceWindow : null;
    ranges.push({ from: range.from, to: range.to, state, reason, lostAt });
  };
  let rest = from;
  for (const part of parts) {
    if (part.state === "lost") {
      ranges.push({ ...part, state: "lost", reason: AGED_OUT_REASON, lostAt: null });
      rest = part.to;
      continue;
    }
    if (part.state === "quiet" || part.state === "settling" || part.from >= settlingFrom) break;
    rest = Math.min(part.to, settlingFrom);
    const reason =
      part.state === "unpublished"
        ? (blockedReason ?? NOT_PUBLISHED_REASON)
        : isWithdrawn
          ? WITHDRAWAL_REASON
          : (blockedReason ?? "pending");
    add(
      { from: part.from, to: rest },
      part.state === "absent" && ledger.absence && !isWithdrawn ? ledger.absence.reason : reason,
    );
  }
  if (rest < to) add({ from: rest, to }, SETTLING_REASON);
  return ranges;
}

/** Where the live feed or today's 404 makes a gap `settling`, as the view has it; infinite: nowhere. */
function findSettlingStart(
  start: Micros,
  target: HistoryTarget,
  { settled, liveSpans }: HistoryLedger,
  now: Micros,
): Micros {
  const settleDelay = extendSettleDelay(target, target.lateness, now);
  const targetEnd = computeTargetEnd({ settleDelay, step: target.step }, now);
  const live = target.blockedReason === null ? liveSpans.filter(({ to }) => to >= targetEnd) : [];
  const liveFrom = live.reduce((least, { from }) => Math.min(least, from), Number.POSITIVE_INFINITY);
  const isNotFound = settled.some(
    ({ to, reason }) => to === start && reason === NOT_FOUND && to > targetEnd - NIGHTLY_INTERVAL_MICROS,
  );
  return isNotFound || liveFrom - settleDelay <= start ? start : liveFrom;
}
