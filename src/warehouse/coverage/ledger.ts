import { type HistoryStream, hasHistory, type Stream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { assertNormal, describeRange, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

export type Proof = "rows" | "empty" | "lost";

/** One line of the ledger: a stream and the key of its series in the dictionary. */
export interface LedgerLine {
  readonly stream: Stream;
  readonly series: number;
}

export interface SettledRange extends TimeRange {
  readonly proof: Proof;
  readonly reason: string | null;
}

const columns = 'from_ts AS "from", to_ts AS "to", proof, reason';
const line = "stream = ? AND series = ?";

/** All that is settled of a line, ascending. Throws if the ledger contradicts itself. */
export function settledRanges(
  connection: Pick<Connection, "statement">,
  { stream, series }: LedgerLine,
): SettledRange[] {
  const sql = `SELECT ${columns} FROM settled_ranges WHERE ${line} ORDER BY from_ts`;
  const ranges = connection.statement(sql).all([stream, series]) as SettledRange[];
  assertLedger(ranges);
  return ranges;
}

/**
 * Enters what is proven, in the transaction that carries the rows. What `rows` and `empty` say replaces what was said
 * before; `lost` only fills what nobody has proven. Ranges that touch and say the same become one.
 */
export function settle(
  transaction: Transaction,
  at: LedgerLine,
  range: TimeRange,
  proof: Proof,
  reason: string | null = null,
): void {
  if (!(range.from < range.to)) throw new Error(`an empty range cannot be settled: ${describeRange(range)}`);
  if (proof === "rows" && !transaction.carries(at.stream, at.series)) {
    throw new Error(`the transaction carries no rows of ${at.stream} for this series: nothing to settle`);
  }
  if (proof === "rows" && reason !== null) throw new Error("rows need no reason");
  if (proof === "lost" && reason === null) throw new Error("what is lost is lost for a reason");
  if (proof === "empty") assertNoRows(transaction, at, range);
  if (proof === "lost") {
    const proven = touching(transaction, at, range).filter((settled) => settled.proof !== "lost");
    for (const part of subtract([range], normalise(proven))) enter(transaction, at, part, proof, reason);
  } else enter(transaction, at, range, proof, reason);
}

/** Takes back what was settled: the range is open again. */
export function retract(transaction: Transaction, at: LedgerLine, range: TimeRange): void {
  if (!(range.from < range.to)) return;
  const touched = touching(transaction, at, range);
  const left = touched.flatMap((settled) => cut(settled, range));
  replace(transaction, at, touched, left);
}

/** Enters the loss of rows that were there: what retention prunes. */
export function settleAsLost(
  transaction: Transaction,
  at: LedgerLine,
  range: TimeRange,
  reason: string,
): void {
  if (range.from < range.to) enter(transaction, at, range, "lost", reason);
}

function enter(
  transaction: Transaction,
  at: LedgerLine,
  range: TimeRange,
  proof: Proof,
  reason: string | null,
): void {
  const touched = touching(transaction, at, range);
  const alike = touched.filter((settled) => settled.proof === proof && settled.reason === reason);
  if (alike.length === 1 && contains(alike[0], range)) return;
  const others = touched.filter((settled) => !alike.includes(settled)).flatMap((s) => cut(s, range));
  const merged = normalise([range, ...alike]).map(({ from, to }) => ({ from, to, proof, reason }));
  replace(transaction, at, touched, [...others, ...merged]);
  if (hasHistory(at.stream)) transaction.frontier.raise(at.stream, at.series, range.to - 1);
}

function contains(outer: TimeRange | undefined, inner: TimeRange): boolean {
  return outer !== undefined && outer.from <= inner.from && outer.to >= inner.to;
}

/** What of a settled range lies outside `range`. */
function cut(settled: SettledRange, range: TimeRange): SettledRange[] {
  return subtract([settled], [range]).map(({ from, to }) => ({ ...settled, from, to }));
}

/** The settled ranges that overlap or touch `range`; found from its ends by index seek, however long the line. */
function touching(transaction: Transaction, at: LedgerLine, range: TimeRange): SettledRange[] {
  const found = transaction
    .statement(
      `SELECT ${columns} FROM settled_ranges WHERE ${line} AND from_ts <= ? AND from_ts >=
        coalesce((SELECT max(from_ts) FROM settled_ranges WHERE ${line} AND from_ts < ?), ?) ORDER BY from_ts`,
    )
    .all([at.stream, at.series, range.to, at.stream, at.series, range.from, range.from]) as SettledRange[];
  assertLedger(found);
  return found.filter(({ to }) => to >= range.from);
}

function replace(
  transaction: Transaction,
  at: LedgerLine,
  old: readonly SettledRange[],
  now: readonly SettledRange[],
): void {
  assertLedger([...now].sort((a, b) => a.from - b.from));
  const erase = transaction.statement(`DELETE FROM settled_ranges WHERE ${line} AND from_ts = ?`);
  const write = transaction.statement(
    "INSERT INTO settled_ranges (stream, series, from_ts, to_ts, proof, reason) VALUES (?, ?, ?, ?, ?, ?)",
  );
  for (const { from } of old) erase.run([at.stream, at.series, from]);
  for (const { from, to, proof, reason } of now) write.run([at.stream, at.series, from, to, proof, reason]);
}

/** Disjoint, ascending, and merged where proof and reason are the same. */
export function assertLedger(ranges: readonly SettledRange[]): void {
  let before: SettledRange | undefined;
  for (const range of ranges) {
    const alike = before?.proof === range.proof && before.reason === range.reason;
    if (before && alike) assertNormal([before, range]);
    else if (!(range.from < range.to) || (before && before.to > range.from)) {
      throw new Error(`the ledger contradicts itself at ${describeRange(range)}`);
    }
    before = range;
  }
}

/** Coverage without its rows must be impossible, and rows inside what is proven empty as well. */
function assertNoRows(transaction: Transaction, at: LedgerLine, range: TimeRange): void {
  if (!hasHistory(at.stream)) return;
  const { table, keyColumn, timeColumn, storedTime } = rowTables[at.stream];
  const sql = `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ? LIMIT 1`;
  if (transaction.statement(sql).get([at.series, storedTime(range.from), storedTime(range.to)])) {
    throw new Error(`rows of ${at.stream} stand in a range said to be empty: ${describeRange(range)}`);
  }
}

/** Why a range is empty in which the service says that it has nothing, nor anything older: one older row refutes it. */
export const NOTHING_OLDER = "nothing older";

/** Whether a row stands in the range: what the service once served there, it cannot deny by "nothing older". */
export function hasRows(
  transaction: Transaction,
  { stream, series }: { stream: HistoryStream; series: number },
  { from, to }: TimeRange,
): boolean {
  if (from >= to) return false;
  const { table, keyColumn, timeColumn, storedTime }: RowTable<never> = rowTables[stream];
  const sql = `SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ? LIMIT 1`;
  return transaction.statement(sql).get([series, storedTime(from), storedTime(to)]) !== undefined;
}

/** The service has shown a row of this moment: wherever it said "nothing older" of a later one is open again. */
export function refuteEnds(transaction: Transaction, line: LedgerLine, row: Micros): boolean {
  const refuted = transaction
    .statement(
      `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges
        WHERE stream = ? AND series = ? AND to_ts > ? AND reason = ?`,
    )
    .all([line.stream, line.series, row, NOTHING_OLDER]) as TimeRange[];
  for (const range of refuted) retract(transaction, line, range);
  return refuted.length > 0;
}
