import type { Micros } from "../../src/model/time.ts";
import { normalise, subtract, type TimeRange } from "../../src/model/time-range.ts";
import type { PendingClaim, Publication, StoredRow, StoredSeries } from "../../src/rule/answer.ts";
import { type LedgerChange, reopenAt } from "../../src/rule/apply.ts";
import { endsAbove } from "../support/rule/stored-series.ts";
import { changeLedger, isIn, type Ledger, touchedBy } from "./memory-ledger.ts";

export type Source = "rest" | "live";

interface MemoryRow {
  readonly ts: Micros;
  readonly source: Source;
}

/** What a warehouse stores of one series, in memory: a state of the check. Its lists are replaced, never changed. */
export class MemorySeries implements StoredSeries {
  /** Ascending. */
  rows: readonly MemoryRow[];
  /** The names of all records that were stored, as rows or as second records of a moment. Sorted. */
  kept: readonly string[];
  ledger: Ledger;
  claims: readonly PendingClaim[];
  publication: Publication | undefined;
  servesRunningDay: boolean;
  /** What was wrong with a report of the rule. */
  complaint: string | undefined;
  readonly targetStart = 0;
  /** REST has shown other series up to any time. */
  readonly isOtherPublished: boolean;
  readonly hasLiveFeed: boolean;

  constructor(from?: MemorySeries, isOtherPublished = true, hasLiveFeed = true) {
    this.isOtherPublished = from?.isOtherPublished ?? isOtherPublished;
    this.hasLiveFeed = from?.hasLiveFeed ?? hasLiveFeed;
    this.rows = from?.rows ?? [];
    this.kept = from?.kept ?? [];
    this.ledger = from?.ledger ?? [];
    this.claims = from?.claims ?? [];
    this.publication = from?.publication;
    this.servesRunningDay = from?.servesRunningDay ?? false;
    this.complaint = from?.complaint;
  }

  /** Equal states have equal keys. */
  get key(): string {
    const { publishedTo, askedAt, askedTo, quietMargin } = this.publication ?? {};
    return `${this.settledKey}@${publishedTo} ${askedAt} ${askedTo} ${quietMargin}`;
  }

  /** What a further question to an honest service does not change. */
  get settledKey(): string {
    let key = `${this.kept}${this.servesRunningDay ? "+" : ""}`;
    for (const { ts, source } of this.rows) key += ` ${ts}${source[0]}`;
    for (const { from, to, proof, reason } of this.ledger) key += `|${from} ${to} ${proof} ${reason}`;
    for (const { kind, range, subject, answers, firstAt, lastAt, acceptedAt } of this.claims)
      key += `#${kind} ${range.from} ${range.to} ${subject} ${answers} ${firstAt} ${lastAt} ${acceptedAt}`;
    return `${key}${this.complaint ?? ""}`;
  }

  store(timestamps: readonly Micros[], versions: readonly string[], source: Source): void {
    if (versions.some((version) => !this.kept.includes(version)))
      this.kept = [...new Set([...this.kept, ...versions])].sort();
    const isReplaced = (row: MemoryRow) => source === "rest" && timestamps.includes(row.ts);
    const stays = this.rows.filter((row) => !isReplaced(row));
    const added = new Set(timestamps.filter((ts) => !stays.some((row) => row.ts === ts)));
    this.rows = [...stays, ...[...added].map((ts) => ({ ts, source }))].sort((a, b) => a.ts - b.ts);
    if (source === "live")
      for (const ts of added) for (const change of reopenAt(ts, this.ledger)) this.change(change);
  }

  change(change: LedgerChange): void {
    if (change.kind === "withdraw") {
      this.rows = this.rows.filter(({ ts }) => !change.timestamps.includes(ts));
      return;
    }
    this.ledger = changeLedger(this.ledger, change);
  }

  settledRanges(range: TimeRange): Ledger {
    return touchedBy(this.ledger, range);
  }

  rowsBeside(range: TimeRange, timestamps: readonly Micros[]): readonly StoredRow[] {
    return this.rows
      .filter(({ ts }) => isIn(range, ts) && !timestamps.includes(ts))
      .map((row) => ({ ts: row.ts, isPreview: !this.#isServed(row) }));
  }

  hasRows(range: TimeRange): boolean {
    return this.rows.some(({ ts }) => isIn(range, ts));
  }

  newestRow(before: Micros): Micros | undefined {
    return this.rows.findLast(({ ts }) => ts < before)?.ts;
  }

  newestServed(range: TimeRange): Micros | undefined {
    return this.rows.findLast((row) => isIn(range, row.ts) && this.#isServed(row))?.ts;
  }

  newestLive(range: TimeRange): Micros | undefined {
    if (!this.hasLiveFeed) return undefined;
    return this.rows.findLast(({ ts, source }) => source === "live" && isIn(range, ts))?.ts;
  }

  endsAbove(ts: Micros): Ledger {
    return endsAbove(this.ledger, ts);
  }

  hasOtherPublished(): boolean {
    return this.isOtherPublished;
  }

  /** What is neither covered nor lost. */
  openIn(range: TimeRange): readonly TimeRange[] {
    return subtract([range], normalise(this.ledger));
  }

  /** REST has served the row, or a page has covered it. */
  #isServed({ ts, source }: MemoryRow): boolean {
    return source === "rest" || this.ledger.some((range) => range.proof !== "lost" && isIn(range, ts));
  }
}
