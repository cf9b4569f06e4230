import type { AnySQLiteColumn } from "drizzle-orm/sqlite-core";
import { hasHistory, type RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import {
  assertNormalised,
  formatRange,
  intersect,
  normalise,
  subtract,
  type TimeRange,
} from "../../model/time-range.ts";
import type { LedgerProof, SettledRangeRow } from "../schema/coverage.ts";
import type { Connection } from "../sqlite/connection.ts";
import { and, eq, sql } from "../sqlite/drizzle.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { recordLedgerChange } from "./changed-ranges.ts";

/** What one part of the ledger is about: a stream, and the dictionary key of a series or of a subscription. */
export type LedgerKey = Readonly<Pick<SettledRangeRow, "stream" | "series">>;

/** The key as text, for maps. */
export function ledgerKeyText({ stream, series }: LedgerKey): string {
  return `${stream} ${series}`;
}

/** Selects the rows of a key in a table of the schema; of the key that a prepared query is run with by default. */
export function isOfKey(
  table: Record<keyof LedgerKey, AnySQLiteColumn>,
  { stream, series }: Record<keyof LedgerKey, unknown> = keyPlaceholders,
) {
  return and(eq(table.stream, stream), eq(table.series, series));
}

const keyPlaceholders = { stream: sql.placeholder("stream"), series: sql.placeholder("series") };

export type SettledRange = Readonly<Omit<SettledRangeRow, "stream" | "series">>;

const rangeColumns = 'from_ts AS "from", to_ts AS "to", proof, reason';
const matchesKey = "stream = ? AND series = ?";

/** The settled ranges of a key, ascending. Throws if the ledger is inconsistent. */
export function readSettledRanges(
  connection: Pick<Connection, "statement">,
  { stream, series }: LedgerKey,
): SettledRange[] {
  const sql = `SELECT ${rangeColumns} FROM settled_ranges WHERE ${matchesKey} ORDER BY from_ts`;
  const ranges = connection.statement<SettledRange>(sql).all([stream, series]);
  assertValidLedger(ranges);
  return ranges;
}

/** How the range that contains the timestamp is settled; undefined: it is open. */
export function findProofAt(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  ts: Micros,
): LedgerProof | undefined {
  const sql = `SELECT CASE WHEN to_ts > ? THEN proof END FROM settled_ranges
    WHERE ${matchesKey} AND from_ts <= ? ORDER BY from_ts DESC LIMIT 1`;
  return transaction.statement<LedgerProof | null>(sql).pluck().get([ts, stream, series, ts]) ?? undefined;
}

/**
 * Settles a range, in the same transaction as its rows. `rows` and `empty` replace what was settled before; `lost` only
 * fills what is not covered. Touching ranges with the same proof and reason are merged.
 */
export function settle(
  transaction: Transaction,
  key: LedgerKey,
  range: TimeRange,
  proof: LedgerProof,
  reason: string | null = null,
): void {
  if (!(range.from < range.to)) throw new Error(`cannot settle a range of no length: ${formatRange(range)}`);
  if (proof === "rows" && !transaction.hasWritten(key.stream, key.series)) {
    throw new Error(`cannot settle ${key.stream} as rows: this transaction wrote no rows of the series`);
  }
  if (proof === "rows" && reason !== null)
    throw new Error("cannot settle rows with a reason: only empty and lost have one");
  if (proof === "lost" && reason === null) throw new Error("cannot settle a range as lost without a reason");
  if (proof === "empty" && hasRowsInRange(transaction, key, range))
    throw new Error(`cannot settle ${key.stream} as empty: the range has rows: ${formatRange(range)}`);
  // An answer without rows does not disprove rows that are elsewhere.
  const stands = (settled: SettledRange) => (proof === "lost" ? settled.proof !== "lost" : isMoved(settled));
  const parts =
    proof === "rows"
      ? [range]
      : subtract([range], normalise(findTouching(transaction, key, range).filter(stands)));
  for (const part of parts) writeRange(transaction, key, part, proof, reason);
}

/** Takes back what was settled: the range becomes a gap again. */
export function retract(transaction: Transaction, key: LedgerKey, range: TimeRange): void {
  if (!(range.from < range.to)) return;
  const touched = findTouching(transaction, key, range);
  const remaining = touched.flatMap((settled) => cutOut(settled, range));
  replaceRanges(transaction, key, touched, remaining);
  recordTakenBack(transaction, key, touched, range);
}

/**
 * Rows were stored between `first` and `last`. Retracts every range proven empty in which `hasRow` finds one of them, and
 * returns whether there was one. The whole range: an answer that hid one record may have hidden others.
 */
export function retractDisprovedEmpty(
  transaction: Transaction,
  key: LedgerKey,
  { first, last }: { readonly first: Micros; readonly last: Micros },
  hasRow: (range: TimeRange) => boolean,
): boolean {
  const disproved = transaction
    .statement<TimeRange>(
      `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE ${matchesKey} AND from_ts <= ? AND from_ts >=
        coalesce((SELECT max(from_ts) FROM settled_ranges WHERE ${matchesKey} AND from_ts <= ?), ?)
        AND proof = 'empty' AND to_ts > ?`,
    )
    .all([key.stream, key.series, last, key.stream, key.series, first, first, first])
    .filter(hasRow);
  for (const range of disproved) retract(transaction, key, range);
  if (disproved.length > 0) transaction.markReopened();
  return disproved.length > 0;
}

/** Begins the reason of a `rows` range whose rows only another store has; the name of that store follows. */
export const MOVED_REASON = "moved to ";

/** Whether the rows of a covered range are not here any more, but where its reason says. */
export function isMoved({ proof, reason }: Pick<SettledRange, "proof" | "reason">): boolean {
  return proof === "rows" && reason !== null;
}

/** Records that the rows of a covered range, which the caller deletes in this transaction, are in another store. */
export function settleAsMoved(
  transaction: Transaction,
  key: LedgerKey,
  range: TimeRange,
  place: string,
): void {
  writeRange(transaction, key, range, "rows", MOVED_REASON + place);
}

/** Settles as lost a range whose rows are deleted on purpose (retention); this also replaces coverage. */
export function settleAsLost(
  transaction: Transaction,
  key: LedgerKey,
  range: TimeRange,
  reason: string,
): void {
  if (!(range.from < range.to)) return;
  const touched = findTouching(transaction, key, range).filter(({ proof }) => proof !== "lost");
  writeRange(transaction, key, range, "lost", reason);
  recordTakenBack(transaction, key, touched, range);
}

function recordTakenBack(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  before: readonly SettledRange[],
  range: TimeRange,
): void {
  for (const part of intersect(normalise(before), [range]))
    recordLedgerChange(transaction, stream as RowStream, series, part);
}

function writeRange(
  transaction: Transaction,
  key: LedgerKey,
  range: TimeRange,
  proof: LedgerProof,
  reason: string | null,
): void {
  const touched = findTouching(transaction, key, range);
  const same = touched.filter((settled) => settled.proof === proof && settled.reason === reason);
  if (same.length === 1 && contains(same[0], range)) return;
  const others = touched.filter((settled) => !same.includes(settled)).flatMap((s) => cutOut(s, range));
  const merged = normalise([range, ...same]).map(({ from, to }) => ({ from, to, proof, reason }));
  replaceRanges(transaction, key, touched, [...others, ...merged]);
  if (hasHistory(key.stream)) transaction.highWaterMarks.raise(key.stream, key.series, range.to - 1);
}

function contains(outer: TimeRange | undefined, inner: TimeRange): boolean {
  return outer !== undefined && outer.from <= inner.from && outer.to >= inner.to;
}

/** The parts of a settled range that lie outside `range`. */
function cutOut(settled: SettledRange, range: TimeRange): SettledRange[] {
  return subtract([settled], [range]).map(({ from, to }) => ({ ...settled, from, to }));
}

/** The settled ranges that overlap or touch `range`. Two index seeks, however many ranges the key has. */
export function findTouching(transaction: Transaction, key: LedgerKey, range: TimeRange): SettledRange[] {
  const found = transaction
    .statement<SettledRange>(
      `SELECT ${rangeColumns} FROM settled_ranges WHERE ${matchesKey} AND from_ts <= ? AND from_ts >=
        coalesce((SELECT max(from_ts) FROM settled_ranges WHERE ${matchesKey} AND from_ts < ?), ?) ORDER BY from_ts`,
    )
    .all([key.stream, key.series, range.to, key.stream, key.series, range.from, range.from]);
  assertValidLedger(found);
  return found.filter(({ to }) => to >= range.from);
}

function replaceRanges(
  transaction: Transaction,
  key: LedgerKey,
  oldRanges: readonly SettledRange[],
  newRanges: readonly SettledRange[],
): void {
  assertValidLedger([...newRanges].sort((a, b) => a.from - b.from));
  const remove = transaction.statement(`DELETE FROM settled_ranges WHERE ${matchesKey} AND from_ts = ?`);
  const insert = transaction.statement(
    "INSERT INTO settled_ranges (stream, series, from_ts, to_ts, proof, reason) VALUES (?, ?, ?, ?, ?, ?)",
  );
  for (const { from } of oldRanges) remove.run([key.stream, key.series, from]);
  for (const { from, to, proof, reason } of newRanges)
    insert.run([key.stream, key.series, from, to, proof, reason]);
}

/** Throws unless the ranges are disjoint, ascending, and merged where proof and reason are equal. */
export function assertValidLedger(ranges: readonly SettledRange[]): void {
  let previous: SettledRange | undefined;
  for (const range of ranges) {
    const isSame = previous?.proof === range.proof && previous.reason === range.reason;
    if (previous && isSame) assertNormalised([previous, range]);
    else if (!(range.from < range.to) || (previous && previous.to > range.from)) {
      throw new Error(`the coverage ledger is inconsistent at ${formatRange(range)}`);
    }
    previous = range;
  }
}

/**
 * Reason of a range that is empty because the service reported no older records. One older row disproves the report.
 */
export const NOTHING_OLDER_REASON = "nothing older";

/** Whether the range has rows: then it must not be settled as empty, and a report of "nothing older" is wrong. */
export function hasRowsInRange(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  { from, to }: TimeRange,
): boolean {
  // The rows of a snapshot stream have other keys than its ledger.
  if (from >= to || !hasHistory(stream)) return false;
  const { table, keyColumn, timeColumn, storedTime }: RowTable<never> = rowTables[stream];
  const sql = `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ? LIMIT 1`;
  return transaction.statement(sql).get([series, storedTime(from), storedTime(to)]) !== undefined;
}

/** Reason of ranges below the end of the service's history that were open when that end moved up. */
export const NO_LONGER_SERVED_REASON = "no longer served";

/**
 * The service served a row with timestamp `rowTs`. Retracts every later range that was settled as "nothing older", and all
 * that is "no longer served" if a later range is. Returns whether there was one.
 */
export function retractNothingOlder(transaction: Transaction, key: LedgerKey, rowTs: Micros): boolean {
  const find = transaction.statement<TimeRange>(
    `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges
      WHERE stream = ? AND series = ? AND to_ts > ? AND reason = ?`,
  );
  const findLater = (ts: Micros, reason: string) => find.all([key.stream, key.series, ts, reason]);
  const disproved = findLater(rowTs, NOTHING_OLDER_REASON);
  if (findLater(rowTs, NO_LONGER_SERVED_REASON).length > 0)
    disproved.push(...findLater(Number.MIN_SAFE_INTEGER, NO_LONGER_SERVED_REASON));
  for (const range of disproved) retract(transaction, key, range);
  return disproved.length > 0;
}

/** Where the oldest target of the key begins; undefined: the settings never selected it. */
export function findTargetStart(transaction: Transaction, { stream, series }: LedgerKey): Micros | undefined {
  const sql = `SELECT min(from_ts) FROM wanted_ranges WHERE ${matchesKey}`;
  return transaction.value<Micros | null>(sql, [stream, series]) ?? undefined;
}

/**
 * The service confirmed that it has nothing older than `to`: settles the rest of the target from `floor` up to there as
 * empty. Ranges that are settled already, and ranges with rows, stay as they are.
 */
export function settleNothingOlder(
  transaction: Transaction,
  key: LedgerKey,
  { floor, to }: { readonly floor: Micros; readonly to: Micros },
): void {
  const rest = { from: Math.max(findTargetStart(transaction, key) ?? to, floor), to };
  for (const part of subtract([rest], normalise(findTouching(transaction, key, rest))))
    if (!hasRowsInRange(transaction, key, part))
      settle(transaction, key, part, "empty", NOTHING_OLDER_REASON);
}
