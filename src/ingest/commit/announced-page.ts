import type { AnnouncedCoverage, AnnouncedRange } from "../../model/announced-coverage.ts";
import type { StreamRecords } from "../../model/records.ts";
import { type HistoryStream, streamDefinition } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { containsTimestamp, intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { hasRowsInRange, type LedgerKey, retract, settle } from "../../warehouse/coverage/ledger.ts";
import type { MassWithdrawal, WithdrawalRules } from "../../warehouse/coverage/mass-withdrawals.ts";
import { recordHeadPage } from "../../warehouse/coverage/publication.ts";
import { type WriteRecordsResult, writeRecords } from "../../warehouse/rows/row-writer.ts";
import { type WithdrawResult, withdrawMissing } from "../../warehouse/rows/withdraw-missing.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WalkPosition } from "./proven-range.ts";

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
  readonly position: WalkPosition;
  readonly isHead: boolean;
  readonly announced: AnnouncedCoverage;
  readonly proven: TimeRange;
  /** The timestamps that the range may contain. */
  readonly expected: readonly Micros[];
  readonly asOf: Micros;
  readonly withdrawals?: WithdrawalRules | undefined;
}

/** Copies the announced ledger for the proven range, and withdraws what the page lacks where it is covered. */
export function settleAnnounced(
  transaction: Transaction,
  key: SeriesKey,
  { announced, proven, expected, withdrawals, ...page }: AnnouncedPage,
): WithdrawResult {
  const { ranges } = announced;
  const unconfirmed: MassWithdrawal[] = [];
  const believed: MassWithdrawal[] = [];
  let withdrawn = 0;
  const withoutRows = ranges.filter(({ state }) => state !== "empty");
  for (const covered of subtract([proven], normalise(withoutRows))) {
    const result = withdrawMissing(transaction, {
      ...key,
      range: covered,
      timestamps: expected,
      ...(withdrawals ? { rules: withdrawals } : {}),
    });
    withdrawn += result.withdrawn;
    unconfirmed.push(...result.unconfirmed);
    believed.push(...result.believed);
    for (const range of result.unconfirmed) retract(transaction, key, range);
    const settled = subtract([covered], normalise(result.unconfirmed));
    for (const range of subtract(settled, rangesOf(ranges, "empty"))) settle(transaction, key, range, "rows");
  }
  for (const range of ranges) {
    if (range.state === "open") continue;
    const [part] = intersect([proven], normalise([range]));
    if (!part || (range.state === "empty" && hasRowsInRange(transaction, key, part))) continue;
    settle(transaction, key, part, range.state, range.reason ?? "no records");
  }
  if (page.isHead && page.position.provenFrom >= page.position.gap.to)
    recordHead(transaction, key, ranges, page);
  return { withdrawn, unconfirmed, believed };
}

/** Above what the sender has proven, the head is `not published yet`. */
function recordHead(
  transaction: Transaction,
  key: SeriesKey,
  ranges: readonly AnnouncedRange[],
  { position, asOf }: Pick<AnnouncedPage, "position" | "asOf">,
): void {
  const { to } = position.gap;
  const head = rangesOf(ranges, "open").findLast((range) => range.from < to && range.to >= to);
  const publishedTo = head?.from ?? to;
  recordHeadPage(transaction, key, { publishedTo, askedAt: asOf, askedTo: to, quietMargin: 0 });
}
