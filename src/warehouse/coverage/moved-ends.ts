import { MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import { massWithdrawals } from "../schema/coverage.ts";
import { and, eq } from "../sqlite/drizzle.ts";
import type { Transaction } from "../tables/transaction.ts";
import { findTouching, isOfKey, type LedgerKey, NO_LONGER_SERVED_REASON, settle } from "./ledger.ts";
import {
  type MassWithdrawal,
  MOVED_END_DIGEST,
  recordWithdrawalAnswer,
  shouldBelieve,
  type WithdrawalRules,
} from "./mass-withdrawals.ts";

/*
 * The end of a service's history may move up: its retention is shorter than its window, was shortened, or an index was
 * dropped. Stored rows below the end stay, with their coverage. What was open there is lost, once enough answers agree.
 */

/** A believed end may move on this much faster than time: services delete in batches. */
const MAX_BATCH_MICROS = MICROS_PER_DAY;

const isMovedEndSql = `stream = ? AND series = ? AND digest = '${MOVED_END_DIGEST}'`;

/**
 * The service has nothing older than `open.to`, though it served `rows` records there before: counts the answer, and believes
 * it by the same rules as a mass withdrawal. An end that was believed before moves with time without further answers.
 */
export function recordMovedEnd(
  transaction: Transaction,
  key: LedgerKey,
  { open, rows }: { readonly open: TimeRange; readonly rows: number },
  rules: WithdrawalRules | undefined,
): MassWithdrawal {
  const { orm } = transaction;
  const isMovedEnd = and(isOfKey(massWithdrawals, key), eq(massWithdrawals.digest, MOVED_END_DIGEST));
  const before = orm.select().from(massWithdrawals).where(isMovedEnd).get();
  const hasMovedWithTime =
    before !== undefined &&
    before.believedAt !== null &&
    open.to - before.to <= transaction.now - before.lastAt + MAX_BATCH_MICROS;
  // Each walk of the series has a gap of its own: answers about others agree.
  const earlier = before?.believedAt === null || hasMovedWithTime ? before : undefined;
  const answers = (earlier?.answers ?? 0) + 1;
  const firstAt = earlier?.firstAt ?? transaction.now;
  const isBelieved =
    hasMovedWithTime || (rules !== undefined && shouldBelieve({ answers, firstAt }, rules, transaction.now));
  orm.delete(massWithdrawals).where(isMovedEnd).run();
  const from = Math.min(open.from, earlier?.from ?? open.from);
  const to = Math.max(open.to, earlier?.to ?? open.to);
  const end = { from, to, rows, digest: MOVED_END_DIGEST, answers, firstAt };
  return recordWithdrawalAnswer(transaction, key, end, isBelieved);
}

/** The service served a record with timestamp `rowTs`: it has not dropped everything below a later end. */
export function dropMovedEnd(transaction: Transaction, { stream, series }: LedgerKey, rowTs: Micros): void {
  transaction
    .statement(`DELETE FROM mass_withdrawals WHERE ${isMovedEndSql} AND to_ts > ?`)
    .run([stream, series, rowTs]);
}

/** Settles as lost what is open in the range, which the service no longer serves. Its rows stay. */
export function settleNoLongerServed(transaction: Transaction, key: LedgerKey, range: TimeRange): void {
  for (const part of subtract([range], normalise(findTouching(transaction, key, range))))
    settle(transaction, key, part, "lost", NO_LONGER_SERVED_REASON);
}
