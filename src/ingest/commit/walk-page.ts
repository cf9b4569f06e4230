import type { DailyBar, IndexTick } from "../../model/records.ts";
import { type HistoryStream, type Series, streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import {
  hasRows,
  type LedgerLine,
  NOTHING_OLDER,
  refuteEnds,
  retract,
  settle,
} from "../../warehouse/coverage/ledger.ts";
import { withdrawMissing } from "../../warehouse/rows/delete-missing.ts";
import { countUnknownFields, keepRejects } from "../../warehouse/rows/rejects.ts";
import { isContested, newestLiveRow, storedCount } from "../../warehouse/rows/row-queries.ts";
import { type Written, writeRecords } from "../../warehouse/rows/row-writer.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { Warehouse } from "../../warehouse/writer.ts";
import type { HeldPages } from "../decode/pending-pages.ts";
import { type Contradiction, prove, type WalkPosition } from "./proven-range.ts";

/** A page of a backward walk that was read before, and what its walk knows about it. */
export interface WalkPage {
  readonly held: number;
  readonly series: Series;
  readonly position: WalkPosition;
  /** The service has nothing older than this page. */
  readonly ends: boolean;
  /** From here on the service still has all that it ever served; left out: from ever. */
  readonly servedFrom?: Micros;
  /** How long the service may still add records to what is young, in microseconds: no page speaks for that. */
  readonly settleDelay: Micros;
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
  /** The page showed that the service had been wrong to call a range empty, which is open again. */
  readonly reopened: boolean;
  /** Why the page settled nothing, and the rest of its walk cannot either: the hole is to be walked anew. */
  readonly alarm: Alarm | undefined;
}

export type Alarm =
  | Contradiction["contradiction"]
  | "false_end"
  | "mass_withdrawal"
  | "mass_rejection"
  | "older_than_stored";

/** A page of which more than this share cannot be read says that the service has changed, not what it has. */
const READABLE_SHARE = 0.5;
/** How far REST may lag behind the websocket before a tick that it lacks is taken for one that never was. */
const LAG_BORNE = 3600 * MICROS_PER_SECOND;
/** The service's clock is known to about a second, and `Date` counts whole ones. */
const DATE_SLACK = 5 * MICROS_PER_SECOND;

/**
 * One page, one transaction: its records, what they replace and withdraw, its rejects, and the range that it proves are
 * on disk together or not at all.
 */
export function commitWalkPage(
  warehouse: Warehouse,
  { pages, asked, now }: { readonly pages: HeldPages; readonly asked: AskedPages; readonly now: Micros },
  page: WalkPage,
): WalkPageCommit {
  const { stream, indexType, indexId } = page.series;
  const decoded = pages.get(stream, page.held);
  const { moments, present, foreign, askedAt } = decoded;
  const proof = prove(page.position, { moments, foreign, ends: page.ends });
  const proves = "proven" in proof ? proof.proven : undefined;
  let series: number | undefined;
  const commit = warehouse.transaction((transaction): WalkPageCommit => {
    series = transaction.dictionary.series(indexType, indexId);
    const line = { stream, series };
    // What a cache has kept, or another page has overtaken, may be older than what is stored: it only fills in, like a
    // live tick.
    const isKept =
      decoded.isKept || (proves !== undefined && asked.isOvertaken(stream, series, proves, askedAt));
    const source = isKept ? "live" : "rest";
    const compared = page.compares ? proves : undefined;
    const before = compared ? storedCount(transaction, line, compared) : 0;
    const written =
      // A page has records of its own stream alone.
      writeRecords(transaction, stream, decoded.records as (DailyBar & IndexTick)[], source);
    transaction.carry(line.stream, line.series);
    keepRejects(transaction, stream, decoded.rejects, page.request);
    countUnknownFields(transaction, stream, decoded.unknownFields);
    const missing = compared ? storedCount(transaction, line, compared) - before : 0;
    const facts = { written, withdrawn: 0, rejected: decoded.rejects.length, missing, foreign };
    const nothing = { ...facts, proven: undefined, complete: false, reopened: false };
    if ("contradiction" in proof) {
      if (proof.contradiction === "newer_than_proven") retract(transaction, line, proof.retract);
      return { ...nothing, alarm: proof.contradiction };
    }
    if (decoded.rejects.length > decoded.rawCount * READABLE_SHARE)
      return { ...nothing, alarm: "mass_rejection" };
    const oldest = moments.at(-1);
    const { from } = page.position.hole;
    const older = {
      from: page.servedFrom ?? Number.MIN_SAFE_INTEGER,
      to: Math.min(from, oldest ?? from),
    };
    if (page.ends && !isKept && hasRows(transaction, line, older)) return { ...nothing, alarm: "false_end" };
    const reopened = oldest !== undefined && refuteEnds(transaction, line, oldest);
    const spoken = asFarAsItSpeaks(proof.proven, { asOf: decoded.asOf, isKept }, page);
    const proven = belowUnconfirmed(transaction, line, spoken, {
      ...page.position,
      newest: moments[0],
      now: decoded.asOf ?? now,
    });
    if (proven === undefined) return { ...nothing, reopened, alarm: undefined };
    const standing = standingMoments(transaction, line, page.position, present);
    if (isKept) {
      // The page's oldest row as well: the next page would settle it.
      const from = Math.min(proven.from, Math.max(page.position.hole.from, oldest ?? proven.from));
      const read = { from, to: proven.to };
      if (isContested(transaction, line, read, decoded.records as (DailyBar & IndexTick)[], standing))
        return { ...nothing, reopened, alarm: "older_than_stored" };
      if (!standing.some((moment) => proven.from <= moment && moment < proven.to))
        return { ...nothing, reopened, alarm: undefined };
      settle(transaction, line, proven, "rows");
    } else {
      const { withdrawn, refused } = withdrawMissing(transaction, {
        ...line,
        range: proven,
        present: standing,
      });
      if (refused > 0) return { ...nothing, reopened, alarm: "mass_withdrawal" };
      facts.withdrawn = withdrawn;
      settleProven(transaction, line, proven, standing, page.ends);
    }
    const complete = proof.complete && proven.to === proof.proven?.to;
    return { ...facts, proven, complete, reopened, alarm: undefined };
  });
  // Not before it is on disk: a commit that failed is made again.
  if (series !== undefined && commit.proven) asked.note(stream, series, commit.proven, askedAt);
  return commit;
}

/**
 * A page says nothing about what came after it was made, whoever asked for it by whatever clock: one that a cache has
 * kept to the second, a fresh one as exactly as its `Date` tells. Of a day that was not over it says nothing final.
 */
function asFarAsItSpeaks(
  proven: TimeRange | undefined,
  { asOf, isKept }: { readonly asOf: Micros | undefined; readonly isKept: boolean },
  { series, settleDelay }: Pick<WalkPage, "series" | "settleDelay">,
): TimeRange | undefined {
  if (proven === undefined || asOf === undefined) return proven;
  const { step } = streamTable[series.stream];
  const spoken = Math.floor((asOf + (isKept ? 0 : DATE_SLACK) - settleDelay) / step) * step;
  const to = Math.min(proven.to, spoken);
  return proven.from < to ? { from: proven.from, to } : undefined;
}

/**
 * The websocket may be ahead of REST: ticks that are newer than the newest one on a walk's first page are not there yet,
 * rather than withdrawn. The page then speaks up to its own newest record only.
 */
function belowUnconfirmed(
  transaction: Transaction,
  line: LedgerLine,
  proven: TimeRange | undefined,
  { hole, upper, newest, now }: WalkPosition & { newest: Micros | undefined; now: Micros },
): TimeRange | undefined {
  if (proven === undefined || upper < hole.to || streamTable[line.stream].event === null) return proven;
  const from = Math.max(newest ?? proven.from, now - LAG_BORNE);
  if (newestLiveRow(transaction, line.series, { from: from + 1, to: proven.to }) === undefined) return proven;
  const to = newest === undefined ? proven.from : newest + 1;
  return proven.from < to ? { from: proven.from, to } : undefined;
}

/**
 * Moments of records that stand rightly in what the page proves: its own, and the previous page's oldest, just below
 * `upper`. A hole that ends there looks like one that no page has touched yet, so what is stored decides.
 */
function standingMoments(
  transaction: Transaction,
  line: { stream: HistoryStream; series: number },
  { hole, upper }: WalkPosition,
  moments: readonly Micros[],
): readonly Micros[] {
  const isCarried = upper < hole.to || storedCount(transaction, line, { from: upper - 1, to: upper }) > 0;
  return isCarried ? [upper - 1, ...moments] : moments;
}

/** What the service has no records for is `empty`: a whole range, or what lies below the oldest record of all. */
function settleProven(
  transaction: Transaction,
  line: LedgerLine,
  proven: TimeRange,
  standing: readonly Micros[],
  ends: boolean,
): void {
  let oldest = proven.to;
  for (const moment of standing) if (moment >= proven.from && moment < oldest) oldest = moment;
  const rowsFrom = ends || oldest === proven.to ? oldest : proven.from;
  const why = ends ? NOTHING_OLDER : "no records";
  if (proven.from < rowsFrom) settle(transaction, line, { from: proven.from, to: rowsFrom }, "empty", why);
  if (rowsFrom < proven.to) settle(transaction, line, { from: rowsFrom, to: proven.to }, "rows");
}

interface Asked extends TimeRange {
  /** On the boot clock, milliseconds. */
  readonly askedAt: number;
}

/** No answer is longer under way than this before it is committed. */
const LONGEST_WAY_MS = 600_000;
/** Of a line that is backfilled at full speed only so many are remembered: pages that are seconds under way, not minutes. */
const MOST_OF_A_LINE = 128;

/**
 * Which pages were committed lately, and when they were asked for. The head, the filler and the audit may have asked about
 * the same range, and their answers come in any order: the later asked is the truer.
 */
export class AskedPages {
  readonly #lines = new Map<string, Asked[]>();

  /** Whether a page about this range was committed that was asked for later than this one. */
  isOvertaken(stream: HistoryStream, series: number, { from, to }: TimeRange, askedAt: number): boolean {
    const asked = this.#lines.get(`${stream} ${series}`) ?? [];
    return asked.some((page) => page.askedAt > askedAt && page.from < to && from < page.to);
  }

  note(stream: HistoryStream, series: number, { from, to }: TimeRange, askedAt: number): void {
    const key = `${stream} ${series}`;
    let asked = this.#lines.get(key);
    if (!asked) {
      asked = [];
      this.#lines.set(key, asked);
    }
    asked.push({ from, to, askedAt });
    // Not at every page: moving them up costs more than it frees.
    const tooMany = asked.length > 2 * MOST_OF_A_LINE ? asked.length - MOST_OF_A_LINE : 0;
    const firstRecent = asked.findIndex((page) => page.askedAt > askedAt - LONGEST_WAY_MS);
    if (tooMany > 0 || firstRecent > 0) asked.splice(0, Math.max(tooMany, firstRecent));
  }
}
