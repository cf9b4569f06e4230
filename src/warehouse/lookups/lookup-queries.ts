import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { Connection } from "../sqlite/connection.ts";

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

/** One ranking carries one moment, give or take what the service needs to compute it. */
const ONE_RANKING = 300 * MICROS_PER_SECOND;
/** What was ranked so lately still counts, where the newest ranking lacks most of it. */
const LATELY = 7 * MICROS_PER_DAY;

/**
 * Asset ids by the newest stored market capitalisations, largest first; undefined when none was ever stored. A ranking
 * that lacks most of what was ranked lately is the service's mistake: the last word on each asset counts then.
 */
export function storedRanking(connection: Connection): string[] | undefined {
  const ranked = connection
    .statement(
      `WITH latest AS MATERIALIZED (SELECT asset_id AS id, ts, rank, market_cap FROM latest_market_caps)
      SELECT id, (SELECT max(ts) FROM latest) - ts AS age FROM latest WHERE age < ?
      ORDER BY rank IS NULL, rank, market_cap DESC`,
    )
    .all([LATELY]) as { id: string; age: Micros }[];
  const newest = ranked.filter(({ age }) => age < ONE_RANKING);
  const ids = (isShrunken(newest.length, ranked.length) ? ranked : newest).map(({ id }) => id);
  return ids.length === 0 ? undefined : ids;
}

/** Whether a list of so many lacks so much of what was known that it is the service's mistake. */
export function isShrunken(listed: number, known: number): boolean {
  return listed < known / 2;
}

/** The markets of each exchange, by its id, as far as the lookups name them. */
export function marketsByExchange(connection: Connection): Map<string, string[]> {
  const rows = connection
    .statement(
      "SELECT exchange_id, market_id FROM exchange_markets WHERE delisted_at IS NULL ORDER BY exchange_id, market_id",
    )
    .raw()
    .all() as [string, string][];
  const markets = new Map<string, string[]>();
  for (const [exchangeId, marketId] of rows) {
    const own = markets.get(exchangeId);
    if (own) own.push(marketId);
    else markets.set(exchangeId, [marketId]);
  }
  return markets;
}
