import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { AssetRow, ExchangeRow, MarketRow } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import { latestTs } from "../views/data-views.ts";

/** The view `markets` adds `pair` to the row. */
type ListedMarket = Pick<MarketRow, "id" | "baseAssetId"> & { readonly pair: string | null };

/** Every asset that was ever listed, including delisted ones: their history is still served. */
export function readListedAssets(connection: Connection) {
  type Row = Pick<AssetRow, "id" | "symbol" | "name">;
  return connection.rows<Row>("SELECT id, symbol, name FROM assets ORDER BY id");
}

export function readListedMarkets(connection: Connection): ListedMarket[] {
  return connection.rows<ListedMarket>(
    "SELECT id, base_asset_id AS baseAssetId, pair FROM markets ORDER BY id",
  );
}

export function readListedExchanges(connection: Connection) {
  return connection.rows<Pick<ExchangeRow, "id" | "name">>("SELECT id, name FROM exchanges ORDER BY id");
}

/** Includes delisted contracts. */
export function countContracts(connection: Connection): number {
  return connection.value<number>("SELECT count(*) FROM derivative_contracts");
}

/** The derivative types of which the exchange has stored contracts. */
export function readDerivativeTypes(connection: Connection, exchangeId: string): string[] {
  return connection.values<string>(
    "SELECT DISTINCT derivative_type FROM derivative_contracts WHERE exchange_id = ?",
    [exchangeId],
  );
}

/** Indices of a type that have stored records, for index types that no lookup lists. */
export function readStoredIndices(connection: Connection, indexType: string) {
  return connection.rows<{ id: string; name: string; isServed: 0 | 1 }>(storedIndicesSql, [indexType]);
}

/** Served: REST has shown records of it, or a price that named it. */
const storedIndicesSql = `SELECT index_id AS id, name, name_from IS NOT NULL
    OR EXISTS (SELECT 1 FROM publications u WHERE u.series = s.series AND u.published_to > 0)
    OR EXISTS (SELECT 1 FROM settled_ranges g WHERE g.series = s.series AND g.proof = 'rows') AS isServed
  FROM series s WHERE index_type = ? ORDER BY series`;

/** The timestamps of one ranking differ by less than this: the service needs some time to compute it. */
const MAX_RANKING_SPREAD_MICROS = 300 * MICROS_PER_SECOND;
/** Ranks up to this age are used if the newest ranking is incomplete. */
const RECENT_RANKING_MICROS = 7 * MICROS_PER_DAY;

/** Not from the view `latest_market_caps`: SQLite would compile its forty columns at every start for these four. */
const rankingSql = `WITH latest AS MATERIALIZED (SELECT s.index_id AS id, r.ts, r.rank, r.market_cap
    FROM series s CROSS JOIN market_cap_rows r WHERE r.series = s.series AND r.ts = ${latestTs("market_caps", "s.series")})
  SELECT id, (SELECT max(ts) FROM latest) - ts AS age FROM latest WHERE age < ?
  ORDER BY rank IS NULL, rank, market_cap DESC`;

/**
 * Asset ids by their newest market cap, largest first; undefined when none was ever stored. If the newest ranking lacks
 * most of the recently ranked assets, it is probably wrong: then uses the latest rank of each asset.
 */
export function readRanking(connection: Connection): string[] | undefined {
  const ranked = connection.rows<{ id: string; age: Micros }>(rankingSql, [RECENT_RANKING_MICROS]);
  const newest = ranked.filter(({ age }) => age < MAX_RANKING_SPREAD_MICROS);
  const ids = (isSuspiciouslyShort(newest.length, ranked.length) ? ranked : newest).map(({ id }) => id);
  return ids.length === 0 ? undefined : ids;
}

/** Whether a list has so few of the known entries that it is probably wrong. */
export function isSuspiciouslyShort(listed: number, known: number): boolean {
  return listed < known / 2;
}

/** Listed market ids by exchange id. */
export function readMarketsByExchange(connection: Connection): Map<string, string[]> {
  const sql = `SELECT exchange_id, market_id FROM exchange_markets WHERE delisted_at IS NULL
    ORDER BY exchange_id, market_id`;
  const byExchange = Map.groupBy(connection.tuples<readonly [string, string]>(sql), ([id]) => id);
  return new Map([...byExchange].map(([id, own]) => [id, own.map(([, marketId]) => marketId)]));
}
