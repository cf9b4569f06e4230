import { isDaily, streamTable } from "../../model/streams.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { SeriesRules } from "../../rule/answer.ts";
import type { ConfirmationRules } from "../../rule/confirm.ts";
import { claimNotFound } from "../../rule/interpret.ts";
import type { SeriesKey } from "../../warehouse/coverage/ledger.ts";
import { readClaims } from "../../warehouse/coverage/pending-claims.ts";
import type { WarehouseWriter } from "../../warehouse/writer.ts";
import { type AppliedClaims, applyClaims } from "./apply-claims.ts";
import { readStoredSeries } from "./stored-series.ts";

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
