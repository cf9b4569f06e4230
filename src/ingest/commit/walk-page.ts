import { toCommittedTick } from "../../model/answers/ticks.ts";
import type { HistoryStream, Series } from "../../model/streams.ts";
import { tickAt } from "../../model/tick-columns.ts";
import { MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { PageAnswer } from "../../rule/answer.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import { decideNotFound, decidePage, type Known } from "../../rule/decide.ts";
import { findContradiction, type PageAlarm } from "../../rule/interpret.ts";
import { previewTolerance } from "../../rule/provable-until.ts";
import { applyChanges, ledgerKeyText, type SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { readClaims } from "../../warehouse/coverage/pending-claims.ts";
import { decayLateness, recordPublication } from "../../warehouse/coverage/publication.ts";
import { type MatchedPreviews, matchPreviews, removePreviews } from "../../warehouse/rows/previews.ts";
import { countUnknownFields, storeRejects } from "../../warehouse/rows/rejects.ts";
import { hasConflictingRows, readStoredTimestamps } from "../../warehouse/rows/row-queries.ts";
import {
  readStreamTiming,
  recordStreamTiming,
  type StreamTiming,
} from "../../warehouse/rows/stream-stats.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import type { Page } from "../decode/read-page.ts";
import { findLateness, readAround, readStoredSeries, type SeriesTiming, toRules } from "./stored-series.ts";
import {
  type AppliedClaims,
  countClaimed,
  duplicatesOf,
  readPageRows,
  recordsOf,
  storeClaims,
  writePageRows,
} from "./write-page.ts";

export interface WalkPosition extends Pick<PageAnswer, "gap" | "provenFrom" | "isContinued" | "anchor"> {
  /** When the service made the earliest response of the walk; undefined: it did not say. */
  readonly madeAt?: Micros | undefined;
}

/** What a backward walk knows about a page. */
export interface WalkPage extends Pick<PageAnswer, "isLast" | "isHead" | "isSilenceConfirmed"> {
  readonly series: Series;
  readonly position: WalkPosition;
  /** Equal pages have shown that the service always sends records of other series. */
  readonly acceptsForeign?: boolean;
  readonly timing: SeriesTiming;
  readonly confirmation: ConfirmationRules;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
  /** Also count the records that were not stored before: costs a query. */
  readonly shouldCountMissing?: boolean;
}

export type WalkPageCommitResult = Readonly<ReturnType<typeof commitWalkPage>>;

/** With more rejects than this, the service's format has probably changed: the page proves nothing. */
const MAX_REJECTED_FRACTION = 0.5;

/**
 * Commits one page in one transaction: its records, revisions, withdrawals and rejects, and what the rule makes of its claims.
 * Nothing that the rule decides by is read after the first write.
 */
export function commitWalkPage(
  warehouse: WarehouseWriter,
  committedPages: CommittedPages,
  page: WalkPage,
  decoded: Page,
) {
  const { stream, indexType, indexId } = page.series;
  return warehouse.transaction((transaction) => {
    const key = { stream, series: transaction.dictionary.getSeriesKey(indexType, indexId) };
    const read = readPage(transaction, key, page, decoded, committedPages);
    return writePage(transaction, key, page, decoded, read, committedPages);
  });
}

/** Reads what is stored of the series of a page before it is written, and asks the rule. */
function readPage(
  transaction: Transaction,
  key: SeriesKey,
  page: WalkPage,
  decoded: Page,
  committedPages: CommittedPages,
) {
  const { stream, series } = key;
  const { now } = transaction;
  const { timing, confirmation } = page;
  const extent = findExtent(page, decoded);
  // A page from a cache, or one superseded by a later request, may be older than the stored rows. Stored like live ticks,
  // its records never replace a row of a current page.
  const isStale =
    decoded.isFromCache ||
    (extent !== undefined && committedPages.isSuperseded(stream, series, extent, decoded.requestedAt));
  const answer = toAnswer(page, decoded, { isStale, asOf: decoded.asOf ?? now });
  const { timestamps, asOf, provenFrom, gap } = answer;
  const contradiction = findContradiction(answer) ?? findMassRejection(decoded);
  const learned = readStreamTiming(transaction, stream);
  const isNewest = page.isHead && !isStale && provenFrom >= gap.to;
  const lateness = isNewest ? findLateness(transaction, key, { ...timing, timestamps, asOf }) : undefined;
  const late = lateness ?? (learned?.lateBy ? learned : undefined);
  const around = readAround(transaction, key, answer, decoded, timing);
  const mayMatch = !around.isVacant && stream === "index_ticks" && !isStale && !contradiction;
  const previews: MatchedPreviews =
    mayMatch && timestamps.length > 0
      ? matchPreviews(transaction, series, timestamps, previewTolerance(timing))
      : { confirmed: 0, replaced: [], offset: undefined };
  const { replaced } = previews;
  const known: Known = {
    stored: readStoredSeries(transaction, key, page.series.indexType, { ...around, replaced, learned }),
    pending: readClaims(transaction, key),
    rules: toRules(transaction, stream, timing, late ? decayLateness(late, asOf) : 0),
    confirmation,
    now,
  };
  const source = isStale ? "live" : "rest";
  const hasConflict = (proven: TimeRange) => findConflict(transaction, key, answer, decoded, proven);
  const decision = decidePage(answer, known, { contradiction, hasConflict });
  return {
    answer,
    decision,
    counts: countClaimed(transaction, key, decision),
    rows: readPageRows(transaction, key, page, decoded, { source, isVacant: around.isVacant }),
    previews,
    learnedOffset: learnOffset(previews, learned),
    isNewest,
    lateness,
    missing: page.shouldCountMissing && extent ? countMissing(transaction, key, decoded, extent) : 0,
  };
}

/** What the page would prove if nothing contradicted it. */
function findExtent({ position, isLast }: WalkPage, { plausibleTimestamps }: Page): TimeRange | undefined {
  const { gap, provenFrom } = position;
  const oldest = plausibleTimestamps.at(-1) ?? Number.POSITIVE_INFINITY;
  const from = isLast ? gap.from : Math.max(gap.from, oldest + 1);
  return from < provenFrom ? { from, to: provenFrom } : undefined;
}

function toAnswer(
  { position, isLast, isHead, isSilenceConfirmed, acceptsForeign }: WalkPage,
  { timestamps, plausibleTimestamps, foreign, asOf }: Page,
  received: Pick<PageAnswer, "isStale" | "asOf">,
): PageAnswer {
  return {
    ...position,
    timestamps: plausibleTimestamps,
    rows: timestamps,
    foreign: acceptsForeign ? 0 : foreign,
    isLast,
    isHead,
    isSilenceConfirmed,
    // The record above the page is as the page before it has shown it.
    madeAt: asOf === undefined ? undefined : Math.min(asOf, position.madeAt ?? asOf),
    ...received,
  };
}

/** A record from the future is readable, and beyond the range. */
function findMassRejection({ rejects, ahead, rawCount }: Page): PageAlarm | undefined {
  return rejects.length - ahead > rawCount * MAX_REJECTED_FRACTION ? "mass_rejection" : undefined;
}

/** A stale page proves nothing if a stored row contradicts it: the row may be newer. */
function findConflict(
  transaction: Transaction,
  key: SeriesKey,
  { gap, provenFrom, timestamps }: PageAnswer,
  decoded: Page,
  proven: TimeRange,
): boolean {
  // Includes the page's oldest row, which the next page would settle.
  const oldest = timestamps.at(-1) ?? proven.from;
  const checked = { from: Math.min(proven.from, Math.max(gap.from, oldest)), to: proven.to };
  const trusted = [provenFrom - 1, ...decoded.timestamps];
  const records = [...recordsOf(decoded), ...duplicatesOf(decoded).map(({ record }) => record)];
  return hasConflictingRows(transaction, key, checked, records, trusted);
}

function countMissing(
  transaction: Transaction,
  key: SeriesKey,
  { timestamps }: Page,
  { from, to }: TimeRange,
): number {
  const stored = new Set(readStoredTimestamps(transaction, key, { from, to }));
  return new Set(timestamps.filter((ts) => from <= ts && ts < to && !stored.has(ts))).size;
}

/** Writes the page, whatever it proves, and what the rule decided. Reads nothing. */
function writePage(
  transaction: Transaction,
  key: SeriesKey,
  page: WalkPage,
  decoded: Page,
  read: ReturnType<typeof readPage>,
  committedPages: CommittedPages,
) {
  const { stream, series } = key;
  const { decision, rows, previews, learnedOffset } = read;
  const { rejects, unknownFields, foreign, requestedAt } = decoded;
  const { proven, isComplete, isUnpublished, hasReopened, alarm, endsAt, bound } = decision;
  const claims = storeClaims(transaction, key, decision, read.counts);
  const written = writePageRows(transaction, key, rows);
  if (previews.replaced.length > 0) removePreviews(transaction, series, previews.replaced);
  const withdrawn = applyChanges(transaction, key, decision.changes, decision.touched);
  const duplicates =
    rows.duplicates.length > 0 ? storeRejects(transaction, stream, rows.duplicates, page.request) : 0;
  if (rejects.length > 0) storeRejects(transaction, stream, rejects, page.request);
  if (unknownFields.length > 0) countUnknownFields(transaction, stream, unknownFields);
  if (read.lateness) recordStreamTiming(transaction, stream, read.lateness);
  if (learnedOffset !== undefined) recordStreamTiming(transaction, stream, { liveOffset: learnedOffset });
  if (bound.showsRunningDay) recordStreamTiming(transaction, stream, { servesRunningDay: 1 });
  if (bound.publication) recordPublication(transaction, key, bound.publication);
  if (read.isNewest) noteNewest(transaction, decoded, page.series);
  if (proven) transaction.onRollback(committedPages.add(stream, series, proven, requestedAt));
  return {
    ...claims,
    withdrawn,
    written,
    rejected: rejects.length + duplicates,
    /** Records of the proven range that were not stored before, if `shouldCountMissing`. */
    missing: read.missing,
    /** Records of other series; stored under their own series where nothing is known yet. */
    foreign,
    /** How much later the websocket stamps ticks than REST, if this page showed it for the first time. */
    learnedOffset: learnedOffset ?? undefined,
    proven,
    isComplete,
    isUnpublished,
    hasReopened,
    alarm,
    endsAt,
  };
}

/** While the feed is silent, pages get their prices from here. */
function noteNewest({ journal }: Transaction, decoded: Page, { stream, indexId }: Series): void {
  const newest = decoded.columns ? tickAt(decoded.columns, 0) : recordsOf(decoded)[0];
  const tick = stream === "index_ticks" && newest?.indexId === indexId && toCommittedTick(newest);
  if (tick && tick[2] === decoded.plausibleTimestamps[0]) journal.publish(tick);
}

/** A smaller change of the live offset is noise. */
const MIN_OFFSET_CHANGE_MICROS = 50 * MICROS_PER_MS;

/** How much later the websocket stamps ticks than REST, if that is new; null: not any more. */
function learnOffset(
  { confirmed, offset: seen }: MatchedPreviews,
  known: StreamTiming | undefined,
): Micros | null | undefined {
  const [before, offset] = [known?.liveOffset, seen ?? null];
  // Nothing of the stream is stored yet, or the page has no live tick.
  if (before === undefined || before === offset || (offset === null && confirmed === 0)) return undefined;
  const minChange = Math.max(MIN_OFFSET_CHANGE_MICROS, Math.abs(before ?? 0) / 2);
  const isNoise = before !== null && offset !== null && Math.abs(offset - before) < minChange;
  return isNoise ? undefined : offset;
}

interface CommittedPage extends TimeRange {
  /** On the boot clock, milliseconds. */
  readonly requestedAt: number;
}

/** Every page is committed within this time after its request. */
const MAX_PENDING_PAGE_MS = 600_000;
/** Bounds the memory of a fast backfill, whose pages are in flight for seconds, not minutes. */
const MAX_PAGES_PER_SERIES = 128;

/**
 * Recently committed pages and when they were requested. Head poller, backfill and audit may request the same
 * range and their responses arrive in any order: the latest request wins.
 */
export class CommittedPages {
  readonly #pagesBySeries = new Map<string, CommittedPage[]>();

  /** Whether a page of this range that was requested later is already committed. */
  isSuperseded(stream: HistoryStream, series: number, { from, to }: TimeRange, requestedAt: number): boolean {
    const pages = this.#pagesBySeries.get(ledgerKeyText({ stream, series })) ?? [];
    return pages.some((page) => page.requestedAt > requestedAt && page.from < to && from < page.to);
  }

  /** Returns what removes the page again. */
  add(stream: HistoryStream, series: number, { from, to }: TimeRange, requestedAt: number): () => void {
    const key = ledgerKeyText({ stream, series });
    const pages = this.#pagesBySeries.get(key) ?? [];
    this.#pagesBySeries.set(key, pages);
    const added = { from, to, requestedAt };
    pages.push(added);
    // Not one by one: moving the others costs more than it frees.
    const excess = pages.length > 2 * MAX_PAGES_PER_SERIES ? pages.length - MAX_PAGES_PER_SERIES : 0;
    const firstRecent = pages.findIndex((page) => page.requestedAt > requestedAt - MAX_PENDING_PAGE_MS);
    pages.splice(0, Math.max(excess, firstRecent));
    return () => {
      const at = pages.indexOf(added);
      if (at >= 0) pages.splice(at, 1);
    };
  }
}

/** An answer that the index does not exist: 404, or 400 while others of its type are served. */
interface NotFoundAnswer extends Pick<WalkPage, "timing" | "confirmation"> {
  readonly key: SeriesKey;
  readonly indexType: string;
  readonly range: TimeRange;
}

/** Counts the answer; its range is `unconfirmed` until the service has repeated it. */
export function commitNotFound(
  transaction: Transaction,
  { key, indexType, range, timing, confirmation }: NotFoundAnswer,
): AppliedClaims {
  const known = {
    stored: readStoredSeries(transaction, key, indexType),
    pending: readClaims(transaction, key),
    rules: toRules(transaction, key.stream, timing, 0),
    confirmation,
    now: transaction.now,
  };
  const decision = decideNotFound(range, known);
  const counts = countClaimed(transaction, key, decision);
  const claims = storeClaims(transaction, key, decision, counts);
  return { ...claims, withdrawn: applyChanges(transaction, key, decision.changes, decision.touched) };
}
