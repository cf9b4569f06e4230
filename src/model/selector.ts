/** Which series of a family the settings ask for. */
export type Selector =
  | { readonly kind: "all" }
  | { readonly kind: "none" }
  /** The first `count` by the latest market capitalisation. */
  | { readonly kind: "top"; readonly count: number }
  /** Symbols, pairs, names or ids, as people write them. */
  | { readonly kind: "list"; readonly names: readonly string[] };

/** Something that a selector may pick: an asset, a market, an exchange, an LX index. */
export interface Candidate {
  readonly id: string;
  /** What people call it: symbol, pair, name. */
  readonly labels: readonly string[];
  /** The asset whose rank counts under `top`; left out where ranks mean nothing, and `top` then means all. */
  readonly rankedBy?: string;
}

export interface Selection {
  readonly ids: readonly string[];
  /** Listed names that fit no candidate. */
  readonly unknown: readonly string[];
  /** Listed names that several candidates share: all of them are selected. */
  readonly shared: readonly string[];
  /** False when `top` was asked and no ranking is known: nothing can be said about what is wanted. */
  readonly resolved: boolean;
}

/**
 * Applies a selector to what the service lists. `ranking` holds asset ids, largest first; undefined when none was
 * ever seen. An id fits exactly; a label fits exactly or, where none does, whatever its case.
 */
export function select(
  selector: Selector,
  candidates: readonly Candidate[],
  ranking: readonly string[] | undefined,
): Selection {
  const every = { ids: candidates.map(({ id }) => id), unknown: [], shared: [], resolved: true };
  switch (selector.kind) {
    case "all":
      return every;
    case "none":
      return { ...every, ids: [] };
    case "top":
      return selectTop(selector.count, candidates, ranking);
    case "list":
      return selectListed(selector.names, candidates);
  }
}

function selectTop(
  count: number,
  candidates: readonly Candidate[],
  ranking: readonly string[] | undefined,
): Selection {
  const first = new Set(ranking?.slice(0, count));
  const picked = candidates.filter(({ rankedBy }) => rankedBy === undefined || first.has(rankedBy));
  const needsRanking = candidates.some(({ rankedBy }) => rankedBy !== undefined);
  return {
    ids: picked.map(({ id }) => id),
    unknown: [],
    shared: [],
    resolved: ranking !== undefined || !needsRanking,
  };
}

function selectListed(names: readonly string[], candidates: readonly Candidate[]): Selection {
  const byName = new Map<string, Set<string>>();
  const file = (name: string, id: string) => {
    const ids = byName.get(name);
    if (ids) ids.add(id);
    else byName.set(name, new Set([id]));
  };
  for (const { id, labels } of candidates) {
    file(`id ${id}`, id);
    for (const label of labels) {
      file(`label ${label}`, id);
      file(`folded ${label.toLowerCase()}`, id);
    }
  }
  const picked = new Set<string>();
  const unknown: string[] = [];
  const shared: string[] = [];
  for (const name of names) {
    const ids =
      byName.get(`id ${name}`) ?? byName.get(`label ${name}`) ?? byName.get(`folded ${name.toLowerCase()}`);
    if (!ids) unknown.push(name);
    else {
      if (ids.size > 1) shared.push(name);
      for (const id of ids) picked.add(id);
    }
  }
  return {
    ids: candidates.filter(({ id }) => picked.has(id)).map(({ id }) => id),
    unknown,
    shared,
    resolved: true,
  };
}
