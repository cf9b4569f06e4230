import type { SnapshotStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange, type TimeRanges } from "../../model/time-range.ts";
import type { Transaction } from "../tables/transaction.ts";
import { type LedgerLine, settle } from "./ledger.ts";
import { endWanted, follow } from "./targets.ts";

export interface Observation {
  readonly stream: SnapshotStream;
  /** Null: the subscription is to everything. */
  readonly exchangeId: string | null;
  readonly at: Micros;
  /** How long one observation speaks for: the refresh period, or the stream's `every`. */
  readonly cadence: Micros;
  /** The service had nothing of what is kept: no row stands for the observation. */
  readonly isEmpty?: boolean;
}

/** Why an observation covers a period without a row. */
const NOTHING_LISTED = "nothing listed";

/**
 * Enters that a subscription was observed: `[at, at + cadence)` is covered, and it is followed from its first
 * observation on. Ranges merge only where they touch: an `at` taken from the service's own period (or floored to the
 * cadence) keeps the ledger short, one with jitter leaves a sliver `lost` each time, as the contract says.
 */
export function observe(transaction: Transaction, observation: Observation): void {
  const { stream, at, cadence } = observation;
  const line = subscriptionLine(transaction, stream, observation.exchangeId);
  follow(transaction, { line, from: at, settleDelay: cadence * 2, step: 1, keptFor: null }, true);
  const period = { from: at, to: at + cadence };
  if (observation.isEmpty) {
    // Rows that were seen in the same period stay seen: a market may have been deselected, or delisted, in its midst.
    for (const rest of subtract([period], provenRows(transaction, line, period)))
      settle(transaction, line, rest, "empty", NOTHING_LISTED);
    return;
  }
  transaction.carry(stream, line.series);
  settle(transaction, line, period, "rows");
}

/** Whether any row was ever observed of a subscription. */
export function wasObserved(
  transaction: Transaction,
  { stream, exchangeId }: Pick<Observation, "stream" | "exchangeId">,
): boolean {
  const { series } = subscriptionLine(transaction, stream, exchangeId);
  const sql = "SELECT 1 FROM settled_ranges WHERE stream = ? AND series = ? AND proof = 'rows' LIMIT 1";
  return transaction.statement(sql).get([stream, series]) !== undefined;
}

/** Found from the period by index seek, however long the line. */
function provenRows(transaction: Transaction, line: LedgerLine, { from, to }: TimeRange): TimeRanges {
  const at = "stream = ? AND series = ?";
  const sql = `SELECT from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE ${at} AND proof = 'rows' AND from_ts < ?
    AND from_ts >= coalesce((SELECT max(from_ts) FROM settled_ranges WHERE ${at} AND from_ts <= ?), ?)`;
  const key = [line.stream, line.series];
  return normalise(transaction.statement(sql).all([...key, to, ...key, from, from]) as TimeRange[]);
}

/** The settings no longer ask for this subscription. */
export function endObservation(
  transaction: Transaction,
  subscription: { stream: SnapshotStream; exchangeId: string | null; at: Micros },
): void {
  const line = subscriptionLine(transaction, subscription.stream, subscription.exchangeId);
  endWanted(transaction, line, subscription.at);
}

function subscriptionLine(
  transaction: Transaction,
  stream: SnapshotStream,
  exchangeId: string | null,
): LedgerLine {
  return { stream, series: transaction.dictionary.subscription(exchangeId) };
}
