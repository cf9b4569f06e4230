import { Failure } from "../../model/failure.ts";
import { formatUnknownNames, resolveSelector } from "../../model/selector.ts";
import { type IndexType, indexTypes } from "../../model/stream-columns.ts";
import { computeTargetEnd, type HistoryStream } from "../../model/streams.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { type SyncContext, serviceNow } from "../context/context.ts";
import type { Directory, StreamTargets } from "./targets.ts";

/** An index that an operator has named. */
export interface NamedIndex {
  readonly indexType: IndexType;
  readonly indexId: string;
  readonly name: string;
}

/** A named index that the settings do not select for some streams of a run. */
export interface UnselectedSeries extends NamedIndex {
  readonly streams: readonly HistoryStream[];
  /** The settings select it for another stream of the run. */
  readonly isSelectedElsewhere: boolean;
}

/** Resolves names of indices. Unknown names are a usage error, raised before anything is filled. */
export function resolveIndexNames(names: readonly string[], directory: Directory): NamedIndex[] {
  const candidates = indexTypes.flatMap((indexType) =>
    directory[indexType].map((candidate) => ({ ...candidate, indexType })),
  );
  const selection = resolveSelector({ kind: "list", names }, candidates, undefined);
  if (selection.unknownNames.length > 0) {
    const { unknownNames, suggestions } = selection;
    const [first = "", ...others] = unknownNames;
    const suggestion = others.length === 0 ? suggestions[first] : undefined;
    throw new Failure(`--series: no index is called ${suggestion ? first : formatUnknownNames(selection)}`, {
      code: "usage",
      remedy: suggestion ? `did you mean ${suggestion}?` : "give a symbol, a pair, a name or an id",
    });
  }
  const chosen = new Set(selection.ids);
  return candidates
    .filter(({ id }) => chosen.has(id))
    .map(({ id, indexType, labels }) => ({ indexType, indexId: id, name: labels[0] ?? id }));
}

/** The named indices that no target of these streams contains. */
export function findUnselectedSeries(
  named: readonly NamedIndex[],
  streams: readonly StreamTargets[],
): UnselectedSeries[] {
  return named.flatMap((index) => {
    const missing = streams.filter(
      ({ targets, unresolved }) =>
        !unresolved.includes(index.indexType) &&
        !targets.some(({ indexType, indexId }) => indexType === index.indexType && indexId === index.indexId),
    );
    if (missing.length === 0) return [];
    const isSelectedElsewhere = missing.length < streams.length;
    return [{ ...index, streams: missing.map(({ stream }) => stream), isSelectedElsewhere }];
  });
}

/** Declares targets of unselected series that end now. The next declaration drops what was not fetched until then. */
export async function declareUnselected(
  context: SyncContext,
  unselected: readonly UnselectedSeries[],
  streams: readonly StreamTargets[],
  range: TimeRange | undefined,
): Promise<void> {
  for (const { stream, rules, from: earliest } of streams) {
    const own = unselected.filter((series) => series.streams.includes(stream));
    const { step } = rules;
    const from = Math.max(earliest, Math.floor((range?.from ?? earliest) / step) * step);
    const end = computeTargetEnd(rules, serviceNow(context));
    const to = Math.min(end, Math.ceil((range?.to ?? end) / step) * step);
    const targets = own.map(({ indexType, indexId }) => ({ indexType, indexId, from }));
    if (targets.length > 0)
      await context.ingest.call("commitEndedTargets", { stream, targets, rules, to }, context.signal);
  }
}
