import type { TimeRange } from "../../model/time-range.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import { decideNotFound } from "../../rule/decide.ts";
import { applyChanges, type SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { readClaims } from "../../warehouse/coverage/pending-claims.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { type AnswerRules, readStoredSeries, rulesOfStream } from "./stored-series.ts";
import { type AppliedClaims, countClaimed, storeClaims } from "./write-page.ts";

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
    const counts = countClaimed(transaction, key, decision);
    const claims = storeClaims(transaction, key, decision, counts);
    return { ...claims, withdrawn: applyChanges(transaction, key, decision.changes, decision.touched) };
  });
}
