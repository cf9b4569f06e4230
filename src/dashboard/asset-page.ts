import type { AssetResult, AssetSection, AssetSectionKey, UnknownAsset } from "../model/answers/asset.ts";
import { findClosestWords } from "../model/did-you-mean.ts";
import { quoteText } from "../model/sql-text.ts";
import { DAYS_PER_YEAR, formatDay, formatTimestamp, MICROS_PER_DAY, type Micros } from "../model/time.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";

interface KnownAsset {
  readonly asset_id: string;
  readonly symbol: string;
  readonly name: string | null;
}

const DAYS = 7;
const MAX_NEAR_NAMES = 5;

/** Of several assets with one symbol the best-ranked has it. */
const assetSql = `SELECT a.id AS asset_id, a.symbol, a.name FROM assets a LEFT JOIN latest_market_caps m ON m.asset_id = a.id
  WHERE a.id = :name OR a.symbol = :name COLLATE NOCASE
  ORDER BY a.id = :name DESC, a.symbol = :name DESC, m.rank IS NULL, m.rank LIMIT 1`;

/**
 * Reads the page of one asset. Every part is a query over the relations that users have, so that each figure leads to the SQL
 * that made it.
 */
export function readAsset(reader: Connection, name: string, now: Micros): AssetResult | UnknownAsset {
  return reader.database.transaction(() => {
    const asset = reader.statement<KnownAsset>(assetSql).get({ name });
    if (!asset) {
      const symbols = reader.statement<string>("SELECT DISTINCT symbol FROM assets").pluck().all();
      return { near: findClosestWords(name, symbols).slice(0, MAX_NEAR_NAMES) };
    }
    const sections = Object.entries(describeSections(asset, now)).map(
      ([key, sql]): AssetSection => ({
        key: key as AssetSectionKey,
        sql,
        rows: reader.database.prepare<[], AssetSection["rows"][number]>(sql).all(),
      }),
    );
    return { generated_at: formatTimestamp(now), ...asset, sections };
  })();
}

function describeSections(
  { asset_id, symbol }: KnownAsset,
  now: Micros,
): Readonly<Record<AssetSectionKey, string>> {
  const id = quoteText(asset_id);
  const ofIndex = `index_type = 'GWA' AND index_id = ${id}`;
  const pair = quoteText(`${symbol}/USD`);
  const ofMarkets = `market_id IN (SELECT id FROM markets WHERE base_asset_id = ${id})`;
  const since = now - DAYS * MICROS_PER_DAY;
  return {
    market: `SELECT rank, price, price_change_24h, price_change_7d, price_change_30d, market_cap, volume * price AS volume_usd, time
FROM latest_market_caps WHERE asset_id = ${id}`,
    index: `SELECT price, time, is_settled, age_seconds FROM latest_index_ticks WHERE ${ofIndex}`,
    hours: `SELECT ts, close, coverage, is_complete FROM bars_1h
WHERE ${ofIndex} AND ts >= ${since - (since % 3_600_000_000)} ORDER BY ts`,
    coverage: `SELECT stream, proof, min(from_time) AS from_time, max(to_time) AS to_time, sum(to_ts - from_ts) / 1e6 AS seconds
FROM coverage WHERE ${ofIndex} GROUP BY stream, proof ORDER BY stream, from_time`,
    gaps: `SELECT stream, state, reason, from_time, to_time, (to_ts - from_ts) / 1e6 AS seconds
FROM gaps WHERE ${ofIndex} AND state <> 'unconfirmed' ORDER BY to_ts DESC LIMIT 10`,
    revisions: `SELECT stream, time, before, after, changed_at FROM revisions WHERE ${ofIndex} ORDER BY changed_at DESC LIMIT 5`,
    daily: `SELECT day, close, service_close, largest_rel_diff, coverage, is_complete FROM reconcile_ohlcv
WHERE ${ofIndex} AND day >= '${formatDay(since)}' ORDER BY day DESC`,
    exchanges: `SELECT t.exchange, t.last, d.deviation_bps, t.volume * t.last AS volume_usd, t.age_seconds, s.quality
FROM latest_exchange_ticks t CROSS JOIN index_deviation d CROSS JOIN spread s
WHERE t.pair = ${pair} AND t.is_live = 1 AND d.exchange_id = t.exchange_id AND d.market_id = t.market_id AND d.ts = t.ts
  AND s.exchange_id = t.exchange_id AND s.market_id = t.market_id AND s.ts = t.ts
ORDER BY s.quality IS NOT NULL, volume_usd DESC LIMIT 10`,
    futures: `SELECT exchange, contract, days_to_expiry, price, basis, annualised_basis FROM latest_futures_curve
WHERE ${ofMarkets} AND is_live = 1 ORDER BY days_to_expiry, exchange LIMIT 50`,
    perpetuals: `SELECT exchange, contract, premium, funding_rate, funding_rate * 3 * ${DAYS_PER_YEAR} AS funding_per_year
FROM latest_perpetuals WHERE ${ofMarkets} AND is_live = 1 ORDER BY open_interest DESC LIMIT 10`,
  };
}
