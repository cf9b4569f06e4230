import { Failure } from "../../model/failure.ts";
import { NOTHING_SELECTED } from "../../model/selector.ts";
import { type GapRow, SETTLING_REASON } from "../../model/status/gap-state.ts";
import { computeWindowStart, historyStreams, type Stream, streamTable } from "../../model/streams.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import { readSettledRanges } from "../coverage/ledger.ts";
import { type KeyGap, readKeyGaps } from "../coverage/series-gaps.ts";
import {
  type KnownLedgerKey,
  type LedgerKeySummary,
  namedKeyText,
  readLedgerKeys,
} from "../coverage/series-queries.ts";
import { readPresentTs } from "../coverage/targets.ts";
import type { NamedSeries } from "../lookups/resolve-names.ts";
import { readStreamStates } from "../rows/stream-stats.ts";
import type { Connection } from "../sqlite/connection.ts";
import { NOT_PROVEN_THEN_REASON } from "../tables/known-at.ts";
import { readConfirmations } from "./status.ts";

/** Reason of time that the service no longer has and that was never selected. */
export const NOT_FOLLOWED_REASON = "not followed";

export type GapReport = Readonly<ReturnType<typeof readGapReport>>;

/** The requested range; either end may be left open. */
export interface ReportRange {
  readonly from: Micros | undefined;
  readonly to: Micros | undefined;
}

/**
 * Every gap of the selected keys. In a range: every part of it that they lack, the ledger's gaps and also what the ledger does not
 * mention, because an unknown part is not complete.
 * Without a beginning the range begins for each key where its ledger does. Without an end it ends at the present, and
 * heads that are still `settling` do not count. `rules`: when the service is asked again.
 */
export function readGapReport(
  connection: Connection,
  selection: KeySelection,
  range: ReportRange,
  rules?: ConfirmationRules,
) {
  if (range.from === undefined || range.to === undefined) assertIsNewest(connection);
  const hasRange = range.from !== undefined || range.to !== undefined;
  // One transaction, so that all that is read agrees.
  return connection.database.transaction(() => {
    const now = readPresentTs(connection);
    const end = range.to ?? now;
    const keys = selectKeys(readLedgerKeys(connection), selection).filter(
      (key) => !hasRange || selection.series !== undefined || isRelevant(key, range, end),
    );
    // A history that the settings no longer select lacks nothing, unless it is asked for by name.
    const isDropped = ({ isSelected, isSnapshot, firstTs }: LedgerKeySummary) =>
      selection.series === undefined && !isSelected && !isSnapshot && firstTs !== null;
    const findMissing = (key: SelectedKey): readonly KeyGap[] => {
      const { gaps, settled } = readKey(connection, key, now);
      if (!hasRange) return gaps;
      const part = { from: range.from ?? key.firstTs ?? end, to: end };
      const counted = gaps.filter(({ reason }) => range.to !== undefined || reason !== SETTLING_REASON);
      const known = normalise([...settled, ...gaps]);
      const unknown = isDropped(key) ? [] : subtract(normalise([part]), known);
      const reason = connection.knownAt ? NOT_PROVEN_THEN_REASON : undefined;
      return [...counted.flatMap((gap) => clip(gap, part)), ...unknownGaps(key, unknown, now, reason)].sort(
        (a, b) => a.from - b.from,
      );
    };
    const gaps = keys.flatMap((key) => findMissing(key).map((gap) => toRow(key, gap)));
    const claimed = new Set((hasRange ? gaps : keys).map(namedKeyText));
    const isOutside = ({ firstTs }: SelectedKey) => range.from === undefined && (firstTs ?? end) >= end;
    return {
      now,
      keys: keys as readonly LedgerKeySummary[],
      gaps,
      /** What the service must repeat about these gaps. */
      confirmations: readConfirmations(connection, gaps, rules, claimed),
      /** If the requested range has no start: keys whose ledger begins after its end, about which nothing is known. */
      outsideRange: hasRange ? keys.filter(isOutside) : [],
      /** Selectors of which no series is known: the ledger cannot say what they lack. */
      unresolved: findUnresolved(connection, selection),
    };
  })();
}

/** What the last run said of selectors that resolve to nothing. A caller who names the series does not ask for others. */
function findUnresolved(connection: Connection, { streams, series }: KeySelection): string[] {
  if (series) return [];
  return readStreamStates(connection).flatMap(({ stream, lastError }) =>
    lastError?.includes(NOTHING_SELECTED) && (streams?.includes(stream) ?? true) ? [lastError] : [],
  );
}

/** A key that the caller did not name counts if the settings select it, or if its ledger overlaps the range. */
function isRelevant(key: LedgerKeySummary, { from = Number.NEGATIVE_INFINITY }: ReportRange, end: Micros) {
  if (key.isSelected || key.firstTs === null) return true;
  return key.firstTs < end && (key.endTs ?? end) > from;
}

/** A key, and the subscription to all exchanges, which covers it too. */
type SelectedKey = LedgerKeySummary & { readonly all?: KnownLedgerKey | undefined };

/** Of an earlier state the ledger alone is known: neither the targets of then, nor what the service had published. */
function readKey(connection: Connection, key: SelectedKey | KnownLedgerKey, now: Micros) {
  if (!("series" in key)) return { gaps: [], settled: [] };
  const own = readSettledRanges(connection, key);
  const lost = own.filter(({ proof }) => proof === "lost");
  const gaps = connection.knownAt
    ? lost.map(
        ({ from, to, reason }): KeyGap => ({ from, to, state: "lost", reason: reason ?? "", lostAt: null }),
      )
    : readKeyGaps(connection, key, now);
  const { all } = key as SelectedKey;
  if (!all) return { gaps, settled: own };
  const covered = readSettledRanges(connection, all).filter(({ proof }) => proof !== "lost");
  const ranges = normalise(covered);
  const rest = gaps.flatMap((gap) => subtract([gap], ranges).flatMap((range) => clip(gap, range)));
  return { gaps: rest, settled: [...own, ...covered] };
}

function toRow({ stream, index_type, index_id, name }: LedgerKeySummary, gap: KeyGap): GapRow {
  const { from, to, state, reason, lostAt } = gap;
  return {
    ...{ stream, index_type, index_id, name, from_ts: from, to_ts: to },
    from_time: formatTimestamp(from),
    to_time: formatTimestamp(to),
    ...{ state, reason, lost_at: lostAt === null ? null : formatTimestamp(lostAt) },
  };
}

function clip(gap: KeyGap, part: TimeRange): KeyGap[] {
  const [from, to] = [Math.max(gap.from, part.from), Math.min(gap.to, part.to)];
  const lostAt = gap.lostAt === null ? null : gap.lostAt + from - gap.from;
  return from < to ? [{ ...gap, from, to, lostAt }] : [];
}

function assertIsNewest({ knownAt }: Connection): void {
  if (knownAt === undefined) return;
  throw new Failure("what an earlier state lacked can be shown for a range only", {
    code: "usage",
    remedy: "give its start and its end, with --from and --to",
  });
}

/** Gaps that the ledger does not mention: the future, and what the settings never selected. */
function unknownGaps(
  key: LedgerKeySummary,
  ranges: readonly TimeRange[],
  now: Micros,
  pastReason: string | undefined,
): KeyGap[] {
  const start = key.isSnapshot ? now : computeWindowStart(key.serviceWindow, now);
  const [past, future] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const kinds = [
    { from: past, to: start, state: "lost", reason: pastReason ?? NOT_FOLLOWED_REASON },
    { from: start, to: now, state: "open", reason: pastReason ?? "not selected" },
    { from: now, to: future, state: "open", reason: "in the future" },
  ] as const;
  return kinds.flatMap((kind) => ranges.flatMap((range) => clip({ ...kind, lostAt: null }, range)));
}

interface KeySelection {
  readonly streams: readonly Stream[] | undefined;
  readonly series: readonly NamedSeries[] | undefined;
}

/**
 * The keys of a selection. A named series without a ledger is returned as well, as an unknown key: leaving it out would
 * look as if it lacked nothing.
 */
function selectKeys(known: readonly KnownLedgerKey[], { streams, series }: KeySelection): SelectedKey[] {
  const ofStreams = streams ? known.filter(({ stream }) => streams.includes(stream)) : [...known];
  if (!series) {
    const absent = (streams ?? []).filter((stream) => !ofStreams.some((key) => key.stream === stream));
    return [...ofStreams, ...absent.filter(hasLedger).map((stream) => unknownKey(stream))];
  }
  const selected = series.flatMap((named): SelectedKey[] => {
    const { stream: only, ledgerId = named.id } = named;
    const chosen = streams ?? (only && [only]);
    const own = ofStreams.filter(({ index_id }) => index_id === ledgerId);
    if (!chosen)
      return own.length > 0 ? own : defaultStreams(named).map((stream) => unknownKey(stream, named));
    return chosen.filter(hasLedger).map((stream) => {
      // A subscription to all exchanges covers each of them.
      const all = ofStreams.find((key) => key.stream === stream && key.index_id === null);
      const key = own.find((key) => key.stream === stream);
      return key ? { ...key, all } : (all ?? unknownKey(stream, named));
    });
  });
  return [...new Map(selected.map((key) => [namedKeyText(key), key])).values()];
}

/** Whether the ledger covers the stream. The lookups have no history and no ledger. */
export function hasLedger(stream: Stream): boolean {
  return streamTable[stream].kind !== "lookup";
}

function defaultStreams({ indexType }: NamedSeries): readonly Stream[] {
  return indexType === null ? ["exchange_ticks"] : historyStreams;
}

function unknownKey(stream: Stream, named?: NamedSeries): LedgerKeySummary {
  return {
    stream,
    index_type: named?.indexType ?? null,
    index_id: (named?.ledgerId ?? named?.id) || null,
    name: named?.name ?? null,
    firstTs: null,
    endTs: null,
    isSelected: false,
    isSnapshot: streamTable[stream].kind === "snapshot",
    serviceWindow: null,
  };
}
