import { type HistoryStream, type Series, streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { computeTargetEnd } from "../../warehouse/coverage/gaps.ts";
import { type LedgerKey, retract, retractNothingOlder, settle } from "../../warehouse/coverage/ledger.ts";
import type { MassWithdrawal, WithdrawalRules } from "../../warehouse/coverage/mass-withdrawals.ts";
import { dropMovedEnd } from "../../warehouse/coverage/moved-ends.ts";
import { findLiveRows, replacePreviews } from "../../warehouse/rows/previews.ts";
import { countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { countStoredRows, findNewestLiveRow, hasConflictingRows } from "../../warehouse/rows/row-queries.ts";
import type { WriteRecordsResult } from "../../warehouse/rows/row-writer.ts";
import { recordLiveOffset } from "../../warehouse/rows/stream-stats.ts";
import { type WithdrawResult, withdrawMissing } from "../../warehouse/rows/withdraw-missing.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import type { PendingPages } from "../decode/pending-pages.ts";
import { settleAnnounced } from "./announced-page.ts";
import type { CommittedPages } from "./committed-pages.ts";
import { type HistoryEnd, judgeHistoryEnd, settleToEnd } from "./history-end.ts";
import {
  findProvenRange,
  type PageContradiction,
  type PageProof,
  type WalkPosition,
} from "./proven-range.ts";
import {
  applyLateness,
  clampToPublished,
  DATE_HEADER_SLACK_MICROS,
  recordLateRecords,
} from "./published-range.ts";
import { type HistoryPage, recordsOf, type SeriesKey, writePage } from "./write-page.ts";

/** A decoded page of a backward walk, and what the walk knows about it. */
export interface WalkPage {
  readonly pageId: number;
  readonly series: Series;
  readonly position: WalkPosition;
  /** The service has nothing older than this page. */
  readonly isLast: boolean;
  /** Set if a second response confirmed `isLast`: the rest of the target is empty from here up to the gap. */
  readonly emptyFrom?: Micros | undefined;
  /** The start of the service's window; absent: the service has the whole history. */
  readonly windowStart?: Micros;
  /** The service may still add records younger than this, so no page proves that range. */
  readonly settleDelay: Micros;
  /** The usual time between two records. */
  readonly cadence: Micros;
  /** The walk begins at the present: its first page has the newest records. */
  readonly isHead: boolean;
  /** A second response confirmed that there is no record between the newest one and the end of the gap. */
  readonly isSilenceConfirmed: boolean;
  /** A quiet series is covered up to this long before the present. */
  readonly quietMargin: Micros;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
  /** Also count the records that were not stored before: costs a query. */
  readonly shouldCountMissing?: boolean;
  /** When to believe that the service no longer has many rows; absent: never. */
  readonly withdrawals?: WithdrawalRules;
}

export interface WalkPageCommitResult {
  readonly written: WriteRecordsResult;
  /** Stored rows that the service no longer has. */
  readonly withdrawn: number;
  /** Many rows that the page lacks: their ranges are open until other pages confirm it. */
  readonly unconfirmed: readonly MassWithdrawal[];
  /** Mass withdrawals that this page confirmed. */
  readonly believed: readonly MassWithdrawal[];
  /** How much later the websocket stamps ticks than REST, if this page showed it for the first time. */
  readonly learnedOffset: Micros | undefined;
  readonly rejected: number;
  /** Records of the proven range that were not stored before, if `shouldCountMissing`. */
  readonly missing: number;
  /** Records of other series; stored under their own series where nothing is known yet. */
  readonly foreign: number;
  /** What this page settled. */
  readonly proven: TimeRange | undefined;
  /** The walk has proven its gap down to the start, as far up as the service has published it. */
  readonly isComplete: boolean;
  /** The service has not published the range up to the end of the gap. */
  readonly isUnpublished: boolean;
  /** The page has records where the ledger said that there are none, or nothing older: that range is open again. */
  readonly hasReopened: boolean;
  /** Why the page settled nothing; the gap must be walked again from its start. */
  readonly alarm: PageAlarm | undefined;
  /** Set if stored rows are older than everything that the service still serves: its oldest record. */
  readonly endsAt?: Micros | undefined;
  /** Set if open ranges below that were given up with this page. */
  readonly movedEnd?: MassWithdrawal | undefined;
}

export type PageAlarm =
  | PageContradiction["contradiction"]
  | "false_end"
  | "mass_rejection"
  | "older_than_stored";

/** With more rejects than this, the service's format has probably changed: the page proves nothing. */
const MAX_REJECTED_SHARE = 0.5;
/** REST may lag behind the websocket this far; a live tick that REST lacks for longer is withdrawn. */
const MAX_REST_LAG_MICROS = 3600 * MICROS_PER_SECOND;

interface CommitOptions {
  readonly pages: PendingPages;
  readonly committedPages: CommittedPages;
  readonly now: Micros;
}

/**
 * Commits one page in one transaction: its records, revisions, withdrawals and rejects, and the range that it
 * proves.
 */
export function commitWalkPage(
  warehouse: WarehouseWriter,
  { pages, committedPages, now }: CommitOptions,
  page: WalkPage,
): WalkPageCommitResult {
  const { stream, indexType, indexId } = page.series;
  const decoded = pages.get(stream, page.pageId);
  const { plausibleTimestamps, foreign, requestedAt } = decoded;
  const proof = findProvenRange(page.position, {
    timestamps: plausibleTimestamps,
    foreign,
    isLast: page.isLast,
  });
  const provenByPage = "proven" in proof ? proof.proven : undefined;
  return warehouse.transaction((transaction): WalkPageCommitResult => {
    const series = transaction.dictionary.getSeriesKey(indexType, indexId);
    const key = { stream, series };
    // A page from a cache, or one superseded by a later request, may be older than the stored rows. Stored like live ticks,
    // its records never replace a row of a current page.
    const isStale =
      decoded.isFromCache ||
      (provenByPage !== undefined && committedPages.isSuperseded(stream, series, provenByPage, requestedAt));
    const received = { decoded, isStale, asOf: decoded.asOf ?? now };
    const { counts, liveRows } = storePage(transaction, key, page, received, provenByPage);
    // Set if a record disproved a range that was settled as empty.
    let { hasReopened } = transaction;
    const unproven = { ...counts, proven: undefined, isComplete: false, isUnpublished: false, hasReopened };
    if ("contradiction" in proof) {
      if (proof.contradiction === "newer_than_proven") retract(transaction, key, proof.retract);
      return { ...unproven, alarm: proof.contradiction };
    }
    // A record from the future is readable, and beyond the range.
    const unreadable = decoded.rejects.length - decoded.ahead;
    if (unreadable > decoded.rawCount * MAX_REJECTED_SHARE) return { ...unproven, alarm: "mass_rejection" };
    if (decoded.announced) {
      const { isComplete, proven } = proof;
      if (isStale || !proven) return { ...unproven, alarm: undefined };
      const expected = listExpectedTimestamps(transaction, key, page.position, decoded.timestamps);
      const { announced } = decoded;
      Object.assign(
        counts,
        settleAnnounced(transaction, key, { ...page, announced, proven, expected, asOf: received.asOf }),
      );
      transaction.onRollback(committedPages.add(stream, series, proven, requestedAt));
      return { ...unproven, ...counts, proven, isComplete, alarm: undefined };
    }
    const oldest = plausibleTimestamps.at(-1);
    const judged =
      page.isLast && !isStale ? judgeHistoryEnd(transaction, key, { ...page, oldest }) : undefined;
    const end = judged && "servedFrom" in judged ? judged : undefined;
    const doubtedEnd = judged && "unconfirmed" in judged ? judged.unconfirmed : undefined;
    if (judged && !end && !doubtedEnd) return { ...unproven, alarm: "false_end" };
    if (oldest !== undefined && !doubtedEnd) dropMovedEnd(transaction, key, oldest);
    if (oldest !== undefined && retractNothingOlder(transaction, key, oldest)) hasReopened = true;
    const confirming = { liveRows, timestamps: plausibleTimestamps };
    counts.learnedOffset = confirmLiveRows(transaction, key, page, confirming);
    const shown = doubtedEnd ? proveAboveOldest(proof, oldest) : proof;
    const { proven, ...extent } = clampProven(transaction, key, page, received, shown);
    const doubted = doubtedEnd ? [doubtedEnd] : [];
    const alarm = doubtedEnd ? ("false_end" as const) : undefined;
    const settled = { ...extent, hasReopened, alarm };
    if (proven === undefined) return { ...unproven, ...counts, unconfirmed: doubted, ...settled };
    const expected = listExpectedTimestamps(transaction, key, page.position, decoded.timestamps);
    if (isStale) {
      const outcome = settleStale(transaction, key, page, { decoded, proven, expected });
      if (outcome !== "settled") return { ...unproven, hasReopened, alarm: outcome };
    } else Object.assign(counts, settleCurrent(transaction, key, page, { proven, expected, end }));
    transaction.onRollback(committedPages.add(stream, series, proven, requestedAt));
    const endsAt = end?.lostTo === undefined ? undefined : end.servedFrom;
    const unconfirmed = [...doubted, ...counts.unconfirmed];
    return { ...counts, unconfirmed, proven, ...settled, endsAt, movedEnd: end?.believed };
  });
}

/** A decoded page, and when the service made it. */
interface ReceivedPage {
  readonly decoded: HistoryPage;
  readonly isStale: boolean;
  readonly asOf: Micros;
}

/** Stores what the page has, whatever it proves. Returns the live rows that it may confirm, as they were before: none if it is stale. */
function storePage(
  transaction: Transaction,
  key: SeriesKey,
  page: WalkPage,
  { decoded, isStale, asOf }: ReceivedPage,
  provenByPage: TimeRange | undefined,
) {
  const { stream, series } = key;
  const { plausibleTimestamps, foreign } = decoded;
  const isCurrentHead = page.isHead && !isStale && page.position.provenFrom >= page.position.gap.to;
  if (isCurrentHead && !decoded.announced)
    recordLateRecords(transaction, key, { ...page, timestamps: plausibleTimestamps, asOf });
  const compared = page.shouldCountMissing ? provenByPage : undefined;
  const before = compared ? countStoredRows(transaction, key, compared) : 0;
  const liveRows = isStale ? [] : findOwnLiveRows(transaction, key, page, plausibleTimestamps);
  const written = writePage(transaction, key, page, decoded, isStale ? "live" : "rest");
  transaction.markWritten(stream, series);
  storeRejects(transaction, stream, decoded.rejects, page.request);
  countUnknownFields(transaction, stream, decoded.unknownFields);
  const counts = {
    written,
    withdrawn: 0,
    rejected: decoded.rejects.length,
    missing: compared ? countStoredRows(transaction, key, compared) - before : 0,
    foreign,
    unconfirmed: [] as readonly MassWithdrawal[],
    believed: [] as readonly MassWithdrawal[],
    learnedOffset: undefined as Micros | undefined,
  };
  return { counts, liveRows };
}

/** A last page whose end is in doubt proves what any other page does: the range above its oldest record. */
function proveAboveOldest({ proven }: PageProof, oldest = Number.POSITIVE_INFINITY): PageProof {
  const from = oldest + 1;
  const isProven = proven !== undefined && from < proven.to;
  return { proven: isProven ? { from, to: proven.to } : undefined, provenFrom: from, isComplete: false };
}

/** What the page proves, up to where its records are final and published. */
function clampProven(
  transaction: Transaction,
  key: SeriesKey,
  page: WalkPage,
  { decoded, isStale, asOf }: ReceivedPage,
  proof: PageProof,
) {
  const timestamps = decoded.plausibleTimestamps;
  const isHead = page.isHead && !isStale;
  const made = { asOf: decoded.asOf, isStale };
  const responded = clampToResponseTime(proof.proven, made, page);
  const isComplete = proof.isComplete && responded?.to === proof.proven?.to;
  const settleDelay = isHead ? applyLateness(transaction, key, { ...page, asOf }) : page.settleDelay;
  const clamped = clampToResponseTime(responded, made, { ...page, settleDelay });
  const published = clampToPublished(transaction, key, clamped, { ...page, isHead, timestamps, asOf });
  const isUnpublished = clamped !== undefined && (published?.to ?? clamped.from) < clamped.to;
  const proven = clampBelowUnconfirmedTicks(transaction, key, published, {
    ...page.position,
    newest: timestamps[0],
    now: asOf,
    tolerance: previewTolerance(page),
  });
  return { proven, isComplete, isUnpublished };
}

interface Settlement {
  readonly proven: TimeRange;
  /** The timestamps that the range may contain. */
  readonly expected: readonly Micros[];
}

/** A stale page settles only rows, and only if no stored row contradicts it. */
function settleStale(
  transaction: Transaction,
  key: SeriesKey,
  { position }: WalkPage,
  { decoded, proven, expected }: Settlement & { readonly decoded: HistoryPage },
): "settled" | "older_than_stored" | undefined {
  // Includes the page's oldest row, which the next page would settle.
  const oldest = decoded.plausibleTimestamps.at(-1) ?? proven.from;
  const checked = { from: Math.min(proven.from, Math.max(position.gap.from, oldest)), to: proven.to };
  if (hasConflictingRows(transaction, key, checked, recordsOf(decoded), expected)) return "older_than_stored";
  if (!expected.some((ts) => proven.from <= ts && ts < proven.to)) return undefined;
  settle(transaction, key, proven, "rows");
  return "settled";
}

/** Withdraws what the page lacks, and settles the rest of what it proves. */
function settleCurrent(
  transaction: Transaction,
  key: SeriesKey,
  page: WalkPage,
  { proven, expected, end }: Settlement & { readonly end: HistoryEnd | undefined },
): WithdrawResult {
  const withdrawals = withdrawMissing(transaction, {
    ...key,
    range: proven,
    timestamps: expected,
    servedFrom: end?.servedFrom,
    windowStart: page.windowStart,
    ...(page.withdrawals ? { rules: page.withdrawals } : {}),
  });
  if (withdrawals.unconfirmed.length > 0)
    settleBesideUnconfirmed(transaction, key, proven, expected, withdrawals.unconfirmed);
  else if (end) settleToEnd(transaction, key, { proven, gap: page.position.gap, expected }, end);
  else settleProven(transaction, key, proven, expected);
  return withdrawals;
}

/**
 * A page proves nothing about the time after it was made: its `Date` (and, from a cache, its age) limits the
 * range, whatever this machine's clock says. It never proves a day that had not ended.
 */
function clampToResponseTime(
  proven: TimeRange | undefined,
  { asOf, isStale }: { readonly asOf: Micros | undefined; readonly isStale: boolean },
  { series, settleDelay }: Pick<WalkPage, "series" | "settleDelay">,
): TimeRange | undefined {
  if (proven === undefined || asOf === undefined) return proven;
  const { step } = streamTable[series.stream];
  const limit = computeTargetEnd({ settleDelay, step }, asOf + (isStale ? 0 : DATE_HEADER_SLACK_MICROS));
  const to = Math.min(proven.to, limit);
  return proven.from < to ? { from: proven.from, to } : undefined;
}

/** Half a period: a preview closer than this to a record is that record. The settle delay is two periods. */
function previewTolerance({ settleDelay }: Pick<WalkPage, "settleDelay">): Micros {
  return settleDelay / 4;
}

/** The live rows that the page may confirm. Call it before the page is written. */
function findOwnLiveRows(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  page: WalkPage,
  timestamps: readonly Micros[],
): readonly Micros[] {
  const [newest, oldest] = [timestamps[0], timestamps.at(-1)];
  if (stream !== "index_ticks" || newest === undefined || oldest === undefined) return [];
  const tolerance = previewTolerance(page);
  return findLiveRows(transaction, series, { from: oldest - tolerance, to: newest + tolerance });
}

/**
 * Replaces the previews that the page has at a slightly other moment, proven or not. Returns by how much the websocket
 * is off, if that is new.
 */
function confirmLiveRows(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  page: WalkPage,
  { liveRows, timestamps }: { liveRows: readonly Micros[]; timestamps: readonly Micros[] },
): Micros | undefined {
  const tolerance = previewTolerance(page);
  const { confirmed, offset } = replacePreviews(transaction, series, { liveRows, timestamps, tolerance });
  if (offset === undefined && confirmed === 0) return undefined;
  return recordLiveOffset(transaction, stream, offset ?? null) ? offset : undefined;
}

/**
 * The websocket may be ahead of REST: live ticks newer than the first page's newest record are not in REST
 * yet, so the page proves only up to its newest record, and withdraws none of them.
 */
function clampBelowUnconfirmedTicks(
  transaction: Transaction,
  key: LedgerKey,
  proven: TimeRange | undefined,
  {
    gap,
    provenFrom,
    newest,
    now,
    tolerance,
  }: WalkPosition & { newest: Micros | undefined; now: Micros; tolerance: Micros },
): TimeRange | undefined {
  if (proven === undefined || provenFrom < gap.to || streamTable[key.stream].event === null) return proven;
  // A preview near the newest record is that record, stamped by another clock.
  const from = Math.max(newest === undefined ? proven.from : newest + tolerance, now - MAX_REST_LAG_MICROS);
  if (findNewestLiveRow(transaction, key.series, { from: from + 1, to: proven.to }) === undefined)
    return proven;
  if (newest === undefined || newest < proven.from) return undefined;
  return { from: proven.from, to: newest + 1 };
}

/**
 * The timestamps that the proven range may contain: those of the page, and the row just below `provenFrom`,
 * the oldest of the previous page. On a first page it counts if stored: an earlier walk may have ended at it.
 */
function listExpectedTimestamps(
  transaction: Transaction,
  key: { stream: HistoryStream; series: number },
  { gap, provenFrom }: WalkPosition,
  timestamps: readonly Micros[],
): readonly Micros[] {
  const previousOldest = provenFrom - 1;
  const hasPrevious =
    provenFrom < gap.to || countStoredRows(transaction, key, { from: previousOldest, to: provenFrom }) > 0;
  return hasPrevious ? [previousOldest, ...timestamps] : timestamps;
}

/** A range without records is `empty`. */
function settleProven(
  transaction: Transaction,
  key: LedgerKey,
  proven: TimeRange,
  expected: readonly Micros[],
): void {
  const hasRows = expected.some((ts) => proven.from <= ts && ts < proven.to);
  if (hasRows) settle(transaction, key, proven, "rows");
  else settle(transaction, key, proven, "empty", "no records");
}

/**
 * Only what is unconfirmed stays open, not the rest of the page. But such a page does not prove that a range is empty: it
 * settles only what lies between its own records.
 */
function settleBesideUnconfirmed(
  transaction: Transaction,
  key: LedgerKey,
  proven: TimeRange,
  expected: readonly Micros[],
  unconfirmed: readonly TimeRange[],
): void {
  for (const range of unconfirmed) retract(transaction, key, range);
  for (const { from, to } of subtract([proven], normalise(unconfirmed))) {
    const inside = expected.filter((ts) => from <= ts && ts < to);
    if (inside.length > 0) settle(transaction, key, { from: Math.min(...inside), to }, "rows");
  }
}
