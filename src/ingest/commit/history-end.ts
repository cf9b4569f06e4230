import { type HistoryStream, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import { normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import {
  findTargetStart,
  findTouching,
  hasRowsInRange,
  type LedgerKey,
  NOTHING_OLDER_REASON,
  settle,
  settleNothingOlder,
} from "../../warehouse/coverage/ledger.ts";
import {
  findUnconfirmedWithdrawals,
  type MassWithdrawal,
  type WithdrawalRules,
} from "../../warehouse/coverage/mass-withdrawals.ts";
import { recordMovedEnd, settleNoLongerServed } from "../../warehouse/coverage/moved-ends.ts";
import { countStoredRows, findNewestServedRow } from "../../warehouse/rows/row-queries.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WalkPosition } from "./proven-range.ts";

/** The last page of a walk: the service has nothing older. */
interface LastPage {
  readonly position: WalkPosition;
  /** The oldest record of the page; undefined: it has none. */
  readonly oldest: Micros | undefined;
  /** Set if a second response confirmed the end: the target is settled from here up. */
  readonly emptyFrom?: Micros | undefined;
  /** Rows below may be gone because they leave the window; absent: the service has no window. */
  readonly windowStart?: Micros | undefined;
  readonly cadence: Micros;
  readonly withdrawals?: WithdrawalRules | undefined;
}

/** Where the history of a series ends, by the service's word. */
export interface HistoryEnd {
  /** The oldest record that the walk has received; without any the end of the gap. */
  readonly servedFrom: Micros;
  /** Set if the service served older records before: their rows stay, and what is open below this is lost. */
  readonly lostTo?: Micros;
  /** What to settle below the gap as well: the claim was confirmed, and believed if it had to be. */
  readonly settleFrom?: Micros | undefined;
  /** The answer that was believed just now. */
  readonly believed?: MassWithdrawal;
}

/** The claim contradicts the stored rows. */
interface UnconfirmedEnd {
  /** Set if a second response confirmed it. */
  readonly unconfirmed: MassWithdrawal | undefined;
}

type SeriesKey = LedgerKey & { readonly stream: HistoryStream };

/**
 * Judges the claim of a last page. Rows that REST served are kept whatever it claims, since a service may drop its oldest
 * records. But it must repeat the claim before open ranges are given up: it may also have failed to serve them.
 */
export function judgeHistoryEnd(
  transaction: Transaction,
  key: SeriesKey,
  page: LastPage,
): HistoryEnd | UnconfirmedEnd {
  const { gap, provenFrom } = page.position;
  // On a first page the row just below counts if it is stored: an earlier walk may have ended at it.
  const hasPrevious =
    provenFrom < gap.to || countStoredRows(transaction, key, { from: provenFrom - 1, to: provenFrom }) > 0;
  const oldestServed = page.oldest ?? (hasPrevious ? provenFrom - 1 : undefined);
  const servedFrom = oldestServed ?? gap.to;
  const { windowStart = Number.MIN_SAFE_INTEGER, emptyFrom } = page;
  const older = { from: windowStart, to: servedFrom };
  // Rows of a hole that the service had between its records are judged as withdrawn.
  const holes = normalise(findUnconfirmedWithdrawals(transaction, key, older));
  const newestOlder = subtract(normalise([older]), holes)
    .map((range) => findNewestServedRow(transaction, key, range))
    .findLast((ts) => ts !== undefined);
  if (newestOlder === undefined) return { servedFrom, settleFrom: emptyFrom };
  // No record fits in between, so the page proves the gap without its claim.
  if (oldestServed !== undefined && oldestServed - gap.from < page.cadence)
    return { servedFrom, lostTo: gap.from };
  const claimed = { from: gap.from, to: servedFrom };
  const open = subtract(normalise([claimed]), normalise(findTouching(transaction, key, claimed)));
  if (open.length === 0) return { servedFrom, lostTo: servedFrom };
  if (emptyFrom === undefined) return { unconfirmed: undefined };
  const rows = countStoredRows(transaction, key, older);
  const answer = recordMovedEnd(transaction, key, { open: claimed, rows }, page.withdrawals);
  if (answer.believedAt === null) return { unconfirmed: answer };
  // Without any record the series may have ended: what is above all its rows is empty, as for an index that was not found.
  const hasNewer = findNewestServedRow(transaction, key, { from: gap.to, to: Number.MAX_SAFE_INTEGER });
  const { step } = streamTable[key.stream];
  const lostTo =
    oldestServed === undefined && hasNewer === undefined
      ? Math.min(servedFrom, newestOlder + step)
      : servedFrom;
  return { servedFrom, lostTo, settleFrom: emptyFrom, believed: answer };
}

/** Settles what a last page proves, and what its claim settles below the gap. */
export function settleToEnd(
  transaction: Transaction,
  key: LedgerKey,
  { proven, gap, expected }: { proven: TimeRange; gap: TimeRange; expected: readonly Micros[] },
  { lostTo, settleFrom }: HistoryEnd,
): void {
  const oldest = Math.min(proven.to, ...expected.filter((ts) => ts >= proven.from));
  const end = Math.max(proven.from, Math.min(lostTo ?? oldest, proven.to));
  const below = { from: proven.from, to: end };
  if (oldest < proven.to) settle(transaction, key, { from: end, to: proven.to }, "rows");
  else if (end < proven.to)
    settle(transaction, key, { from: end, to: proven.to }, "empty", NOTHING_OLDER_REASON);
  // Without a claim that the end has moved, these rows have just left the window.
  if (lostTo !== undefined || hasRowsInRange(transaction, key, below)) {
    const targetFrom = findTargetStart(transaction, key) ?? proven.from;
    const from = settleFrom === undefined ? proven.from : Math.max(targetFrom, settleFrom);
    settleNoLongerServed(transaction, key, { from: Math.min(from, proven.from), to: end });
    return;
  }
  if (below.from < below.to) settle(transaction, key, below, "empty", NOTHING_OLDER_REASON);
  if (settleFrom !== undefined) settleNothingOlder(transaction, key, { floor: settleFrom, to: gap.from });
}
