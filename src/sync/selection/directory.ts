import type { Candidate } from "../../model/selector.ts";
import { knownAssets, knownExchanges, knownMarkets } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";

/** All that selectors may pick from. */
export interface Directory {
  /** Assets. */
  readonly GWA: readonly Candidate[];
  /** Markets. */
  readonly MWA: readonly Candidate[];
  readonly LX: readonly Candidate[];
  readonly exchanges: readonly Candidate[];
  /** Asset ids by market capitalisation, largest first; undefined when none was ever seen. */
  readonly ranking: readonly string[] | undefined;
}

interface AssetLike {
  readonly id: string;
  readonly symbol: string | null;
  readonly name: string | null;
}

export function assetCandidates(assets: readonly AssetLike[]): Candidate[] {
  return assets.map(({ id, symbol, name }) => ({ id, labels: labels(symbol, name), rankedBy: id }));
}

export function marketCandidates(
  markets: readonly { id: string; baseAssetId: string | null; pair: string | null }[],
): Candidate[] {
  // A market whose base asset is not named has no rank, and `rankedBy` left out would mean "always among the top".
  return markets.map(({ id, baseAssetId, pair }) => ({
    id,
    labels: labels(pair),
    rankedBy: baseAssetId ?? "",
  }));
}

export function namedCandidates(named: readonly { id: string; name: string | null }[]): Candidate[] {
  return named.map(({ id, name }) => ({ id, labels: labels(name) }));
}

/** What the warehouse knows of the lookups. */
export function storedDirectory(reader: Connection): Omit<Directory, "LX" | "ranking"> {
  return {
    GWA: assetCandidates(knownAssets(reader)),
    MWA: marketCandidates(knownMarkets(reader)),
    exchanges: namedCandidates(knownExchanges(reader)),
  };
}

function labels(...texts: readonly (string | null)[]): string[] {
  return texts.filter((text) => text !== null && text !== "") as string[];
}
