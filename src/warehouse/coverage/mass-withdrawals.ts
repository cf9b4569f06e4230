import { createHash } from "node:crypto";
import type { WithdrawalStatus } from "../../model/status/warehouse-status.ts";
import type { Stream } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { type MassWithdrawalRow, massWithdrawals } from "../schema/coverage.ts";
import { series as dictionary } from "../schema/lookups.ts";
import type { Connection, Orm } from "../sqlite/connection.ts";
import { and, eq, gt, isNull, lt, ne, or, sql } from "../sqlite/drizzle.ts";
import type { Transaction } from "../tables/transaction.ts";
import { isOfKey, type LedgerKey } from "./ledger.ts";

/** When a mass withdrawal is believed: after this many equal answers, the first of them at least `over` ago. */
export interface WithdrawalRules {
  readonly answers: number;
  readonly over: Micros;
}

/** Reason of the open ranges of mass withdrawals that are not believed yet. */
export const UNCONFIRMED_WITHDRAWAL_REASON = "withdrawal unconfirmed";

/** Many rows that REST once served and now lacks. */
export type MassWithdrawal = Readonly<MassWithdrawalRow>;

/** In the column `digest`: the rows are older than everything that the service still serves (see moved-ends.ts). */
export const MOVED_END_DIGEST = "moved end";
/** In the column `digest`: the oldest of the rows have left the window since the last answer. */
export const TRIMMED_DIGEST = "trimmed";

const isUnconfirmed = and(
  isOfKey(massWithdrawals),
  isNull(massWithdrawals.believedAt),
  lt(massWithdrawals.from, sql.placeholder("to")),
  gt(massWithdrawals.to, sql.placeholder("from")),
);
const isNoMovedEnd = ne(massWithdrawals.digest, MOVED_END_DIGEST);

const isFound = and(isUnconfirmed, isNoMovedEnd);
const findUnconfirmed = (orm: Orm) =>
  orm.select().from(massWithdrawals).where(isFound).orderBy(massWithdrawals.from).prepare();

const dropUnconfirmed = (orm: Orm) => orm.delete(massWithdrawals).where(isUnconfirmed).prepare();

/** The unconfirmed withdrawals of a series that overlap the range, ascending. */
export function findUnconfirmedWithdrawals(
  connection: Pick<Connection, "prepared">,
  { stream, series }: LedgerKey,
  { from, to }: TimeRange,
): MassWithdrawal[] {
  return connection.prepared(findUnconfirmed).all({ stream, series, from, to });
}

/** The service has the rows of the range again. */
export function dropUnconfirmedWithdrawals(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  { from, to }: TimeRange,
): void {
  transaction.prepared(dropUnconfirmed).run({ stream, series, from, to });
}

/** The oldest rows of an unconfirmed withdrawal have left the service's window: the rest keeps its answers. */
export function trimUnconfirmedWithdrawal(
  transaction: Transaction,
  { withdrawal }: MassWithdrawal,
  { from, rows }: Pick<MassWithdrawal, "from" | "rows">,
): void {
  const isOne = eq(massWithdrawals.withdrawal, withdrawal);
  transaction.orm.update(massWithdrawals).set({ from, rows, digest: TRIMMED_DIGEST }).where(isOne).run();
}

/** Stores one more answer, or the first. `isBelieved`: the caller withdraws the rows in the same transaction. */
export function recordWithdrawalAnswer(
  transaction: Transaction,
  { stream, series }: LedgerKey,
  answer: Pick<MassWithdrawal, "from" | "to" | "rows" | "digest" | "answers" | "firstAt">,
  isBelieved: boolean,
): MassWithdrawal {
  const { now, orm } = transaction;
  dropUnconfirmedWithdrawals(transaction, { stream, series }, answer);
  const row = { ...answer, stream, series, lastAt: now, believedAt: isBelieved ? now : null };
  return orm.insert(massWithdrawals).values(row).returning().get();
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
  const { series, from, to } = massWithdrawals;
  const isOpen = and(eq(massWithdrawals.stream, stream), isNull(massWithdrawals.believedAt));
  const select = connection.orm.select({ series, from, to });
  return Map.groupBy(
    select.from(massWithdrawals).where(isOpen).orderBy(series, from).all(),
    (row) => row.series,
  );
}

/** A believed withdrawal is reported for this long. */
const REPORTED_MICROS = 7 * MICROS_PER_DAY;

/** The withdrawals that an operator should know of at `now`: unconfirmed, or believed within a week. */
export function readReportedWithdrawals(connection: Connection, now: Micros): WithdrawalStatus[] {
  const { believedAt, withdrawal } = massWithdrawals;
  const rows = connection.orm
    .select({ row: massWithdrawals, names: dictionary })
    .from(massWithdrawals)
    .innerJoin(dictionary, eq(dictionary.series, massWithdrawals.series))
    .where(or(isNull(believedAt), and(gt(believedAt, now - REPORTED_MICROS), isNoMovedEnd)))
    .orderBy(withdrawal)
    .all();
  return rows.map(({ row, names }) => ({
    stream: row.stream,
    index_type: names.indexType,
    index_id: names.indexId,
    name: names.name,
    from_time: formatTimestamp(row.from),
    to_time: formatTimestamp(row.to),
    rows: row.rows,
    answers: row.answers,
    first_seen: formatTimestamp(row.firstAt),
    believed_at: row.believedAt === null ? null : formatTimestamp(row.believedAt),
  }));
}
