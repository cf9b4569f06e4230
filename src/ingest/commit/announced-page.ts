import type { AnnouncedCoverage, AnnouncedRange } from "../../model/announced-coverage.ts";
import type { StreamRecords } from "../../model/records.ts";
import { type HistoryStream, streamDefinition } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { containsTimestamp, intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { PageAnswer, SeriesRules, StoredSeries } from "../../rule/answer.ts";
import type { PendingClaim } from "../../rule/claim.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import { claimRecords } from "../../rule/interpret.ts";
import { hasRowsInRange, type LedgerKey, settle } from "../../warehouse/coverage/ledger.ts";
import { recordHeadPage } from "../../warehouse/coverage/publication.ts";
import { type WriteRecordsResult, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import { type AppliedClaims, applyClaims } from "./apply-claims.ts";

/*
 * A page of `mds-sync serve` comes with the ledger of the warehouse that it serves. What that ledger does not cover, the page
 * proves nothing about; what it covers has passed the same checks as here, so none of them is repeated.
 */

type SeriesKey = LedgerKey & { readonly stream: HistoryStream };

const rangesOf = (ranges: readonly AnnouncedRange[], state: AnnouncedRange["state"]) =>
  normalise(ranges.filter((range) => range.state === state));

/** Whether records of the page lie where its sender proves nothing. */
export function hasUnprovenRecords({ ranges }: AnnouncedCoverage, timestamps: readonly Micros[]): boolean {
  const open = rangesOf(ranges, "open");
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
  const open = rangesOf(ranges, "open");
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
  readonly answer: PageAnswer;
  readonly announced: AnnouncedCoverage;
  /** What the page may prove. */
  readonly extent: TimeRange;
  readonly stored: StoredSeries;
  readonly before: readonly PendingClaim[];
  readonly rules: SeriesRules;
}

/** Copies the announced ledger for the range of the page, and withdraws what the page lacks where it is covered. */
export function settleAnnounced(
  transaction: Transaction,
  key: SeriesKey,
  { answer, announced, extent, stored, before, rules }: AnnouncedPage,
  confirmation: ConfirmationRules,
): AppliedClaims {
  const { ranges } = announced;
  const withoutRows = normalise(ranges.filter(({ state }) => state !== "empty"));
  const claims = subtract([extent], withoutRows).flatMap((covered) =>
    // The sender covers what lies between the records of two pages.
    claimRecords(covered, answer, stored, before).map((claim) => ({ ...claim, says: "rows" as const })),
  );
  const evidence = {
    claims,
    shown: extent,
    oldest: answer.timestamps.at(-1),
    windowStart: rules.windowStart,
  };
  const applied = applyClaims(transaction, key, stored, evidence, before, confirmation);
  for (const range of ranges) {
    if (range.state === "open") continue;
    const [part] = intersect([extent], normalise([range]));
    if (!part || (range.state === "empty" && hasRowsInRange(transaction, key, part))) continue;
    settle(transaction, key, part, range.state, range.reason ?? "no records");
  }
  if (answer.isHead && answer.provenFrom >= answer.gap.to) recordHead(transaction, key, ranges, answer);
  return applied;
}

/** Above what the sender has proven, the head is `not published yet`. */
function recordHead(
  transaction: Transaction,
  key: SeriesKey,
  ranges: readonly AnnouncedRange[],
  { gap: { to }, asOf }: PageAnswer,
): void {
  const head = rangesOf(ranges, "open").findLast((range) => range.from < to && range.to >= to);
  const publishedTo = head?.from ?? to;
  recordHeadPage(transaction, key, { publishedTo, askedAt: asOf, askedTo: to, quietMargin: 0 });
}
