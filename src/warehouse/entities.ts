import type { Connection } from "./connection.ts";

export interface KnownAsset {
  readonly id: string;
  readonly symbol: string | null;
  readonly name: string | null;
}

export interface KnownMarket {
  readonly id: string;
  readonly baseAssetId: string | null;
  readonly pair: string | null;
}

export interface Named {
  readonly id: string;
  readonly name: string | null;
}

/** Every asset that was ever listed: one that the service stops listing keeps its history. */
export function knownAssets(connection: Connection): KnownAsset[] {
  return connection.statement("SELECT id, symbol, name FROM assets ORDER BY id").all() as KnownAsset[];
}

export function knownMarkets(connection: Connection): KnownMarket[] {
  return connection
    .statement("SELECT id, base_asset_id AS baseAssetId, pair FROM markets ORDER BY id")
    .all() as KnownMarket[];
}

export function knownExchanges(connection: Connection): Named[] {
  return connection.statement("SELECT id, name FROM exchanges ORDER BY id").all() as Named[];
}

/** How many derivative contracts were ever listed. */
export function contractCount(connection: Connection): number {
  return connection.statement("SELECT count(*) FROM derivative_contracts").pluck().get() as number;
}

/** Indices of a family that records were stored of, for families that no lookup lists. */
export function knownIndices(connection: Connection, indexType: string): Named[] {
  return connection
    .statement("SELECT index_id AS id, name FROM series WHERE index_type = ? ORDER BY series")
    .all([indexType]) as Named[];
}

/** Asset ids by the newest stored market capitalisations, largest first; undefined when none was ever stored. */
export function storedRanking(connection: Connection): string[] | undefined {
  // One ranking carries one moment, give or take what the service needs to compute it.
  const ids = connection
    .statement(
      `WITH latest AS MATERIALIZED (SELECT asset_id, ts, rank, market_cap FROM latest_market_caps)
      SELECT asset_id FROM latest WHERE ts > (SELECT max(ts) FROM latest) - 300000000
      ORDER BY rank IS NULL, rank, market_cap DESC`,
    )
    .pluck()
    .all() as string[];
  return ids.length === 0 ? undefined : ids;
}
