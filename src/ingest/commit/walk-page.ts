import { toCommittedTick } from "../../model/answers/ticks.ts";
import { isDaily, type Series, streamTable } from "../../model/streams.ts";
import { tickAt } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { PageAnswer, SeriesRules } from "../../rule/answer.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import { reopen } from "../../rule/findings.ts";
import {
  findContradiction,
  type Interpretation,
  interpret,
  type PageContradiction,
} from "../../rule/interpret.ts";
import { previewTolerance, type UpperBound } from "../../rule/provable-until.ts";
import { applyChanges } from "../../warehouse/coverage/apply-changes.ts";
import type { LedgerKey, SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { readClaims } from "../../warehouse/coverage/pending-claims.ts";
import {
  decayLateness,
  readLateness,
  recordHeadPage,
  recordLowerPage,
  recordRunningDay,
} from "../../warehouse/coverage/publication.ts";
import { findLiveRows, replacePreviews } from "../../warehouse/rows/previews.ts";
import { countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { countStoredRows, hasConflictingRows } from "../../warehouse/rows/row-queries.ts";
import type { WriteRecordsResult } from "../../warehouse/rows/row-writer.ts";
import { recordLiveOffset } from "../../warehouse/rows/stream-stats.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import type { PendingPages } from "../decode/pending-pages.ts";
import { type AppliedClaims, applyClaims } from "./apply-claims.ts";
import type { CommittedPages } from "./committed-pages.ts";
import { recordLateRecords } from "./late-records.ts";
import { readStoredSeries } from "./stored-series.ts";
import { type HistoryPage, recordsOf, secondRecordsOf, writePage } from "./write-page.ts";

/** The position of a page in its walk. */
export interface WalkPosition extends Pick<PageAnswer, "gap" | "provenFrom" | "isContinued" | "anchor"> {
  /** When the service made the earliest response of the walk; undefined: it did not say. */
  readonly madeAt?: Micros | undefined;
}

/** A decoded page of a backward walk, and what the walk knows about it. */
export interface WalkPage extends Pick<PageAnswer, "isLast" | "isHead" | "isSilenceConfirmed"> {
  readonly pageId: number;
  readonly series: Series;
  readonly position: WalkPosition;
  /** Equal pages have shown that the service always sends records of other series. */
  readonly acceptsForeign?: boolean;
  readonly rules: Pick<
    SeriesRules,
    "period" | "settleDelay" | "quietMargin" | "windowStart" | "floor" | "present"
  >;
  readonly confirmation: ConfirmationRules;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
  /** Also count the records that were not stored before: costs a query. */
  readonly shouldCountMissing?: boolean;
}

export interface WalkPageCommitResult extends AppliedClaims {
  readonly written: WriteRecordsResult;
  /** How much later the websocket stamps ticks than REST, if this page showed it for the first time. */
  readonly learnedOffset: Micros | undefined;
  readonly rejected: number;
  /** Records of the proven range that were not stored before, if `shouldCountMissing`. */
  readonly missing: number;
  /** Records of other series; stored under their own series where nothing is known yet. */
  readonly foreign: number;
  /** What the page proves by its records alone. Rows that it lacks may be a pending claim: their part is open. */
  readonly proven: TimeRange | undefined;
  /** The walk has proven its gap down to the start, as far up as the service has published it, or its end is claimed. */
  readonly isComplete: boolean;
  /** The service has not published the range up to the end of the gap. */
  readonly isUnpublished: boolean;
  /** The page has records where the ledger said that there are none, or nothing older: that range is open again. */
  readonly hasReopened: boolean;
  /** Why the page settled nothing; the gap must be walked again from its start. */
  readonly alarm: PageAlarm | undefined;
  /** Set if stored rows are older than everything that the service still serves: its oldest record. */
  readonly endsAt?: Micros | undefined;
}

export type PageAlarm = PageContradiction | "mass_rejection" | "older_than_stored";

/** With more rejects than this, the service's format has probably changed: the page proves nothing. */
const MAX_REJECTED_FRACTION = 0.5;

interface CommitOptions {
  readonly pages: PendingPages;
  readonly committedPages: CommittedPages;
  readonly now: Micros;
}

/**
 * Commits one page in one transaction: its records, revisions, withdrawals and rejects, and what the rule makes of its claims.
 */
export function commitWalkPage(
  warehouse: WarehouseWriter,
  { pages, committedPages, now }: CommitOptions,
  page: WalkPage,
): WalkPageCommitResult {
  const { stream, indexType, indexId } = page.series;
  const decoded = pages.get(stream, page.pageId);
  const { requestedAt } = decoded;
  return warehouse.transaction((transaction): WalkPageCommitResult => {
    const series = transaction.dictionary.getSeriesKey(indexType, indexId);
    const key = { stream, series };
    const extent = findExtent(page, decoded);
    // A page from a cache, or one superseded by a later request, may be older than the stored rows. Stored like live ticks,
    // its records never replace a row of a current page.
    const isStale =
      decoded.isFromCache ||
      (extent !== undefined && committedPages.isSuperseded(stream, series, extent, requestedAt));
    const answer = toAnswer(page, decoded, { isStale, asOf: decoded.asOf ?? now });
    const { counts, liveRows } = storePage(transaction, key, { page, decoded, answer, extent });
    const contradiction = findContradiction(answer) ?? findMassRejection(decoded);
    if (contradiction === "newer_than_proven")
      applyChanges(transaction, key, reopen([{ from: answer.provenFrom, to: answer.gap.to }]));
    const stored = readStoredSeries(transaction, key, indexType);
    // A stale page neither repeats nor disproves a claim.
    const before = isStale || contradiction ? [] : readClaims(transaction, key);
    const rules = toRules(transaction, page, answer.asOf);
    const live = { liveRows, timestamps: answer.timestamps };
    const learnedOffset = contradiction ? undefined : confirmLiveRows(transaction, key, rules, live);
    const said = contradiction ? saysNothing : interpret(answer, stored, before, rules);
    applyChanges(transaction, key, reopen([...said.young, ...said.reopened]));
    recordShown(transaction, key, answer, said.bound);
    const alarm = contradiction ?? findConflict(transaction, key, { answer, decoded, said });
    // What a stale page has no records of, it does not prove.
    const isMute = isStale && said.proven !== undefined && said.claims.length === 0;
    const { claims, proven, isComplete, endsAt, bound } = alarm || isMute ? saysNothing : said;
    const { windowStart } = rules;
    const evidence = { claims, shown: proven, oldest: answer.timestamps.at(-1), windowStart };
    const applied = applyClaims(transaction, key, stored, evidence, before, page.confirmation);
    if (proven) transaction.onRollback(committedPages.add(stream, series, proven, requestedAt));
    return {
      ...counts,
      ...applied,
      learnedOffset,
      proven,
      isComplete,
      isUnpublished: bound.isUnpublished,
      hasReopened: transaction.hasReopened || said.reopened.length > 0,
      alarm,
      endsAt,
    };
  });
}

const saysNothing: Interpretation = {
  claims: [],
  young: [],
  reopened: [],
  proven: undefined,
  isComplete: false,
  endsAt: undefined,
  bound: { until: 0, isFinal: false, isUnpublished: false, publication: undefined, showsRunningDay: false },
};

/** What the page would prove if nothing contradicted it. */
function findExtent(
  { position, isLast }: WalkPage,
  { plausibleTimestamps }: HistoryPage,
): TimeRange | undefined {
  const { gap, provenFrom } = position;
  const oldest = plausibleTimestamps.at(-1) ?? Number.POSITIVE_INFINITY;
  const from = isLast ? gap.from : Math.max(gap.from, oldest + 1);
  return from < provenFrom ? { from, to: provenFrom } : undefined;
}

function toAnswer(
  { position, isLast, isHead, isSilenceConfirmed, acceptsForeign }: WalkPage,
  { plausibleTimestamps, foreign, asOf }: HistoryPage,
  received: Pick<PageAnswer, "isStale" | "asOf">,
): PageAnswer {
  return {
    ...position,
    timestamps: plausibleTimestamps,
    foreign: acceptsForeign ? 0 : foreign,
    isLast,
    isHead,
    isSilenceConfirmed,
    // The record above the page is as the page before it has shown it.
    madeAt: asOf === undefined ? undefined : Math.min(asOf, position.madeAt ?? asOf),
    ...received,
  };
}

function toRules(transaction: Transaction, { series, rules }: WalkPage, asOf: Micros): SeriesRules {
  const { stream } = series;
  const lateness = readLateness(transaction, stream);
  const { step } = streamTable[stream];
  return {
    ...rules,
    step,
    isDaily: isDaily(stream),
    lateness: lateness ? decayLateness(lateness, asOf) : 0,
  };
}

/** A record from the future is readable, and beyond the range. */
function findMassRejection({ rejects, ahead, rawCount }: HistoryPage): PageAlarm | undefined {
  return rejects.length - ahead > rawCount * MAX_REJECTED_FRACTION ? "mass_rejection" : undefined;
}

interface ReceivedPage {
  readonly page: WalkPage;
  readonly decoded: HistoryPage;
  readonly answer: PageAnswer;
  readonly extent: TimeRange | undefined;
}

/** Stores what the page has, whatever it proves. Returns the live rows that it may confirm, as they were before. */
function storePage(
  transaction: Transaction,
  key: SeriesKey,
  { page, decoded, answer, extent }: ReceivedPage,
) {
  const { stream, series } = key;
  const { isStale, isHead, gap, provenFrom, timestamps, asOf } = answer;
  if (isHead && !isStale && provenFrom >= gap.to) {
    recordLateRecords(transaction, key, { ...page.rules, timestamps, asOf });
    tellNewest(transaction, decoded, page.series);
  }
  const compared = page.shouldCountMissing ? extent : undefined;
  const before = compared ? countStoredRows(transaction, key, compared) : 0;
  const liveRows = isStale ? [] : findOwnLiveRows(transaction, key, page, timestamps);
  const { written, seconds } = writePage(transaction, key, page, decoded, isStale ? "live" : "rest");
  transaction.markWritten(stream, series);
  storeRejects(transaction, stream, decoded.rejects, page.request);
  countUnknownFields(transaction, stream, decoded.unknownFields);
  const counts = {
    written,
    rejected: decoded.rejects.length + seconds,
    missing: compared ? countStoredRows(transaction, key, compared) - before : 0,
    foreign: decoded.foreign,
  };
  return { counts, liveRows };
}

/** While the feed is silent, pages get their prices from here. */
function tellNewest({ journal }: Transaction, decoded: HistoryPage, { stream, indexId }: Series): void {
  const newest = decoded.columns ? tickAt(decoded.columns, 0) : recordsOf(decoded)[0];
  const tick = stream === "index_ticks" && newest?.indexId === indexId && toCommittedTick(newest);
  if (tick && tick[2] === decoded.plausibleTimestamps[0]) journal.tell(tick);
}

/** The live rows that the page may confirm. Call it before the page is written. */
function findOwnLiveRows(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  { rules }: WalkPage,
  timestamps: readonly Micros[],
): readonly Micros[] {
  const [newest, oldest] = [timestamps[0], timestamps.at(-1)];
  if (stream !== "index_ticks" || newest === undefined || oldest === undefined) return [];
  const tolerance = previewTolerance(rules);
  return findLiveRows(transaction, series, { from: oldest - tolerance, to: newest + tolerance });
}

/**
 * Replaces the previews that the page has at a slightly other moment, proven or not. Returns by how much the websocket
 * is off, if that is new.
 */
function confirmLiveRows(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  rules: SeriesRules,
  { liveRows, timestamps }: { liveRows: readonly Micros[]; timestamps: readonly Micros[] },
): Micros | undefined {
  const tolerance = previewTolerance(rules);
  const { confirmed, offset } = replacePreviews(transaction, series, { liveRows, timestamps, tolerance });
  if (offset === undefined && confirmed === 0) return undefined;
  return recordLiveOffset(transaction, stream, offset ?? null) ? offset : undefined;
}

/** Stores what the page has shown of the head. */
function recordShown(
  transaction: Transaction,
  key: SeriesKey,
  { isHead, isStale }: PageAnswer,
  { publication, showsRunningDay }: UpperBound,
): void {
  if (showsRunningDay) recordRunningDay(transaction, key.stream);
  if (!publication) return;
  if (isHead && !isStale) recordHeadPage(transaction, key, publication);
  else recordLowerPage(transaction, key, publication);
}

/** A stale page proves nothing if a stored row contradicts it: the row may be newer. */
function findConflict(
  transaction: Transaction,
  key: SeriesKey,
  { answer, decoded, said: { proven } }: InterpretedPage,
): PageAlarm | undefined {
  if (!answer.isStale || !proven) return undefined;
  // Includes the page's oldest row, which the next page would settle.
  const oldest = answer.timestamps.at(-1) ?? proven.from;
  const checked = { from: Math.min(proven.from, Math.max(answer.gap.from, oldest)), to: proven.to };
  const trusted = [answer.provenFrom - 1, ...decoded.timestamps];
  const records = [...recordsOf(decoded), ...secondRecordsOf(decoded).map(({ record }) => record)];
  return hasConflictingRows(transaction, key, checked, records, trusted) ? "older_than_stored" : undefined;
}

interface InterpretedPage {
  readonly answer: PageAnswer;
  readonly decoded: HistoryPage;
  readonly said: Interpretation;
}
