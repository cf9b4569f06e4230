import type { Body } from "../model/body.ts";
import { decodeBody } from "../model/body.ts";
import { MICROS_PER_DAY, type Micros, parseInstant } from "../model/instant.ts";
import type { DailyBar, IndexTick } from "../model/records.ts";
import type { Series } from "../model/series.ts";
import { includes, type TimeRange } from "../model/time-range.ts";
import { type LedgerLine, retract, settle } from "../warehouse/ledger.ts";
import { countUnknownFields, keepRejects } from "../warehouse/oddities.ts";
import type { Transaction } from "../warehouse/transaction.ts";
import type { Warehouse } from "../warehouse/warehouse.ts";
import { withdrawMissing } from "../warehouse/withdraw.ts";
import { type Written, writeRecords } from "../warehouse/write-rows.ts";
import { type DecodedPage, decodePage } from "./decode-page.ts";
import { type Contradiction, type PageEvidence, prove, type WalkPosition } from "./proven-range.ts";

/** A page of a backward walk, as it was asked for. */
export interface WalkPage {
  readonly series: Series;
  readonly position: WalkPosition;
  /** Whether an answer without a cursor may be believed to be the end of the series. */
  readonly mayEnd: boolean;
  /** The request without secrets, for `rejects`. */
  readonly request: string;
}

/** What was committed, and what the walk needs to go on. */
export interface WalkPageCommit {
  /** Elements of the page, readable or not. */
  readonly elements: number;
  readonly written: Written;
  readonly withdrawn: number;
  readonly rejected: number;
  readonly foreign: number;
  readonly nextId: string | undefined;
  /** Of the asked series' believable records. */
  readonly oldest: Micros | undefined;
  readonly newest: Micros | undefined;
  /** What was settled by this page. */
  readonly proven: TimeRange | undefined;
  readonly upper: Micros;
  readonly complete: boolean;
  /** Why the page settled nothing, and the rest of its walk cannot either: the hole is to be walked anew. */
  readonly alarm: Alarm | undefined;
}

export type Alarm = Contradiction["contradiction"] | "mass_withdrawal";

/** Bitcoin's first block: nothing was traded before. An older or future moment is no evidence of anything. */
const EARLIEST: Micros = parseInstant("2009-01-03T00:00:00Z") ?? 0;

/**
 * One page, one transaction: its records, what they replace and withdraw, its rejects, and the range that it proves are
 * on disk together or not at all.
 */
export function commitWalkPage(
  warehouse: Warehouse,
  page: WalkPage,
  body: Body,
  now: Micros,
): WalkPageCommit {
  const decoded = decodePage(page.series.stream, decodeBody(body));
  const evidence = weigh(page, decoded, now);
  const proof = prove(page.position, evidence);
  return warehouse.transaction((transaction) => {
    const { stream, indexType, indexId } = page.series;
    const line = { stream, series: transaction.dictionary.series(indexType, indexId) };
    transaction.carry(line.stream, line.series);
    const written = write(transaction, page.series, decoded);
    keepRejects(transaction, stream, decoded.rejects, page.request);
    countUnknownFields(transaction, stream, decoded.unknownFields);
    const facts = {
      elements: decoded.rawCount,
      written,
      withdrawn: 0,
      rejected: decoded.rejects.length,
      foreign: evidence.foreign,
      nextId: decoded.nextId,
      oldest: least(evidence.moments),
      newest: greatest(evidence.moments),
      proven: undefined,
      upper: page.position.upper,
      complete: false,
    };
    if ("contradiction" in proof) {
      if (proof.contradiction === "newer_than_proven") retract(transaction, line, proof.retract);
      return { ...facts, alarm: proof.contradiction };
    }
    if (proof.proven === undefined) return { ...facts, alarm: undefined };
    const standing = standingMoments(page.position, evidence.moments);
    const { withdrawn, refused } = withdrawMissing(transaction, {
      ...line,
      range: proof.proven,
      present: standing,
    });
    if (refused > 0) return { ...facts, alarm: "mass_withdrawal" };
    settleProven(transaction, line, proof.proven, standing, evidence.ends);
    return {
      ...facts,
      withdrawn,
      proven: proof.proven,
      upper: proof.upper,
      complete: proof.complete,
      alarm: undefined,
    };
  });
}

interface Evidence extends PageEvidence {
  readonly moments: readonly Micros[];
}

function weigh(page: WalkPage, decoded: DecodedPage<IndexTick | DailyBar>, now: Micros): Evidence {
  const { indexType, indexId } = page.series;
  const moments: Micros[] = [];
  let foreign = 0;
  for (const record of decoded.records) {
    if (record.indexId !== indexId || record.indexType !== indexType) foreign++;
    else {
      const moment = "ts" in record ? record.ts : record.start;
      if (moment >= EARLIEST && moment < now + MICROS_PER_DAY) moments.push(moment);
    }
  }
  return { moments, foreign, ends: page.mayEnd && decoded.nextId === undefined };
}

function write(
  transaction: Transaction,
  { stream }: Series,
  { records }: DecodedPage<IndexTick | DailyBar>,
): Written {
  return stream === "ohlcv"
    ? writeRecords(transaction, stream, records as DailyBar[], "rest")
    : writeRecords(transaction, stream, records as IndexTick[], "rest");
}

/** Moments of records that stand rightly in what the page proves: its own, and the previous page's oldest. */
function standingMoments({ hole, upper }: WalkPosition, moments: readonly Micros[]): readonly Micros[] {
  return upper < hole.to ? [...moments, upper - 1] : moments;
}

/** What the service has no records for is `empty`: a whole range, or what lies below the oldest record of all. */
function settleProven(
  transaction: Transaction,
  line: LedgerLine,
  proven: TimeRange,
  standing: readonly Micros[],
  ends: boolean,
): void {
  const oldest = least(standing.filter((moment) => includes([proven], moment))) ?? proven.to;
  const rowsFrom = ends || oldest === proven.to ? oldest : proven.from;
  if (proven.from < rowsFrom)
    settle(transaction, line, { from: proven.from, to: rowsFrom }, "empty", "no records");
  if (rowsFrom < proven.to) settle(transaction, line, { from: rowsFrom, to: proven.to }, "rows");
}

function least(moments: readonly Micros[]): Micros | undefined {
  return moments.length === 0 ? undefined : moments.reduce((a, b) => Math.min(a, b));
}

function greatest(moments: readonly Micros[]): Micros | undefined {
  return moments.length === 0 ? undefined : moments.reduce((a, b) => Math.max(a, b));
}
