import type { HistoryStream, SnapshotStream } from "../../model/streams.ts";
import { formatDay, type Micros } from "../../model/time.ts";
import { loseAgedOut } from "../../rule/apply.ts";
import { applyChanges, type LedgerKey, readTouched } from "../../warehouse/coverage/ledger.ts";
import { dropPendingClaims } from "../../warehouse/coverage/pending-claims.ts";
import { startRechecks } from "../../warehouse/coverage/rechecks.ts";
import type { SeriesGaps } from "../../warehouse/coverage/series-gaps.ts";
import {
  addTarget,
  declareTargets,
  endTarget,
  readTargets,
  recordBlockedReason,
  type StreamRules,
  type Target,
} from "../../warehouse/coverage/targets.ts";
import type { Transaction } from "../../warehouse/tables/transaction.ts";

/** A series that the settings select. */
export interface SeriesTarget {
  readonly indexType: string;
  readonly indexId: string;
  readonly from: Micros;
  /** Its name in the settings, for an index that is in no lookup. */
  readonly name?: string;
  /** Its name as concluded from its price: used until the service or the settings name it. */
  readonly matchedName?: string;
}

interface TargetDeclaration {
  readonly stream: HistoryStream;
  readonly targets: readonly SeriesTarget[];
  readonly rules: StreamRules;
  /** Index types whose selector could not be resolved: their open targets stay open. */
  readonly unresolvedIndexTypes: readonly string[];
  readonly at: Micros;
}

/** Declares what the settings select of a history stream; the other targets end now. */
export function commitTargets(transaction: Transaction, declaration: TargetDeclaration): void {
  const { stream, targets, rules, unresolvedIndexTypes, at } = declaration;
  const { dictionary } = transaction;
  const declared = targets.map((selected): Target => {
    const { indexType, indexId, from, name, matchedName } = selected;
    const series = dictionary.getSeriesKey(indexType, indexId);
    if (name !== undefined) dictionary.nameSeries(series, name);
    else if (matchedName !== undefined) dictionary.nameSeriesByPrice(series, matchedName);
    return { key: { stream, series }, from, ...rules };
  });
  const unresolved = readTargets(transaction, stream)
    .filter(({ indexType, to }) => to === null && unresolvedIndexTypes.includes(indexType))
    .map(({ series, from }): Target => ({ key: { stream, series }, from, ...rules }));
  declareTargets(transaction, stream, [...declared, ...unresolved], at);
  for (const { key } of declared) startRechecks(transaction, key, formatDay(at));
}

/** Declares targets that end, of series that the settings do not select. The other targets stay. */
export function commitEndedTargets(
  transaction: Transaction,
  declaration: Pick<TargetDeclaration, "stream" | "targets" | "rules"> & { readonly to: Micros },
): void {
  const { stream, targets, rules, to } = declaration;
  for (const { indexType, indexId, from } of targets) {
    const series = transaction.dictionary.getSeriesKey(indexType, indexId);
    addTarget(transaction, { key: { stream, series }, from, ...rules }, to);
  }
}

/** Ends the targets of a snapshot stream that the settings no longer select. */
export function commitSnapshotTargets(
  transaction: Transaction,
  targets: { stream: SnapshotStream; exchangeIds: readonly (string | null)[]; at: Micros },
): void {
  const { stream, exchangeIds, at } = targets;
  const selectedIds = new Set(exchangeIds.map((id) => id ?? ""));
  for (const { indexId, series, to } of readTargets(transaction, stream))
    if (to === null && !selectedIds.has(indexId)) endTarget(transaction, { stream, series }, at);
}

/** Marks gaps that left the service's window as lost. */
export function commitLostRanges(transaction: Transaction, gaps: readonly SeriesGaps[]): void {
  const plans = gaps.map(({ key, agedOut }) => {
    const changes = loseAgedOut(agedOut);
    return { key, agedOut, changes, touched: readTouched(transaction, key, changes) };
  });
  for (const { key, agedOut, changes, touched } of plans) {
    applyChanges(transaction, key, changes, touched);
    for (const { to } of agedOut) dropPendingClaims(transaction, key, to);
  }
}

export function commitBlockedReason(
  transaction: Transaction,
  { keys, reason }: { keys: readonly LedgerKey[]; reason: string | null },
): void {
  for (const key of keys) recordBlockedReason(transaction, key, reason);
}
