import type { SnapshotStream } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { LedgerChange } from "../../rule/apply.ts";
import { noSnapshot, type SnapshotState } from "../../rule/snapshot.ts";
import type { Transaction } from "../tables/transaction.ts";
import { applyChanges, findTouching, type LedgerKey, readTouched } from "./ledger.ts";
import { readAbsentEntries, storeAbsentEntries } from "./pending-claims.ts";
import { openTarget, readTargetsOfKey } from "./targets.ts";

/** A ledger key of a snapshot stream. */
interface SnapshotSubscription {
  readonly stream: SnapshotStream;
  /** Null: the subscription is to all exchanges. */
  readonly exchangeId: string | null;
}

/** The ledger of a subscription, for the rule. `hadRows`: any of its snapshots had. */
export function readStoredSnapshots(transaction: Transaction, subscription: SnapshotSubscription) {
  const key = subscriptionKey(transaction, subscription);
  const sql = "SELECT 1 FROM settled_ranges WHERE stream = ? AND series = ? AND proof = 'rows' LIMIT 1";
  return {
    settledRanges: (range: TimeRange) => findTouching(transaction, key, range),
    get hadRows() {
      return transaction.findRow(sql, [key.stream, key.series]) !== undefined;
    },
  };
}

const SHORTER = "shorter snapshot";
const listName = ({ stream, exchangeId }: SnapshotSubscription) => `${stream} ${exchangeId ?? ""}`;

/** What the snapshots of the subscription have shown so far. */
export function readSnapshotState(transaction: Transaction, subscription: SnapshotSubscription) {
  const { stream, series } = subscriptionKey(transaction, subscription);
  const sql = "SELECT state FROM snapshot_states WHERE stream = ? AND series = ?";
  const state = JSON.parse(transaction.findValue<string>(sql, [stream, series]) ?? "{}") as SnapshotState;
  const short = readAbsentEntries(transaction, SHORTER, listName(subscription));
  return { ...noSnapshot, ...state, short };
}

export function storeSnapshotState(
  transaction: Transaction,
  subscription: SnapshotSubscription,
  { short, ...state }: SnapshotState,
): void {
  const { stream, series } = subscriptionKey(transaction, subscription);
  const sql = "REPLACE INTO snapshot_states (stream, series, state) VALUES (?, ?, ?)";
  transaction.run(sql, [stream, series, JSON.stringify(state)]);
  storeAbsentEntries(transaction, SHORTER, listName(subscription), short);
}

export type SnapshotPlan = Readonly<ReturnType<typeof planSnapshotChanges>>;

/** What the rule of snapshots or of live periods decided, and what is stored where that is written. */
export function planSnapshotChanges(
  transaction: Transaction,
  subscription: SnapshotSubscription & { readonly cadence: Micros },
  changes: readonly LedgerChange[],
) {
  const key = subscriptionKey(transaction, subscription);
  return {
    key,
    /** How long one snapshot is valid. */
    cadence: subscription.cadence,
    changes,
    touched: readTouched(transaction, key, changes),
    targets: readTargetsOfKey(transaction, key),
  };
}

/** Writes the plan, and opens the target at the first snapshot: the settings select it. */
export function writeSnapshotChanges(
  transaction: Transaction,
  { key, cadence, changes, touched, targets }: SnapshotPlan,
): void {
  const settled = changes.filter((change) => change.kind === "settle");
  if (settled.length > 0) {
    const from = Math.min(...settled.map(({ range }) => range.from));
    const rules = { settleDelay: cadence * 2, period: cadence, step: 1, serviceWindow: null };
    openTarget(transaction, { key, from, ...rules }, true, targets);
  }
  if (settled.some(({ proof }) => proof === "rows")) transaction.markWritten(key.stream, key.series);
  applyChanges(transaction, key, changes, touched);
}

function subscriptionKey(transaction: Transaction, { stream, exchangeId }: SnapshotSubscription): LedgerKey {
  return { stream, series: transaction.dictionary.getSubscriptionKey(exchangeId) };
}
