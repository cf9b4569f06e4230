import { type Named, NameIndex } from "./name-index.ts";

/** A setting that says which assets, markets, exchanges or indices to sync. */
export type Selector =
  | { readonly kind: "all" }
  | { readonly kind: "none" }
  /** The first `count` by market capitalisation. */
  | { readonly kind: "top"; readonly count: number }
  /** Symbols, pairs, names or ids, as users write them. */
  | { readonly kind: "list"; readonly names: readonly string[] };

/** What a selector may select: an asset, a market, an exchange, an LX index. */
export interface SelectorCandidate extends Named {
  /** The asset whose rank counts for `top`. Absent if the candidate has no rank; `top` then always selects it. */
  readonly rankingAssetId?: string;
}

/** What a selector resolves to. */
export interface Selection {
  readonly ids: readonly string[];
  /** Listed names that match no candidate. */
  readonly unknownNames: readonly string[];
  /** The closest known label of each unknown name that has one. */
  readonly suggestions: Readonly<Record<string, string>>;
  /** Listed names that match several candidates: all of them are selected. */
  readonly ambiguousNames: readonly string[];
  /** What `all` and `top` lack; the selection is then unknown, not empty. `candidates`: nothing to select is known. */
  readonly missing: "ranking" | "candidates" | null;
}

/** The text for a selector that lacks candidates: `gaps` finds it in the last error of a stream. */
export const NOTHING_SELECTED = "resolves to nothing";

/**
 * Applies a selector to what the service lists. `ranking`: asset ids, largest first; undefined if none is known yet.
 * Names are read by `NameIndex`.
 */
export function resolveSelector(
  selector: Selector,
  candidates: readonly SelectorCandidate[],
  ranking: readonly string[] | undefined,
): Selection {
  const everything = {
    ids: candidates.map(({ id }) => id),
    unknownNames: [],
    suggestions: {},
    ambiguousNames: [],
    missing: candidates.length === 0 ? ("candidates" as const) : null,
  };
  switch (selector.kind) {
    case "all":
      return everything;
    case "none":
      return { ...everything, ids: [], missing: null };
    case "top":
      return selectTop(selector.count, candidates, ranking);
    case "list":
      return selectListed(selector.names, candidates);
  }
}

function selectTop(
  count: number,
  candidates: readonly SelectorCandidate[],
  ranking: readonly string[] | undefined,
): Selection {
  const topAssetIds = new Set(ranking?.slice(0, count));
  const selected = candidates.filter(
    ({ rankingAssetId }) => rankingAssetId === undefined || topAssetIds.has(rankingAssetId),
  );
  const needsRanking = candidates.some(({ rankingAssetId }) => rankingAssetId !== undefined);
  return {
    ids: selected.map(({ id }) => id),
    unknownNames: [],
    suggestions: {},
    ambiguousNames: [],
    missing: ranking === undefined && needsRanking ? "ranking" : selected.length === 0 ? "candidates" : null,
  };
}

function selectListed(names: readonly string[], candidates: readonly SelectorCandidate[]): Selection {
  const index = new NameIndex(candidates);
  const selected = new Set<SelectorCandidate>();
  const unknownNames: string[] = [];
  const ambiguousNames: string[] = [];
  for (const name of names) {
    const found = index.find(name);
    if (found.length === 0) unknownNames.push(name);
    if (found.length > 1) ambiguousNames.push(name);
    for (const candidate of found) selected.add(candidate);
  }
  const suggestions = unknownNames.flatMap((name) => {
    const closest = index.suggest(name);
    return closest === undefined ? [] : [[name, closest] as const];
  });
  return {
    ids: candidates.filter((candidate) => selected.has(candidate)).map(({ id }) => id),
    unknownNames,
    suggestions: Object.fromEntries(suggestions),
    ambiguousNames,
    missing: null,
  };
}

/** Unknown names, each with its suggestion: `BCT (did you mean BTC?), XYZ`. */
export function formatUnknownNames({
  unknownNames,
  suggestions,
}: Pick<Selection, "unknownNames" | "suggestions">): string {
  return unknownNames
    .map((name) => (suggestions[name] === undefined ? name : `${name} (did you mean ${suggestions[name]}?)`))
    .join(", ");
}
