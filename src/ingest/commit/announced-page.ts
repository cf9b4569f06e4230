import { type AnnouncedCoverage, type AnnouncedRange, isUnproven } from "../../model/announced-coverage.ts";
import type { StreamRecords } from "../../model/records.ts";
import { type HistoryStream, streamDefinition } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { containsTimestamp, intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { PageAnswer, Publication, StoredSeries } from "../../rule/answer.ts";
import type { PendingClaim } from "../../rule/claim.ts";
import { claimRecords, type Interpretation } from "../../rule/interpret.ts";
import { hasRowsInRange, type SeriesKey, settle } from "../../warehouse/coverage/ledger.ts";
import {
  dropClaims,
  pendingReasons,
  readClaims,
  storeClaim,
} from "../../warehouse/coverage/pending-claims.ts";
import { type WriteRecordsResult, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";

/*
 * A page of `mds-sync serve` comes with the ledger of the warehouse that it serves. What that ledger does not cover, the page
 * proves nothing about; what it covers has passed the same checks as here, so none of them is repeated.
 */

const unconfirmedKinds = ["end", "not found"] as const;

const unprovenOf = (ranges: readonly AnnouncedRange[]) => normalise(ranges.filter(isUnproven));

/** Whether records of the page lie where its sender proves nothing. */
export function hasUnprovenRecords({ ranges }: AnnouncedCoverage, timestamps: readonly Micros[]): boolean {
  const open = unprovenOf(ranges);
  return timestamps.some((ts) => containsTimestamp(open, ts));
}

/** Stores records of open ranges like live ticks: nobody has confirmed them. A stream without a live feed has no such mark. */
export function writeUnprovenRecords<S extends HistoryStream>(
  transaction: Transaction,
  stream: S,
  records: readonly StreamRecords[S][],
  { ranges }: AnnouncedCoverage,
): WriteRecordsResult {
  if (streamDefinition(stream).event === null) return writeRecords(transaction, stream, records, "rest");
  const open = unprovenOf(ranges);
  const [proven, unproven]: [StreamRecords[S][], StreamRecords[S][]] = [[], []];
  for (const record of records) (containsTimestamp(open, record.ts) ? unproven : proven).push(record);
  const rest = writeRecords(transaction, stream, proven, "rest");
  const live = writeRecords(transaction, stream, unproven, "live");
  return {
    inserted: rest.inserted + live.inserted,
    changed: rest.changed + live.changed,
    unchanged: rest.unchanged + live.unchanged,
    extraChanged: rest.extraChanged + live.extraChanged,
    outranked: rest.outranked + live.outranked,
  };
}

interface AnnouncedPage {
  readonly announced: AnnouncedCoverage;
  /** What the page may prove. */
  readonly extent: TimeRange | undefined;
}

/** The page has all records of what its sender covers in its range; a stale one says nothing. */
export function interpretAnnounced(
  answer: PageAnswer,
  { announced: { ranges }, extent }: AnnouncedPage,
  stored: StoredSeries,
  before: readonly PendingClaim[],
): Interpretation {
  const { isStale, isHead, provenFrom, gap } = answer;
  const proven = isStale ? undefined : extent;
  const withoutRows = normalise(ranges.filter(({ state }) => state !== "empty"));
  const claims = subtract(proven ? [proven] : [], withoutRows).flatMap((covered) =>
    // The sender covers what lies between the records of two pages.
    claimRecords(covered, answer, stored, before).map((claim) => ({ ...claim, says: "rows" as const })),
  );
  const publication = proven && isHead && provenFrom >= gap.to ? readHead(ranges, answer) : undefined;
  return {
    claims,
    young: [],
    reopened: [],
    proven,
    isComplete: proven?.from === gap.from,
    endsAt: undefined,
    bound: { until: provenFrom, isFinal: true, isUnpublished: false, publication, showsRunningDay: false },
  };
}

/** Settles the range of the page as the sender has it, and tells what the service has still to repeat to the sender. */
export function copyLedger(
  transaction: Transaction,
  key: SeriesKey,
  { ranges }: AnnouncedCoverage,
  proven: TimeRange,
): void {
  const isRepeated = ({ kind, range }: PendingClaim) =>
    unconfirmedKinds.some((each) => each === kind) && intersect([proven], normalise([range])).length > 0;
  dropClaims(transaction, readClaims(transaction, key).filter(isRepeated));
  for (const { state, reason, ...range } of ranges) {
    const [part] = intersect([proven], normalise([range]));
    if (!part) continue;
    // An end is about everything below, also what no walk needs to ask for.
    if (state === "open" || state === "unconfirmed")
      copyClaim(transaction, key, { from: range.from, to: part.to }, reason);
    else if (state === "lost" || !hasRowsInRange(transaction, key, part))
      settle(transaction, key, part, state, reason ?? "no records");
  }
}

/** Only the service can confirm it, to the sender: no answer to this warehouse counts. */
function copyClaim(transaction: Transaction, key: SeriesKey, range: TimeRange, reason: string | null): void {
  const [kind] = unconfirmedKinds.filter((each) => pendingReasons[each] === reason);
  if (kind === undefined) return;
  const [firstAt, lastAt] = [transaction.now, transaction.now];
  storeClaim(
    transaction,
    key,
    { kind, range, subject: [], answers: 0, firstAt, lastAt, acceptedAt: null },
    0,
  );
}

/** Above what the sender has proven, the head is `not published yet`. */
function readHead(ranges: readonly AnnouncedRange[], { gap: { to }, asOf }: PageAnswer): Publication {
  const head = unprovenOf(ranges).findLast((range) => range.from < to && range.to >= to);
  return { publishedTo: head?.from ?? to, askedAt: asOf, askedTo: to, quietMargin: 0 };
}
