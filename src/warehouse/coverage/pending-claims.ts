import { END_REASON, NOT_FOUND_REASON } from "../../model/status/gap-state.ts";
import type { WithdrawalStatus } from "../../model/status/warehouse-status.ts";
import type { Stream } from "../../model/streams.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { ClaimKind, PendingClaim } from "../../rule/answer.ts";
import { isIncident } from "../../rule/confirm.ts";
import type { AbsentEntries, ListClaimKind } from "../../rule/repetition.ts";
import type { PendingClaimRow } from "../schema/coverage.ts";
import type { Connection, SqlRunner } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import { sqliteDialect } from "../views/sqlite-dialect.ts";
import type { LedgerKey } from "./ledger.ts";

/** A stored claim. */
export interface StoredClaim extends PendingClaim {
  readonly claim: number;
  /** How many stored rows the service lacks. */
  readonly rows: number;
}

/** Reason of ranges in which the service lacks rows that it served before. */
export const WITHDRAWAL_REASON = "withdrawal unconfirmed";

/** Reasons of the gaps of pending claims, for the view `gaps`. */
export const pendingReasons: Readonly<Partial<Record<ClaimKind, string>>> = {
  withdrawn: WITHDRAWAL_REASON,
  "end moved": WITHDRAWAL_REASON,
  end: END_REASON,
  "not found": NOT_FOUND_REASON,
};

/** A day, plus two hours for the nightly run itself. */
export const NIGHTLY_INTERVAL_MICROS = MICROS_PER_DAY + 7200 * MICROS_PER_SECOND;

/** How far above its range an answer counts: an index that was not found is asked for again nightly. */
const reach = (kind: ClaimKind) => (kind === "not found" ? NIGHTLY_INTERVAL_MICROS : 0);

const kindsSql = (isSelected: (kind: ClaimKind) => boolean) =>
  (Object.keys(pendingReasons) as ClaimKind[])
    .filter(isSelected)
    .map((kind) => `'${kind}'`)
    .join(", ");

/** The kinds of claims that contradict stored rows, as a list in SQL. */
export const incidentKindsSql = kindsSql(isIncident);

/**
 * Up to where the service has nothing, but must say so again, or the reason of it, for the key of the row `of`. It has no lower end: the range of a claim begins where the
 * service's window did when the answer came, but its answer is about all that is older.
 */
export function absenceSql(table: (name: string) => string, of: string, member: "to" | "reason"): string {
  const to = `m.to_ts + CASE m.kind WHEN 'not found' THEN ${reach("not found")} ELSE 0 END`;
  const reason = `CASE m.kind WHEN 'not found' THEN '${NOT_FOUND_REASON}' ELSE '${END_REASON}' END`;
  return `(SELECT ${member === "to" ? to : reason} FROM ${table("pending_claims")} m
      WHERE m.stream = ${of}.stream AND m.series = ${of}.series AND m.accepted_at IS NULL AND m.kind IN (${kindsSql((kind) => !isIncident(kind))})
      ORDER BY ${to} DESC, ${reason} LIMIT 1)`;
}

function toClaim({
  stream: _stream,
  series: _series,
  from,
  to,
  subject,
  ...row
}: PendingClaimRow): StoredClaim {
  return { ...row, range: { from, to }, subject: JSON.parse(subject) as Micros[] };
}

const claimColumns = `claim, kind, from_ts AS "from", to_ts AS "to", rows, subject, answers, first_at AS firstAt,
  last_at AS lastAt, accepted_at AS acceptedAt`;

/** The claims of a series, accepted ones too: an end that has moved goes on to move. Accepted withdrawals are only reported. */
export function readClaims(connection: SqlRunner, { stream, series }: LedgerKey): StoredClaim[] {
  // Every page asks: a query of drizzle would cost more than all others of a page.
  const sql = `SELECT ${claimColumns} FROM pending_claims
    WHERE stream = ? AND series = ? AND (accepted_at IS NULL OR kind <> 'withdrawn')`;
  return connection.rows<PendingClaimRow>(sql, [stream, series]).map(toClaim);
}

/** The pending claims of a stream, by series; `of`: only those of one series. */
export function readPendingClaims(connection: SqlRunner, stream: Stream, of?: number) {
  const sql = `SELECT series, ${claimColumns} FROM pending_claims
    WHERE stream = @stream AND accepted_at IS NULL ${of === undefined ? "" : "AND series = @of"} ORDER BY from_ts`;
  const bySeries = Map.groupBy(connection.rows<PendingClaimRow>(sql, { stream, of }), ({ series }) => series);
  return new Map([...bySeries].map(([series, own]) => [series, own.map(toClaim)]));
}

const insertSql = `INSERT INTO pending_claims (kind, stream, series, from_ts, to_ts, rows, subject, answers, first_at, last_at, accepted_at)
  VALUES (@kind, @stream, @series, @from, @to, @rows, @subject, @answers, @firstAt, @lastAt, @acceptedAt) RETURNING claim`;

export function storeClaim(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  { range, ...claim }: PendingClaim,
  rows: number,
): StoredClaim {
  const row = { ...claim, stream, series, ...range, rows, subject: JSON.stringify(claim.subject) };
  return { ...claim, range, rows, claim: transaction.value<number>(insertSql, row) };
}

export function dropClaims(transaction: Transaction, claims: readonly PendingClaim[]): void {
  for (const { claim } of claims as readonly StoredClaim[])
    transaction.run("DELETE FROM pending_claims WHERE claim = ?", [claim]);
}

/** Nobody asks the service again about what ends by `to`: it has left the service's window, or the series is deselected. */
export function dropPendingClaims(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  to: Micros = Number.MAX_SAFE_INTEGER,
): void {
  const isPending = "stream = ? AND series = ? AND accepted_at IS NULL AND to_ts <= ?";
  transaction.run(`DELETE FROM pending_claims WHERE ${isPending}`, [stream, series, to]);
}

/** What a list lacked so far. `list`: its name, in the place of a stream; it is no series, which 0 says. */
export function readAbsentEntries(connection: SqlRunner, kind: ListClaimKind, list: string): AbsentEntries[] {
  const sql = `SELECT subject, answers, first_at AS firstAt, last_at AS lastAt FROM pending_claims
    WHERE stream = ? AND series = 0 AND kind = ? ORDER BY first_at`;
  const rows = connection.rows<Pick<PendingClaimRow, "subject" | "answers" | "firstAt" | "lastAt">>(sql, [
    list,
    kind,
  ]);
  return rows.map((row) => ({ ...row, subject: JSON.parse(row.subject) as string[] }));
}

/** Replaces what the list lacked so far. */
export function storeAbsentEntries(
  transaction: Transaction,
  kind: ListClaimKind,
  list: string,
  pending: readonly AbsentEntries[],
): void {
  transaction.run("DELETE FROM pending_claims WHERE stream = ? AND series = 0 AND kind = ?", [list, kind]);
  for (const { subject, ...tally } of pending) {
    const range = { from: tally.firstAt, to: tally.lastAt };
    const row = { ...tally, ...range, rows: subject.length, subject: JSON.stringify(subject) };
    transaction.value(insertSql, { kind, stream: list, series: 0, ...row, acceptedAt: null });
  }
}

const { moment } = sqliteDialect;
/** An accepted withdrawal is reported for this long. */
const REPORTED_MICROS = 7 * MICROS_PER_DAY;

const reportedSql = `SELECT m.stream, s.index_type, s.index_id, s.name, ${moment("m.from_ts")} AS from_time, ${moment("m.to_ts")} AS to_time,
    m.rows, m.answers, ${moment("m.first_at")} AS first_seen, ${moment("m.accepted_at")} AS believed_at
  FROM pending_claims m JOIN series s ON s.series = m.series
  WHERE m.kind IN (${incidentKindsSql}) AND (m.accepted_at IS NULL OR m.accepted_at > ? AND m.kind = 'withdrawn') ORDER BY m.claim`;

/** The claims against stored rows that an operator should know of at `now`: pending, or accepted within a week. */
export function readReportedWithdrawals(connection: Connection, now: Micros): WithdrawalStatus[] {
  return connection.rows<WithdrawalStatus>(reportedSql, [now - REPORTED_MICROS]);
}
