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
  const select = (
    selected: readonly SelectorCandidate[],
    missing: Selection["missing"] = null,
  ): Selection => ({
    ...{ ids: selected.map(({ id }) => id), missing },
    ...{ unknownNames: [], suggestions: {}, ambiguousNames: [] },
  });
  const unlessEmpty = ({ length }: readonly SelectorCandidate[]) => (length === 0 ? "candidates" : null);
  switch (selector.kind) {
    case "all":
      return select(candidates, unlessEmpty(candidates));
    case "none":
      return select([]);
    case "top": {
      const top = new Set(ranking?.slice(0, selector.count));
      const selected = candidates.filter(
        ({ rankingAssetId }) => rankingAssetId === undefined || top.has(rankingAssetId),
      );
      const needsRanking = candidates.some(({ rankingAssetId }) => rankingAssetId !== undefined);
      const hasNoRanking = ranking === undefined && needsRanking;
      return select(selected, hasNoRanking ? "ranking" : unlessEmpty(selected));
    }
    case "list": {
      const index = new NameIndex(candidates);
      const found = new Map(selector.names.map((name) => [name, index.find(name)]));
      const namesOf = (isMeant: (count: number) => boolean) =>
        selector.names.filter((name) => isMeant(found.get(name)?.length ?? 0));
      const unknownNames = namesOf((count) => count === 0);
      const suggestions = unknownNames.flatMap((name) => {
        const closest = index.suggest(name);
        return closest === undefined ? [] : [[name, closest] as const];
      });
      const selected = new Set([...found.values()].flat());
      return {
        ...select(candidates.filter((candidate) => selected.has(candidate))),
        ...{ unknownNames, suggestions: Object.fromEntries(suggestions) },
        ambiguousNames: namesOf((count) => count > 1),
      };
    }
  }
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
