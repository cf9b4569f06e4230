import type { Micros } from "../model/instant.ts";
import type { DailyBar, IndexTick } from "../model/records.ts";
import type { Series } from "../model/series.ts";
import { includes, type TimeRange } from "../model/time-range.ts";
import { type LedgerLine, retract, settle } from "../warehouse/ledger.ts";
import { countUnknownFields, keepRejects } from "../warehouse/oddities.ts";
import { storedCount } from "../warehouse/stored-count.ts";
import type { Transaction } from "../warehouse/transaction.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";
import { withdrawMissing } from "../warehouse/withdraw.ts";
import { type Written, writeRecords } from "../warehouse/write-rows.ts";
import { believable, type HeldPages } from "./held-pages.ts";
import { type Contradiction, prove, type WalkPosition } from "./proven-range.ts";

/** A page of a backward walk that was read before, and what its walk knows about it. */
export interface WalkPage {
  readonly held: number;
  readonly series: Series;
  readonly position: WalkPosition;
  /** The service has nothing older than this page. */
  readonly ends: boolean;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
  /** Also count what the proven range lacked: costs a look at what is stored. */
  readonly compares?: boolean;
}

export interface WalkPageCommit {
  readonly written: Written;
  /** Stored rows that the service no longer has. */
  readonly withdrawn: number;
  readonly rejected: number;
  /** Of the proven range, where the page `compares`: records that were not stored. */
  readonly missing: number;
  /** Records of other series, stored under their own name. */
  readonly foreign: number;
  /** What this page settled. */
  readonly proven: TimeRange | undefined;
  /** The walk has proven its hole down to the start. */
  readonly complete: boolean;
  /** Why the page settled nothing, and the rest of its walk cannot either: the hole is to be walked anew. */
  readonly alarm: Alarm | undefined;
}

export type Alarm = Contradiction["contradiction"] | "mass_withdrawal";

/**
 * One page, one transaction: its records, what they replace and withdraw, its rejects, and the range that it proves are
 * on disk together or not at all.
 */
export function commitWalkPage(
  warehouse: Warehouse,
  pages: HeldPages,
  page: WalkPage,
  now: Micros,
): WalkPageCommit {
  const { stream, indexType, indexId } = page.series;
  const decoded = pages.get(stream, page.held);
  const { moments, foreign } = believable(decoded, page.series, now);
  const proof = prove(page.position, { moments, foreign, ends: page.ends });
  return warehouse.transaction((transaction) => {
    const line = { stream, series: transaction.dictionary.series(indexType, indexId) };
    transaction.carry(line.stream, line.series);
    const compared = page.compares && "proven" in proof ? proof.proven : undefined;
    const before = compared ? storedCount(transaction, line, compared) : 0;
    const written =
      stream === "ohlcv"
        ? writeRecords(transaction, stream, decoded.records as DailyBar[], "rest")
        : writeRecords(transaction, stream, decoded.records as IndexTick[], "rest");
    keepRejects(transaction, stream, decoded.rejects, page.request);
    countUnknownFields(transaction, stream, decoded.unknownFields);
    const missing = compared ? storedCount(transaction, line, compared) - before : 0;
    const facts = { written, withdrawn: 0, rejected: decoded.rejects.length, missing, foreign };
    const nothing = { ...facts, proven: undefined, complete: false };
    if ("contradiction" in proof) {
      if (proof.contradiction === "newer_than_proven") retract(transaction, line, proof.retract);
      return { ...nothing, alarm: proof.contradiction };
    }
    const { proven, complete } = proof;
    if (proven === undefined) return { ...nothing, alarm: undefined };
    const standing = standingMoments(page.position, moments);
    const { withdrawn, refused } = withdrawMissing(transaction, {
      ...line,
      range: proven,
      present: standing,
    });
    if (refused > 0) return { ...nothing, alarm: "mass_withdrawal" };
    settleProven(transaction, line, proven, standing, page.ends);
    return { ...facts, withdrawn, proven, complete, alarm: undefined };
  });
}

/** Moments of records that stand rightly in what the page proves: its own, and the previous page's oldest. */
function standingMoments({ hole, upper }: WalkPosition, moments: readonly Micros[]): readonly Micros[] {
  return upper < hole.to ? [upper - 1, ...moments] : moments;
}

/** What the service has no records for is `empty`: a whole range, or what lies below the oldest record of all. */
function settleProven(
  transaction: Transaction,
  line: LedgerLine,
  proven: TimeRange,
  standing: readonly Micros[],
  ends: boolean,
): void {
  const inside = standing.filter((moment) => includes([proven], moment));
  const oldest = inside.reduce((a, b) => Math.min(a, b), proven.to);
  const rowsFrom = ends || oldest === proven.to ? oldest : proven.from;
  if (proven.from < rowsFrom)
    settle(transaction, line, { from: proven.from, to: rowsFrom }, "empty", "no records");
  if (rowsFrom < proven.to) settle(transaction, line, { from: rowsFrom, to: proven.to }, "rows");
}
