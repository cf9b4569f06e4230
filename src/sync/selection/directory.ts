import type { SelectorCandidate } from "../../model/selector.ts";
import {
  readListedAssets,
  readListedExchanges,
  readListedMarkets,
} from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";

/** Everything that selectors can select. */
export interface Directory {
  /** Assets. */
  readonly GWA: readonly SelectorCandidate[];
  /** Markets. */
  readonly MWA: readonly SelectorCandidate[];
  readonly LX: readonly SelectorCandidate[];
  /** Names of liquid indices that were concluded from prices, by id. */
  readonly matchedNames?: ReadonlyMap<string, string>;
  readonly exchanges: readonly SelectorCandidate[];
  /** Asset ids by market capitalisation, largest first; undefined if no ranking is known. */
  readonly ranking: readonly string[] | undefined;
}

/** The name of an exchange; its id if the name is unknown. */
export function exchangeName(directory: Directory | undefined, id: string): string {
  return directory?.exchanges.find((exchange) => exchange.id === id)?.labels[0] ?? id;
}

interface AssetEntry {
  readonly id: string;
  readonly symbol: string | null;
  readonly name: string | null;
}

export function toAssetCandidates(assets: readonly AssetEntry[]): SelectorCandidate[] {
  return assets.map(
    ({ id, symbol, name }): SelectorCandidate => ({
      id,
      labels: nonEmptyLabels(symbol, name),
      rankingAssetId: id,
    }),
  );
}

export function toMarketCandidates(
  markets: readonly { id: string; baseAssetId: string | null; pair: string | null }[],
): SelectorCandidate[] {
  // A market without a base asset has no rank. An absent `rankingAssetId` would mean "always among the top".
  return markets.map(
    ({ id, baseAssetId, pair }): SelectorCandidate => ({
      id,
      labels: nonEmptyLabels(pair),
      rankingAssetId: baseAssetId ?? "",
    }),
  );
}

export function toNamedCandidates(
  named: readonly { id: string; name: string | null }[],
): SelectorCandidate[] {
  return named.map(({ id, name }) => ({ id, labels: nonEmptyLabels(name) }));
}

/** Reads the stored lookups as selector candidates. */
export function readStoredDirectory(reader: Connection): Omit<Directory, "LX" | "ranking"> {
  return {
    GWA: toAssetCandidates(readListedAssets(reader)),
    MWA: toMarketCandidates(readListedMarkets(reader)),
    exchanges: toNamedCandidates(readListedExchanges(reader)),
  };
}

function nonEmptyLabels(...texts: readonly (string | null)[]): string[] {
  return texts.filter((text) => text !== null && text !== "") as string[];
}
