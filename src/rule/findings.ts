import type { Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { SettledRange } from "./answer.ts";
import type { LedgerChange } from "./apply.ts";
import { AGED_OUT_REASON, RETENTION_REASON } from "./claim.ts";

/*
 * What changes the ledger without a claim of an answer:
 *
 * | what was found                                             | what it changes                      |
 * |------------------------------------------------------------|--------------------------------------|
 * | a row in a range that is empty                             | the whole range is open              |
 * | a live tick in a range of rows                             | its moment is open                   |
 * | a record above an end, an index that exists after all,     | what was settled wrongly is open     |
 * | a late record, a walk out of order, a finding of an audit  |                                      |
 * | a range that left the service's window                     | lost, where it is not covered        |
 * | rows older than the retention                              | lost, even where it was covered      |
 */

export function reopen(ranges: readonly TimeRange[]): LedgerChange[] {
  return ranges.map(({ from, to }) => ({ kind: "retract", range: { from, to } }));
}

/** The empty ranges that have rows now. As a whole: an answer that hid one record may have hidden others. */
export function disprovedRanges(
  touched: readonly SettledRange[],
  rows: readonly Micros[],
): readonly SettledRange[] {
  const hasRow = ({ from, to }: TimeRange) => rows.some((ts) => from <= ts && ts < to);
  return touched.filter((settled) => settled.proof === "empty" && hasRow(settled));
}

/** A live tick was stored, of which the page that covered its moment had no record: REST is asked again. */
export function reopenAt(ts: Micros, touched: readonly SettledRange[]): LedgerChange[] {
  const settled = touched.find(({ from, to }) => from <= ts && ts < to);
  if (settled === undefined || settled.proof === "lost") return [];
  return reopen([settled.proof === "empty" ? settled : { from: ts, to: ts + 1 }]);
}

export function loseAgedOut(ranges: readonly TimeRange[]): LedgerChange[] {
  return ranges.map((range) => ({ kind: "settle", range, proof: "lost", reason: AGED_OUT_REASON }));
}

export function loseExpired(range: TimeRange): LedgerChange[] {
  if (range.from >= range.to) return [];
  return [{ kind: "settle", range, proof: "lost", reason: RETENTION_REASON, isDeleted: true }];
}
