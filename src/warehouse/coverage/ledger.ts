import { type HistoryStream, hasHistory, type RowStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { formatRange, intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import {
  NO_LONGER_SERVED,
  NOT_FOUND,
  NOTHING_OLDER,
  type Proof,
  type SettledRange,
} from "../../rule/answer.ts";
import { assertValidLedger, changeRanges, joinTouched, type LedgerChange, reopen } from "../../rule/apply.ts";
import { withdrawRows } from "../rows/row-sql.ts";
import type { SettledRangeRow } from "../schema/coverage.ts";
import type { SqlRunner } from "../sqlite/connection.ts";
import { type RowTable, rowTables } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/** What one part of the ledger is about: a stream, and the dictionary key of a series or of a subscription. */
export type LedgerKey = Readonly<Pick<SettledRangeRow, "stream" | "series">>;

/** The key of a series that has a history. */
export type SeriesKey = LedgerKey & { readonly stream: HistoryStream };

/** The key as text, for maps. */
export function ledgerKeyText({ stream, series }: LedgerKey): string {
  return `${stream} ${series}`;
}

const rangeColumns = 'from_ts AS "from", to_ts AS "to", proof, reason';
const matchesKey = "stream = ? AND series = ?";

/** The settled ranges of a key, ascending. Throws if the ledger is inconsistent. */
export function readSettledRanges(connection: SqlRunner, key: LedgerKey): SettledRange[] {
  const ranges = readStoredRanges(connection, key);
  assertValidLedger(ranges);
  return ranges;
}

/** The same, whether the ledger is consistent or not. */
export function readStoredRanges(connection: SqlRunner, { stream, series }: LedgerKey): SettledRange[] {
  const sql = `SELECT ${rangeColumns} FROM settled_ranges WHERE ${matchesKey} ORDER BY from_ts`;
  return connection.rows<SettledRange>(sql, [stream, series]);
}

/** The settled ranges that overlap `range`, ascending. */
export function readSettledIn(connection: SqlRunner, { stream, series }: LedgerKey, { from, to }: TimeRange) {
  const sql = `SELECT ${rangeColumns} FROM settled_ranges WHERE ${matchesKey} AND from_ts < ? AND to_ts > ? ORDER BY from_ts`;
  return connection.rows<SettledRange>(sql, [stream, series, to, from]);
}

/** How the range that contains the timestamp is settled; undefined: it is open. */
export function findProofAt(transaction: Transaction, { stream, series }: LedgerKey, ts: Micros) {
  const sql = `SELECT CASE WHEN to_ts > ? THEN proof END FROM settled_ranges
    WHERE ${matchesKey} AND from_ts <= ? ORDER BY from_ts DESC LIMIT 1`;
  return transaction.findValue<Proof | null>(sql, [ts, stream, series, ts]) ?? undefined;
}

/** The settled ranges that changes are about: to read before the first write, for `applyChanges`. */
export function readTouched(transaction: Transaction, key: LedgerKey, changes: readonly LedgerChange[]) {
  return joinTouched(changes, (range) => findTouching(transaction, key, range));
}

/**
 * Writes what the rule decided, in the transaction of the rows (docs/decisions/one-transaction.md). Nothing else changes the ledger.
 * `before`: what the changes are about, read before the first write. Returns how many rows were withdrawn.
 */
export function applyChanges(
  transaction: Transaction,
  key: LedgerKey,
  changes: readonly LedgerChange[],
  before = readTouched(transaction, key, changes),
): number {
  let [ranges, withdrawn] = [before, 0];
  for (const change of changes) {
    // Only the rule of histories withdraws rows.
    if (change.kind === "withdraw")
      withdrawn += withdrawRows(transaction, key as SeriesKey, change.timestamps);
    else {
      if (change.kind === "settle") assertMaySettle(transaction, key, change);
      const changed = changeRanges(ranges, change);
      if (changed !== ranges) noteChange(transaction, key, change, ranges);
      ranges = changed;
    }
  }
  if (ranges !== before) replaceRanges(transaction, key, before, ranges);
  return withdrawn;
}

/** A change of the ledger alone; `withdraw` is about rows. */
type RangeChange = Extract<LedgerChange, { readonly range: TimeRange }>;

/** Enters in the journal what a change does to the ranges before it. */
function noteChange(
  { journal, highWaterMarks }: Transaction,
  { stream, series }: LedgerKey,
  change: RangeChange,
  before: readonly SettledRange[],
): void {
  const { kind, range } = change;
  if (kind === "settle") {
    journal.add(stream as RowStream, hasHistory(stream) ? "rows" : "ledger", series, range);
    if (hasHistory(stream)) highWaterMarks.raise(stream, series, range.to - 1);
    if (!change.isDeleted) return;
  }
  const takenBack = before.filter(({ proof }) => kind === "retract" || proof !== "lost");
  for (const part of intersect(normalise(takenBack), [range]))
    journal.add(stream as RowStream, "retracted", series, part);
}

/** Throws if the change is none that the rule makes. */
function assertMaySettle(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  { range, proof, reason }: Extract<RangeChange, { readonly proof: Proof }>,
): void {
  if (!(range.from < range.to)) throw new Error(`cannot settle a range of no length: ${formatRange(range)}`);
  if (proof === "rows" && !transaction.hasWritten(stream, series))
    throw new Error(`cannot settle ${stream} as rows: this transaction wrote no rows of the series`);
  if (proof === "rows" && reason !== null)
    throw new Error("cannot settle rows with a reason: only empty and lost have one");
  if (proof === "lost" && reason === null) throw new Error("cannot settle a range as lost without a reason");
}

/** The settled ranges that overlap or touch `range`. Two index seeks, however many ranges the key has. */
export function findTouching(transaction: Transaction, key: LedgerKey, range: TimeRange): SettledRange[] {
  const found = transaction.rows<SettledRange>(
    `SELECT ${rangeColumns} FROM settled_ranges WHERE ${matchesKey} AND from_ts <= ? AND from_ts >=
        coalesce((SELECT max(from_ts) FROM settled_ranges WHERE ${matchesKey} AND from_ts < ?), ?) ORDER BY from_ts`,
    [key.stream, key.series, range.to, key.stream, key.series, range.from, range.from],
  );
  assertValidLedger(found);
  return found.filter(({ to }) => to >= range.from);
}

function replaceRanges(
  transaction: Transaction,
  key: LedgerKey,
  before: readonly SettledRange[],
  after: readonly SettledRange[],
): void {
  assertValidLedger(after);
  const isIn = (ranges: readonly SettledRange[]) => (one: SettledRange) =>
    ranges.some(
      ({ from, to, proof, reason }) =>
        from === one.from && to === one.to && proof === one.proof && reason === one.reason,
    );
  const [isOld, isNew] = [isIn(before), isIn(after)];
  for (const range of before) if (!isNew(range)) removeRanges(transaction, key, "from_ts = ?", [range.from]);
  for (const range of after) if (!isOld(range)) insertRange(transaction, key, range, before);
}

/** An empty range has no rows: the statement itself refuses it, so that nothing is read after the rows were written. */
function insertRange(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  range: SettledRange,
  before: readonly SettledRange[],
): void {
  const { from, to, proof, reason } = range;
  const values = [stream, series, from, to, proof, reason, transaction.commit];
  const insert = "INSERT INTO settled_ranges (stream, series, from_ts, to_ts, proof, reason, since) SELECT";
  // The rows of a snapshot stream have other keys than its ledger.
  if (proof !== "empty" || !hasHistory(stream)) {
    transaction.run(`${insert} ?, ?, ?, ?, ?, ?, ?`, values);
    return;
  }
  const added = subtract([range], normalise(before.filter((each) => each.proof === "empty")));
  const [first = range, last = first] = [added[0], added.at(-1)];
  const { table, keyColumn }: RowTable<never> = rowTables[stream];
  const sql = `${insert} ?, ?, ?, ?, ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM ${table} WHERE ${keyColumn} = ? AND ts >= ? AND ts < ?)`;
  if (transaction.run(sql, [...values, series, first.from, last.to]) === 0)
    throw new Error(`cannot settle ${stream} as empty: the range has rows: ${formatRange(range)}`);
}

/** Deletes ranges of a key, and keeps them as its past. What this commit has settled was never known. */
export function removeRanges(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  condition: string,
  values: readonly Micros[],
): void {
  const columns = "stream, series, from_ts, to_ts, proof, reason, since";
  const where = `WHERE ${matchesKey} AND ${condition}`;
  const { commit } = transaction;
  transaction.run(
    `INSERT INTO past_settled_ranges (${columns}, until) SELECT ${columns}, ? FROM settled_ranges ${where} AND since IS NOT ?`,
    [commit, stream, series, ...values, commit],
  );
  transaction.run(`DELETE FROM settled_ranges ${where}`, [stream, series, ...values]);
}

/**
 * The service has a record at `ts`: the ranges that it disproves. These are every later one that was settled as "nothing older",
 * and all that is "no longer served" if a later range is.
 */
export function findEndsAbove(transaction: Transaction, key: LedgerKey, ts: Micros): TimeRange[] {
  const sql = `SELECT ${rangeColumns} FROM settled_ranges WHERE ${matchesKey} AND reason IN (?, ?)`;
  const ends = transaction.rows<SettledRange>(sql, [key.stream, key.series, NOTHING_OLDER, NO_LONGER_SERVED]);
  const isServedAgain = ends.some(({ to, reason }) => to > ts && reason === NO_LONGER_SERVED);
  return ends.filter(({ to, reason }) => (reason === NO_LONGER_SERVED ? isServedAgain : to > ts));
}

/** Where the oldest target of the key begins; undefined: the settings never selected it. */
export function findTargetStart(transaction: Transaction, { stream, series }: LedgerKey): Micros | undefined {
  const sql = `SELECT min(from_ts) FROM targets WHERE ${matchesKey}`;
  return transaction.value<Micros | null>(sql, [stream, series]) ?? undefined;
}

const notFoundSql = `SELECT ${rangeColumns} FROM settled_ranges WHERE ${matchesKey} AND reason = '${NOT_FOUND}'`;

/** Series for which the service once answered 404. If it serves records now, those ranges are fetched again. */
export function readNotFoundSeries(connection: SqlRunner, stream: HistoryStream): Set<number> {
  const sql = "SELECT series FROM settled_ranges WHERE stream = ? AND reason = ?";
  return new Set(connection.values<number>(sql, [stream, NOT_FOUND]));
}

/** Whether the service once answered 404 for this series. */
export function wasNotFound(connection: SqlRunner, { stream, series }: LedgerKey): boolean {
  return connection.findRow(notFoundSql, [stream, series]) !== undefined;
}

/** The service has the index after all: retracts what a 404 settled. */
export function reopenNotFound(transaction: Transaction, key: LedgerKey): void {
  const ranges = transaction.rows<SettledRange>(notFoundSql, [key.stream, key.series]);
  applyChanges(transaction, key, reopen(ranges));
}
