import { type HistoryStream, isDaily, streamTable } from "../../model/streams.ts";
import type { Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SeriesRules } from "../../rule/answer.ts";
import type { PendingClaim } from "../../rule/claim.ts";
import { type ConfirmationRules, isIncident } from "../../rule/confirm.ts";
import { type Decision, decideNotFound } from "../../rule/decide.ts";
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

/** Stores the claims of an answer. The first write: it counts the rows that they are about. */
export function storeClaims(
  transaction: Transaction,
  key: SeriesKey,
  { recorded, dropped }: Decision,
): Omit<AppliedClaims, "withdrawn"> {
  const counts = recorded.map((claim) => countRows(transaction, key, claim));
  dropClaims(transaction, dropped);
  const claims = recorded.map((claim, i) => storeClaim(transaction, key, claim, counts[i] ?? 0));
  return {
    pending: claims.filter(({ acceptedAt }) => acceptedAt === null),
    believed: claims.filter(({ acceptedAt }) => acceptedAt !== null),
  };
}

function countRows(transaction: Transaction, key: SeriesKey, { kind, range, subject }: PendingClaim): number {
  if (kind === "withdrawn") return subject.length;
  const from: Micros = Number.MIN_SAFE_INTEGER;
  return isIncident(kind) ? countStoredRows(transaction, key, { from, to: subject[0] ?? range.to }) : 0;
}

/** What the settings and the service say about the series of an answer. */
export type AnswerRules = Omit<SeriesRules, "lateness" | "step" | "isDaily">;

/** An answer that the index does not exist: 404, or 400 while others of its type are served. */
export interface NotFoundAnswer {
  readonly key: SeriesKey;
  readonly indexType: string;
  readonly range: TimeRange;
  readonly rules: AnswerRules;
  readonly confirmation: ConfirmationRules;
}

/** Counts the answer; its range is `unconfirmed` until the service has repeated it. */
export function commitNotFound(
  warehouse: WarehouseWriter,
  { key, indexType, range, rules, confirmation }: NotFoundAnswer,
): AppliedClaims {
  return warehouse.transaction((transaction) => {
    const known = {
      stored: readStoredSeries(transaction, key, indexType),
      pending: readClaims(transaction, key),
      rules: { ...rules, ...rulesOfStream(key.stream), lateness: 0 },
      confirmation,
      now: transaction.now,
    };
    const decision = decideNotFound(range, known);
    const claims = storeClaims(transaction, key, decision);
    return { ...claims, withdrawn: applyChanges(transaction, key, decision.changes) };
  });
}

export function rulesOfStream(stream: HistoryStream): Pick<SeriesRules, "step" | "isDaily"> {
  return { step: streamTable[stream].step, isDaily: isDaily(stream) };
}
