import { isDaily, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SeriesRules, StoredSeries } from "../../rule/answer.ts";
import { applyClaim, applyPending } from "../../rule/apply.ts";
import type { PendingClaim } from "../../rule/claim.ts";
import {
  type ConfirmationRules,
  type Confirmed,
  confirm,
  type Evidence,
  isIncident,
} from "../../rule/confirm.ts";
import { claimNotFound } from "../../rule/interpret.ts";
import { applyChanges } from "../../warehouse/coverage/apply-changes.ts";
import type { SeriesKey } from "../../warehouse/coverage/ledger.ts";
import {
  dropClaims,
  readClaims,
  type StoredClaim,
  storeClaim,
} from "../../warehouse/coverage/pending-claims.ts";
import { countStoredRows } from "../../warehouse/rows/row-queries.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { readStoredSeries } from "./stored-series.ts";

export interface AppliedClaims {
  /** Stored rows that the service no longer has. */
  readonly withdrawn: number;
  /** Claims that the service must repeat: their ranges are not settled. */
  readonly pending: readonly StoredClaim[];
  /** Claims against stored rows that were accepted just now. */
  readonly believed: readonly StoredClaim[];
}

/** Confirms the claims of an answer against those before, and writes what is accepted. */
export function applyClaims(
  transaction: Transaction,
  key: SeriesKey,
  stored: StoredSeries,
  evidence: Omit<Evidence, "now">,
  before: readonly PendingClaim[],
  confirmation: ConfirmationRules,
): AppliedClaims {
  const { accepted, recorded, dropped }: Confirmed = confirm(
    { ...evidence, now: transaction.now },
    before,
    confirmation,
  );
  dropClaims(transaction, dropped);
  const claims = recorded.map((claim) =>
    storeClaim(transaction, key, claim, countRows(transaction, key, claim)),
  );
  const pending = claims.filter(({ acceptedAt }) => acceptedAt === null);
  for (const claim of pending) applyChanges(transaction, key, applyPending(claim));
  let withdrawn = 0;
  for (const claim of accepted) withdrawn += applyChanges(transaction, key, applyClaim(claim, stored));
  return { withdrawn, pending, believed: claims.filter(({ acceptedAt }) => acceptedAt !== null) };
}

function countRows(transaction: Transaction, key: SeriesKey, { kind, range, subject }: PendingClaim): number {
  if (kind === "withdrawn") return subject.length;
  const from: Micros = Number.MIN_SAFE_INTEGER;
  return isIncident(kind) ? countStoredRows(transaction, key, { from, to: subject[0] ?? range.to }) : 0;
}

/** An answer that the index does not exist: 404, or 400 while others of its type are served. */
interface NotFoundAnswer {
  readonly key: SeriesKey;
  readonly indexType: string;
  readonly range: TimeRange;
  readonly rules: Pick<
    SeriesRules,
    "period" | "settleDelay" | "quietMargin" | "windowStart" | "floor" | "present"
  >;
  readonly confirmation: ConfirmationRules;
}

/** Counts the answer; its range is `unconfirmed` until the service has repeated it. */
export function commitNotFound(
  warehouse: WarehouseWriter,
  { key, indexType, range, rules, confirmation }: NotFoundAnswer,
): AppliedClaims {
  const { step } = streamTable[key.stream];
  return warehouse.transaction((transaction) => {
    const stored = readStoredSeries(transaction, key, indexType);
    const all = { ...rules, step, isDaily: isDaily(key.stream), lateness: 0 };
    const claim = claimNotFound(range, stored, all);
    if (claim.range.from >= claim.range.to) return { withdrawn: 0, pending: [], believed: [] };
    const claims = [claim];
    const evidence = { claims, shown: undefined, oldest: undefined, windowStart: rules.windowStart };
    return applyClaims(transaction, key, stored, evidence, readClaims(transaction, key), confirmation);
  });
}
