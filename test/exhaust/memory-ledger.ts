import type { Micros } from "../../src/model/time.ts";
import type { TimeRange } from "../../src/model/time-range.ts";
import type { SettledRange } from "../../src/rule/answer.ts";
import { assertValidLedger, changeRanges, type LedgerChange } from "../../src/rule/apply.ts";

export type Ledger = readonly SettledRange[];

export function isIn({ from, to }: TimeRange, ts: Micros): boolean {
  return from <= ts && ts < to;
}

/** What a change of the range may join or cut. */
export function touchedBy(ledger: Ledger, { from, to }: TimeRange): Ledger {
  return ledger.filter((each) => each.from <= to && each.to >= from);
}

/** As the warehouse makes a change: it replaces the ranges that it touches. */
export function changeLedger(ledger: Ledger, change: Exclude<LedgerChange, { kind: "withdraw" }>): Ledger {
  const touched = touchedBy(ledger, change.range);
  const others = ledger.filter((each) => !touched.includes(each));
  const after = [...others, ...changeRanges(touched, change)].sort((a, b) => a.from - b.from);
  assertValidLedger(after);
  return after;
}
