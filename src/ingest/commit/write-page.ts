import type { DailyBar, IndexTick, Reject, StreamRecords } from "../../model/records.ts";
import { type HistoryStream, type RowStream, type Series, streamTable } from "../../model/streams.ts";
import { tickAt, toTicks } from "../../model/tick-columns.ts";
import type { Micros } from "../../model/time.ts";
import type { PageAnswer } from "../../rule/answer.ts";
import { isIncident } from "../../rule/confirm.ts";
import type { Decision } from "../../rule/decide.ts";
import { findProofAt, type SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { dropClaims, type StoredClaim, storeClaim } from "../../warehouse/coverage/pending-claims.ts";
import {
  chooseRecord,
  DUPLICATE_TIMESTAMP,
  isStored,
  noteDuplicate,
  readNotedDetails,
  writeNotedDetails,
} from "../../warehouse/rows/duplicate-timestamps.ts";
import { planRecords, planVacantTicks, type RecordSource } from "../../warehouse/rows/row-plan.ts";
import { countStoredRows, findNewestRow } from "../../warehouse/rows/row-queries.ts";
import { type WriteRecordsResult, writeRows } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { DuplicateRecord, SeparatedRecords } from "../decode/decode-page.ts";
import type { Page } from "../decode/read-page.ts";

export interface AppliedClaims {
  /** Stored rows that the service no longer has. */
  readonly withdrawn: number;
  /** Claims that the service must repeat: their ranges are not settled. */
  readonly pending: readonly StoredClaim[];
  /** Claims against stored rows that were accepted just now. */
  readonly believed: readonly StoredClaim[];
}

/** The cast is safe: a page has only records of its own stream. */
export function recordsOf({ columns, records }: Page): (DailyBar & IndexTick)[] {
  return (columns ? toTicks(columns) : records) as (DailyBar & IndexTick)[];
}

export function duplicatesOf({ duplicates }: Page): readonly DuplicateRecord<DailyBar & IndexTick>[] {
  return duplicates as readonly DuplicateRecord<DailyBar & IndexTick>[];
}

/** Reads all that decides what is written of a page. `isVacant`: no row exists in its range. */
export function readPageRows(
  transaction: Transaction,
  { stream, series: key }: SeriesKey,
  { series, position }: { series: Series; position: Pick<PageAnswer, "gap" | "provenFrom" | "anchor"> },
  decoded: Page,
  { source, isVacant }: { readonly source: RecordSource; readonly isVacant: boolean },
) {
  const { columns } = decoded;
  const continued = findContinued(transaction, stream, position, decoded);
  if (columns && isVacant && !continued && source === "rest")
    return { plans: [planVacantTicks(transaction, columns)], duplicates: [], noted: undefined };
  const isWritable = ({ ts }: { readonly ts: Micros }) => ts !== continued?.ts;
  // The service should not have sent records of other series.
  const { own = [], foreign = [] } = Object.groupBy(recordsOf(decoded).filter(isWritable), (record) =>
    record.indexId === series.indexId && record.indexType === series.indexType ? "own" : "foreign",
  );
  const listed = new Set(own);
  const ownDuplicates = duplicatesOf(decoded).filter(({ first }) => listed.has(first));
  const { records, duplicates } = chooseRecords(transaction, stream, {
    records: own,
    duplicates: ownDuplicates,
  });
  const details = continued && readNotedDetails(transaction, stream, key, continued.ts);
  return {
    /** Of its own records, and of those of other series, which are as unconfirmed as a live tick. */
    plans: [
      planRecords(transaction, stream, records, source),
      planRecords(transaction, stream, selectFree(transaction, stream, foreign), "live"),
    ],
    /** Other records of a moment, for `rejects`. */
    duplicates: [...(continued?.duplicates ?? []), ...duplicates],
    /** A stored row of which the page has duplicates, and its details with that remark. */
    noted: continued && details !== undefined ? { ts: continued.ts, details } : undefined,
  };
}

export function writePageRows(
  transaction: Transaction,
  { stream, series }: SeriesKey,
  { plans, noted }: ReturnType<typeof readPageRows>,
): WriteRecordsResult {
  transaction.markWritten(stream, series);
  if (noted) writeNotedDetails(transaction, stream, series, noted);
  const [written] = plans.map((plan) => writeRows(transaction, plan));
  return written as WriteRecordsResult;
}

/** Stores the claims of an answer. `counts`: of the rows that each recorded one is about. */
export function storeClaims(
  transaction: Transaction,
  key: SeriesKey,
  { recorded, dropped }: Decision,
  counts: readonly number[],
): Omit<AppliedClaims, "withdrawn"> {
  if (dropped.length > 0) dropClaims(transaction, dropped);
  const claims = recorded.map((claim, i) => storeClaim(transaction, key, claim, counts[i] ?? 0));
  return {
    pending: claims.filter(({ acceptedAt }) => acceptedAt === null),
    believed: claims.filter(({ acceptedAt }) => acceptedAt !== null),
  };
}

/** How many stored rows each claim to record is about: read before the first write. */
export function countClaimed(transaction: Transaction, key: SeriesKey, { recorded }: Decision) {
  return recorded.map(({ kind, range, subject }) => {
    if (kind === "withdrawn") return subject.length;
    const from: Micros = Number.MIN_SAFE_INTEGER;
    return isIncident(kind) ? countStoredRows(transaction, key, { from, to: subject[0] ?? range.to }) : 0;
  });
}

/**
 * The records of other series where their own series has neither a row nor coverage: a page that ignored the filter must
 * not replace what a page of that series proved.
 */
function selectFree<S extends HistoryStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
): readonly StreamRecords[S][] {
  const { step } = streamTable[stream];
  return records.filter(({ indexType, indexId, ts }) => {
    const key = { stream, series: transaction.dictionary.getSeriesKey(indexType, indexId) };
    return (
      findProofAt(transaction, key, ts) === undefined &&
      findNewestRow(transaction, key, { from: ts, to: ts + step }) === undefined
    );
  });
}

/** Chooses one record of each moment that a page lists several times. `duplicates`: the others, for `rejects`. */
export function chooseRecords<S extends RowStream>(
  transaction: Transaction,
  stream: S,
  { records, duplicates }: SeparatedRecords<StreamRecords[S]>,
): { readonly records: readonly StreamRecords[S][]; readonly duplicates: readonly Reject[] } {
  if (duplicates.length === 0) return { records, duplicates: [] };
  const chosen = new Map<StreamRecords[S], StreamRecords[S]>();
  const rejects: Reject[] = [];
  for (const [first, others] of Map.groupBy(duplicates, (duplicate) => duplicate.first)) {
    const firstListed = { record: first, raw: others[0]?.firstRaw ?? "" };
    const kept = chooseRecord(transaction, stream, [firstListed, ...others]);
    chosen.set(first, { ...kept.record, quality: noteDuplicate(kept.record.quality) });
    rejects.push(...[firstListed, ...others].filter((each) => each !== kept).map(toReject));
  }
  return { records: records.map((record) => chosen.get(record) ?? record), duplicates: rejects };
}

/**
 * If the page before ended with another record of the moment with which this page continues after the cursor, what this
 * page has of that moment are duplicates, for `rejects`.
 */
function findContinued(
  transaction: Transaction,
  stream: HistoryStream,
  { gap, provenFrom, anchor }: Pick<PageAnswer, "gap" | "provenFrom" | "anchor">,
  page: Page,
): { readonly ts: Micros; readonly duplicates: readonly Reject[] } | undefined {
  const ts = provenFrom - 1;
  const isContinued = anchor === undefined && provenFrom < gap.to && page.foreign === 0;
  if (!isContinued || page.plausibleTimestamps[0] !== ts) return undefined;
  const first = page.columns ? tickAt(page.columns, 0) : recordsOf(page)[0];
  const isOther = (record: DailyBar | IndexTick) => isStored(transaction, stream, record as never) === false;
  if (first?.ts !== ts || !isOther(first)) return undefined;
  const others = duplicatesOf(page).filter(({ record }) => record.ts === ts && isOther(record));
  return { ts, duplicates: [{ raw: page.firstRaw }, ...others].map(toReject) };
}

function toReject({ raw }: { readonly raw: string }): Reject {
  return { reason: DUPLICATE_TIMESTAMP, raw };
}
