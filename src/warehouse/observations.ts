import type { Micros } from "../model/instant.ts";
import { type LedgerLine, settle } from "./ledger.ts";
import type { Transaction } from "./transaction.ts";
import { endWanted, follow } from "./wanted.ts";

/** A latest-only stream has no history: what was seen at cadence is all there will ever be. */
export type ObservedStream = "exchange_ticks" | "market_caps" | "derivative_ticks";

export interface Observation {
  readonly stream: ObservedStream;
  /** Null: the subscription is to everything. */
  readonly exchangeId: string | null;
  readonly at: Micros;
  /** How long one observation speaks for: the refresh period, or the stream's `every`. */
  readonly cadence: Micros;
}

/**
 * Enters that a subscription was observed: `[at, at + cadence)` is covered, and it is followed from its first
 * observation on. Ranges merge only where they touch: an `at` taken from the service's own period (or floored to the
 * cadence) keeps the ledger short, one with jitter leaves a sliver `lost` each time, as the contract says.
 */
export function observe(transaction: Transaction, observation: Observation): void {
  const { stream, at, cadence } = observation;
  const line = subscriptionLine(transaction, stream, observation.exchangeId);
  follow(transaction, { line, from: at, settleDelay: cadence * 2, step: 1, keptFor: null }, true);
  transaction.carry(stream, line.series);
  settle(transaction, line, { from: at, to: at + cadence }, "rows");
}

/** The settings no longer ask for this subscription. */
export function endObservation(
  transaction: Transaction,
  subscription: { stream: ObservedStream; exchangeId: string | null; at: Micros },
): void {
  const line = subscriptionLine(transaction, subscription.stream, subscription.exchangeId);
  endWanted(transaction, line, subscription.at);
}

function subscriptionLine(
  transaction: Transaction,
  stream: ObservedStream,
  exchangeId: string | null,
): LedgerLine {
  return { stream, series: transaction.dictionary.subscription(exchangeId) };
}
