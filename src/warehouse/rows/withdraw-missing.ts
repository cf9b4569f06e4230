import type { HistoryStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { ChangedRows } from "../coverage/changed-ranges.ts";
import type { LedgerKey } from "../coverage/ledger.ts";
import {
  digestTimestamps,
  dropUnconfirmedWithdrawals,
  findUnconfirmedWithdrawals,
  type MassWithdrawal,
  recordWithdrawalAnswer,
  shouldBelieve,
  TRIMMED_DIGEST,
  trimUnconfirmedWithdrawal,
  type WithdrawalRules,
} from "../coverage/mass-withdrawals.ts";
import type { StoredTime } from "../schema/rows.ts";
import { type RowTable, rowTables, type SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";
import { isPreview } from "./previews.ts";
import { storeRevision } from "./revisions.ts";
import { countStoredRows } from "./row-queries.ts";
import { addRowCount } from "./stream-stats.ts";

export interface WithdrawResult {
  /** How many rows were deleted and stored in `revisions`. */
  readonly withdrawn: number;
  /** Mass withdrawals that are unconfirmed: their rows stay, and their ranges must not be settled. */
  readonly unconfirmed: readonly MassWithdrawal[];
  /** Mass withdrawals that the service has confirmed: their rows are among those withdrawn. */
  readonly believed: readonly MassWithdrawal[];
}

/** If a page lacks more stored rows than this share of its own size, it must be confirmed by other pages. */
const MAX_MISSING_SHARE = 0.1;
/** This many are always allowed: a tenth of a short page is less than one row. */
const MIN_MISSING_LIMIT = 2;
const NOTHING: WithdrawResult = { withdrawn: 0, unconfirmed: [], believed: [] };

interface ProvenPage {
  readonly stream: HistoryStream;
  readonly series: number;
  /** The proven range of the page. */
  readonly range: TimeRange;
  /** The timestamps of the page's rows of this series. */
  readonly timestamps: readonly Micros[];
  /** Absent: no mass withdrawal is believed. */
  readonly rules?: WithdrawalRules;
  /** The service has nothing older. Rows that it served before stay: they only fell off the end of its history. */
  readonly servedFrom?: Micros | undefined;
  /** The service may have dropped rows below this, since they leave its window; absent: it has no window. */
  readonly windowStart?: Micros | undefined;
}

interface StoredRow {
  readonly ts: Micros;
  readonly time: StoredTime;
  readonly values: readonly SqlValue[];
}

/**
 * Withdraws the stored rows that a page lacks in its proven range, for which the page is authoritative. Previews go at
 * once, however many. Many rows that REST itself has served go only after enough equal answers. Call it after the page's
 * rows are written and before the range is settled.
 */
export function withdrawMissing(transaction: Transaction, page: ProvenPage): WithdrawResult {
  const missing = findMissingRows(transaction, page);
  if (missing.length === 0) {
    dropUnconfirmedWithdrawals(transaction, page, page.range);
    return NOTHING;
  }
  const standing = findUnconfirmedWithdrawals(transaction, page, page.range);
  const { sourceAt }: RowTable<never> = rowTables[page.stream];
  const isStanding = (ts: Micros) => standing.some((range) => includes(range, ts));
  const [previews, others] = partition(
    missing,
    ({ ts, values }) => values[sourceAt] === 1 && !isStanding(ts) && isPreview(transaction, page, ts),
  );
  const { servedFrom = page.range.from } = page;
  const served = others.filter(({ ts }) => ts >= servedFrom || isStanding(ts));
  const { rest, unconfirmed, believed, believedRows } = judgeStanding(transaction, page, standing, served);
  const limit = Math.max(MIN_MISSING_LIMIT, page.timestamps.length * MAX_MISSING_SHARE);
  const gone = [...previews, ...believedRows];
  if (rest.length <= limit) gone.push(...rest);
  else
    for (const range of subtract([page.range], normalise([...unconfirmed, ...believed]))) {
      const rows = rest.filter(({ ts }) => includes(range, ts));
      if (rows.length === 0) continue;
      const answer = recordAnswer(transaction, page, hullOf(rows, page), rows, undefined);
      if (answer.believedAt === null) unconfirmed.push(answer);
      else {
        believed.push(answer);
        gone.push(...rows);
      }
    }
  withdrawRows(transaction, page, gone);
  return { withdrawn: gone.length, unconfirmed, believed };
}

/** The stored rows of the proven range that the page lacks, ascending. */
function findMissingRows(transaction: Transaction, page: ProvenPage): StoredRow[] {
  const table: RowTable<never> = rowTables[page.stream];
  const { keyColumn, timeColumn } = table;
  const where = `FROM ${table.table} WHERE ${keyColumn} = ? AND ${timeColumn} >= ? AND ${timeColumn} < ?`;
  const bounds = ({ from, to }: TimeRange) => [page.series, table.storedTime(from), table.storedTime(to)];
  const count = (range: TimeRange) =>
    range.from < range.to ? transaction.value<number>(`SELECT count(*) ${where}`, bounds(range)) : 0;
  const { from, to } = page.range;
  // The page's rows are already stored, so equal counts mean that no other row is. Usually this saves reading the rows.
  const filled = transaction.findFilledRange(page.stream, page.series);
  const stored =
    filled && from <= filled.from && filled.to <= to
      ? count({ from, to: filled.from }) + filled.rows + count({ from: filled.to, to })
      : count(page.range);
  if (stored === countDistinct(page.timestamps, page.range)) return [];

  const expected = new Set(filterByRange(page.timestamps, page.range).map((ts) => table.storedTime(ts)));
  return transaction
    .statement<readonly [StoredTime, ...SqlValue[]]>(
      `SELECT ${timeColumn}, ${table.columns.join(", ")} ${where} ORDER BY ${timeColumn}`,
    )
    .raw()
    .all(bounds(page.range))
    .filter(([time]) => !expected.has(time))
    .map(([time, ...values]) => ({ ts: table.tsOfStored(time), time, values }));
}

/** Compares the missing rows with the withdrawals that earlier answers left unconfirmed. */
function judgeStanding(
  transaction: Transaction,
  page: ProvenPage,
  standing: readonly MassWithdrawal[],
  served: readonly StoredRow[],
) {
  const unconfirmed: MassWithdrawal[] = [];
  const believed: MassWithdrawal[] = [];
  const believedRows: StoredRow[] = [];
  let rest = served;
  for (const withdrawal of standing) {
    const [rows, others] = partition(rest, ({ ts }) => includes(withdrawal, ts));
    const part = { from: Math.max(withdrawal.from, page.range.from), to: withdrawal.to };
    // What has left the window does not count.
    const isWhole =
      page.range.from <= Math.max(withdrawal.from, page.windowStart ?? withdrawal.from) &&
      withdrawal.to <= page.range.to;
    if (!isWhole && rows.length > 0) {
      // The page shows only a part of it.
      unconfirmed.push(withdrawal);
      rest = others;
    } else if (isWhole && rows.length > 0 && isSameWithdrawal(transaction, page, withdrawal, rows)) {
      const answer = recordAnswer(transaction, page, part, rows, withdrawal);
      rest = others;
      if (answer.believedAt === null) unconfirmed.push(answer);
      else {
        believed.push(answer);
        believedRows.push(...rows);
      }
    } else dropUnconfirmedWithdrawals(transaction, page, withdrawal);
  }
  return { rest, unconfirmed, believed, believedRows };
}

/** Whether the page lacks the same rows as the answers before, apart from those that have left the window. */
function isSameWithdrawal(
  transaction: Transaction,
  page: ProvenPage,
  { from, rows: before, digest }: MassWithdrawal,
  rows: readonly StoredRow[],
): boolean {
  const isCut = page.range.from > from;
  if (!isCut && digest !== TRIMMED_DIGEST) return digestRows(rows) === digest;
  const gone = isCut ? countStoredRows(transaction, page, { from, to: page.range.from }) : 0;
  return rows.length <= before && before - rows.length <= gone;
}

function recordAnswer(
  transaction: Transaction,
  page: ProvenPage,
  { from, to }: TimeRange,
  rows: readonly StoredRow[],
  earlier: MassWithdrawal | undefined,
): MassWithdrawal {
  const answer = {
    from,
    to,
    rows: rows.length,
    digest: digestRows(rows),
    answers: (earlier?.answers ?? 0) + 1,
    firstAt: earlier?.firstAt ?? transaction.now,
  };
  const isBelieved = page.rules !== undefined && shouldBelieve(answer, page.rules, transaction.now);
  return recordWithdrawalAnswer(transaction, page, answer, isBelieved);
}

/** The range has left the service's window, which can no longer confirm there what it has withdrawn. */
export function trimWithdrawals(
  transaction: Transaction,
  key: LedgerKey & { readonly stream: HistoryStream },
  agedOut: TimeRange,
): void {
  for (const withdrawal of findUnconfirmedWithdrawals(transaction, key, agedOut)) {
    if (withdrawal.to <= agedOut.to) continue;
    const gone = countStoredRows(transaction, key, { from: withdrawal.from, to: agedOut.to });
    const rows = Math.max(1, withdrawal.rows - gone);
    trimUnconfirmedWithdrawal(transaction, withdrawal, { from: agedOut.to, rows });
  }
  dropUnconfirmedWithdrawals(transaction, key, agedOut);
}

function withdrawRows(
  transaction: Transaction,
  { stream, series }: ProvenPage,
  rows: readonly StoredRow[],
): void {
  const table: RowTable<never> = rowTables[stream];
  const deleteRow = transaction.statement(
    `DELETE FROM ${table.table} WHERE ${table.keyColumn} = ? AND ${table.timeColumn} = ?`,
  );
  const changed = new ChangedRows();
  for (const { ts, time, values } of rows) {
    storeRevision(transaction, table, { key: series, ts, before: values, after: null });
    deleteRow.run([series, time]);
    changed.replace(ts);
  }
  changed.record(transaction, stream, series);
  addRowCount(transaction, stream, -rows.length);
}

/** From the first of the rows to the next record of the page: where a walk of this range alone begins. */
function hullOf(rows: readonly StoredRow[], { timestamps, range }: ProvenPage): TimeRange {
  const [first, last] = [rows[0], rows.at(-1)];
  if (!first || !last) throw new Error("no rows have no hull");
  let { to } = range;
  for (const ts of timestamps) if (ts > last.ts && ts < to) to = ts;
  return { from: first.ts, to };
}

function digestRows(rows: readonly StoredRow[]): string {
  return digestTimestamps(rows.map(({ ts }) => ts));
}

function includes({ from, to }: TimeRange, ts: Micros): boolean {
  return from <= ts && ts < to;
}

function partition<T>(items: readonly T[], matches: (item: T) => boolean): [T[], T[]] {
  const [matching, others]: [T[], T[]] = [[], []];
  for (const item of items) (matches(item) ? matching : others).push(item);
  return [matching, others];
}

/** Pages are in descending order, so distinct timestamps can be counted without a set unless one repeats. */
function countDistinct(timestamps: readonly Micros[], { from, to }: TimeRange): number {
  let inside = 0;
  let previous = Number.POSITIVE_INFINITY;
  for (const ts of timestamps) {
    if (ts >= previous) return new Set(filterByRange(timestamps, { from, to })).size;
    if (from <= ts && ts < to) inside++;
    previous = ts;
  }
  return inside;
}

function filterByRange(timestamps: readonly Micros[], { from, to }: TimeRange): readonly Micros[] {
  return timestamps.filter((ts) => from <= ts && ts < to);
}
