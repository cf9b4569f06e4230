import { createHash } from "node:crypto";
import type { WithdrawalStatus } from "../../model/status/warehouse-status.ts";
import type { Stream } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { MassWithdrawalRow } from "../schema/coverage.ts";
import type { SeriesNames } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Transaction } from "../tables/transaction.ts";
import type { LedgerKey } from "./ledger.ts";

/** When a mass withdrawal is believed: after this many equal answers, the first of them at least `over` ago. */
export interface WithdrawalRules {
  readonly answers: number;
  readonly over: Micros;
}

/** Reason of the open ranges of mass withdrawals that are not believed yet. */
export const UNCONFIRMED_WITHDRAWAL_REASON = "withdrawal unconfirmed";

/** Many rows that REST once served and now lacks. */
export type MassWithdrawal = Readonly<Omit<MassWithdrawalRow, "stream" | "series">>;

/** In the column `digest`: the rows are older than everything that the service still serves (see moved-ends.ts). */
export const MOVED_END_DIGEST = "moved end";
/** In the column `digest`: the oldest of the rows have left the window since the last answer. */
export const TRIMMED_DIGEST = "trimmed";

const columns = `withdrawal, from_ts AS "from", to_ts AS "to", rows, digest, answers, first_at AS firstAt,
  last_at AS lastAt, believed_at AS believedAt`;
const isUnconfirmed = "stream = ? AND series = ? AND believed_at IS NULL";

/** The unconfirmed withdrawals of a series that overlap the range, ascending. */
export function findUnconfirmedWithdrawals(
  connection: Pick<Connection, "statement">,
  { stream, series }: LedgerKey,
  { from, to }: TimeRange,
): MassWithdrawal[] {
  const sql = `SELECT ${columns} FROM mass_withdrawals
    WHERE ${isUnconfirmed} AND digest <> '${MOVED_END_DIGEST}' AND from_ts < ? AND to_ts > ? ORDER BY from_ts`;
  return connection.statement<MassWithdrawal>(sql).all([stream, series, to, from]);
}

/** The service has the rows of the range again. */
export function dropUnconfirmedWithdrawals(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  { from, to }: TimeRange,
): void {
  transaction
    .statement(`DELETE FROM mass_withdrawals WHERE ${isUnconfirmed} AND from_ts < ? AND to_ts > ?`)
    .run([stream, series, to, from]);
}

/** The oldest rows of an unconfirmed withdrawal have left the service's window: the rest keeps its answers. */
export function trimUnconfirmedWithdrawal(
  transaction: Transaction,
  { withdrawal }: MassWithdrawal,
  { from, rows }: Pick<MassWithdrawal, "from" | "rows">,
): void {
  transaction
    .statement("UPDATE mass_withdrawals SET from_ts = ?, rows = ?, digest = ? WHERE withdrawal = ?")
    .run([from, rows, TRIMMED_DIGEST, withdrawal]);
}

/** Stores one more answer, or the first. `isBelieved`: the caller withdraws the rows in the same transaction. */
export function recordWithdrawalAnswer(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  answer: Pick<MassWithdrawal, "from" | "to" | "rows" | "digest" | "answers" | "firstAt">,
  isBelieved: boolean,
): MassWithdrawal {
  const { from, to, rows, digest, answers, firstAt } = answer;
  const believedAt = isBelieved ? transaction.now : null;
  dropUnconfirmedWithdrawals(transaction, { stream, series }, answer);
  const { lastInsertRowid } = transaction
    .statement(
      `INSERT INTO mass_withdrawals (stream, series, from_ts, to_ts, rows, digest, answers, first_at, last_at, believed_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run([stream, series, from, to, rows, digest, answers, firstAt, transaction.now, believedAt]);
  return { ...answer, withdrawal: Number(lastInsertRowid), lastAt: transaction.now, believedAt };
}

export function shouldBelieve(
  { answers, firstAt }: Pick<MassWithdrawal, "answers" | "firstAt">,
  rules: WithdrawalRules,
  now: Micros,
): boolean {
  return answers >= rules.answers && now - firstAt >= rules.over;
}

/** Identifies the set of rows that an answer lacks. */
export function digestTimestamps(timestamps: readonly Micros[]): string {
  return createHash("sha256").update(timestamps.join()).digest("hex").slice(0, 16);
}

/** The unconfirmed withdrawals of a stream, by series. */
export function readUnconfirmedRanges(connection: Connection, stream: Stream): Map<number, TimeRange[]> {
  const rows = connection
    .statement<TimeRange & { readonly series: number }>(
      `SELECT series, from_ts AS "from", to_ts AS "to" FROM mass_withdrawals
      WHERE stream = ? AND believed_at IS NULL ORDER BY series, from_ts`,
    )
    .all([stream]);
  return new Map(
    [...Map.groupBy(rows, ({ series }) => series)].map(([series, own]) => [
      series,
      own.map(({ from, to }) => ({ from, to })),
    ]),
  );
}

/** A believed withdrawal is reported for this long. */
const REPORTED_MICROS = 7 * MICROS_PER_DAY;

/** The withdrawals that an operator should know of at `now`: unconfirmed, or believed within a week. */
export function readReportedWithdrawals(connection: Connection, now: Micros): WithdrawalStatus[] {
  const rows = connection
    .statement<MassWithdrawal & SeriesNames & { readonly stream: Stream }>(
      `SELECT m.stream, s.index_type AS indexType, s.index_id AS indexId, s.name, ${columns}
      FROM mass_withdrawals m JOIN series s ON s.series = m.series
      WHERE believed_at IS NULL OR (believed_at > ? AND digest <> '${MOVED_END_DIGEST}') ORDER BY m.withdrawal`,
    )
    .all([now - REPORTED_MICROS]);
  return rows.map((row) => ({
    stream: row.stream,
    index_type: row.indexType,
    index_id: row.indexId,
    name: row.name,
    from_time: formatTimestamp(row.from),
    to_time: formatTimestamp(row.to),
    rows: row.rows,
    answers: row.answers,
    first_seen: formatTimestamp(row.firstAt),
    believed_at: row.believedAt === null ? null : formatTimestamp(row.believedAt),
  }));
}
