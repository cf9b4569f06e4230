import type { SnapshotStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import { settledRanges } from "../schema/coverage.ts";
import { and, eq } from "../sqlite/drizzle.ts";
import type { Transaction } from "../tables/transaction.ts";
import { isOfKey, type LedgerKey, settle } from "./ledger.ts";
import { endTarget, openTarget, type StreamRules } from "./targets.ts";

/** What one snapshot of a subscription covers. */
interface SnapshotCoverage {
  readonly stream: SnapshotStream;
  /** Null: the subscription is to all exchanges. */
  readonly exchangeId: string | null;
  readonly at: Micros;
  /** Where the coverage ends; default: one cadence after `at`. */
  readonly to?: Micros;
  /** How long one snapshot is valid: the refresh period, or the stream's setting `every`. */
  readonly cadence: Micros;
  /** The snapshot had no record that the settings select: no row was stored. */
  readonly isEmpty?: boolean;
}

/** Reason of a range that an empty snapshot covers. */
const NOTHING_LISTED_REASON = "nothing listed";

/**
 * Settles `[at, to)`, and opens the target at the first snapshot. Pass `at` rounded down to the cadence:
 * ranges merge only where they touch, and jitter leaves a short `lost` range per snapshot.
 */
export function settleSnapshot(transaction: Transaction, snapshot: SnapshotCoverage): void {
  const { stream, at, cadence, to = at + cadence } = snapshot;
  const key = subscriptionKey(transaction, stream, snapshot.exchangeId);
  openTarget(transaction, { key, from: at, ...snapshotRules(cadence) }, true);
  const range = { from: at, to };
  if (snapshot.isEmpty) {
    // Keep `rows` of the same range: a market may have been deselected or delisted within it.
    for (const rest of subtract([range], readRowRanges(transaction, key, range)))
      settle(transaction, key, rest, "empty", NOTHING_LISTED_REASON);
    return;
  }
  transaction.markWritten(stream, key.series);
  settle(transaction, key, range, "rows");
}

function snapshotRules(cadence: Micros): StreamRules {
  return { settleDelay: cadence * 2, period: cadence, step: 1, serviceWindow: null };
}

/** Reason of a range in which the service denied access to a part of what the settings select. */
const FORBIDDEN_REASON = "forbidden";

/** Settles `[at, at + cadence)` as lost, unless it is covered, and opens the target: the settings select it. */
export function settleForbidden(
  transaction: Transaction,
  { stream, exchangeId, at, cadence }: Omit<SnapshotCoverage, "isEmpty">,
): void {
  const key = subscriptionKey(transaction, stream, exchangeId);
  openTarget(transaction, { key, from: at, ...snapshotRules(cadence) }, true);
  settle(transaction, key, { from: at, to: at + cadence }, "lost", FORBIDDEN_REASON);
}

/** Whether any snapshot of the subscription had rows. */
export function hasSnapshotRows(
  transaction: Transaction,
  { stream, exchangeId }: Pick<SnapshotCoverage, "stream" | "exchangeId">,
): boolean {
  const key = subscriptionKey(transaction, stream, exchangeId);
  const isWithRows = and(isOfKey(settledRanges, key), eq(settledRanges.proof, "rows"));
  return transaction.orm.select().from(settledRanges).where(isWithRows).limit(1).get() !== undefined;
}

/** The ranges with proof `rows` around a range. Two index seeks, however many ranges the key has. */
function readRowRanges(transaction: Transaction, ledgerKey: LedgerKey, { from, to }: TimeRange): TimeRanges {
  const matchesKey = "stream = ? AND series = ?";
  const sql = `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE ${matchesKey} AND proof = 'rows' AND from_ts < ?
    AND from_ts >= coalesce((SELECT max(from_ts) FROM settled_ranges WHERE ${matchesKey} AND from_ts <= ?), ?)`;
  const key = [ledgerKey.stream, ledgerKey.series];
  return normalise(transaction.rows<TimeRange>(sql, [...key, to, ...key, from, from]));
}

/** Ends the target of a subscription that the settings no longer select. */
export function endSnapshotTarget(
  transaction: Transaction,
  subscription: { stream: SnapshotStream; exchangeId: string | null; at: Micros },
): void {
  const key = subscriptionKey(transaction, subscription.stream, subscription.exchangeId);
  endTarget(transaction, key, subscription.at);
}

function subscriptionKey(
  transaction: Transaction,
  stream: SnapshotStream,
  exchangeId: string | null,
): LedgerKey {
  return { stream, series: transaction.dictionary.getSubscriptionKey(exchangeId) };
}
