import { MICROS_PER_DAY } from "../../model/time.ts";
import { decimalColumns, fromAside, isSettled, presentTs, timeText } from "./sql-fragments.ts";
import { repeatsPrice } from "./stale-price.ts";

/*
 * Each view reads `dictionary CROSS JOIN rows`: CROSS makes SQLite walk the (small) dictionary first and seek the rows
 * by their primary key, so that a range of one series is one range scan, and a cross-section one seek per series.
 * Left to itself without statistics the planner may scan all rows instead.
 */

const decimals = (row: string, columns: readonly string[]) =>
  columns.map((column) => decimalColumns(row, column)).join(",\n  ");

const qualityAndExtra = `${fromAside("r", "quality")} AS quality, ${fromAside("r", "extra")} AS extra`;

const dayTs = "CAST(strftime('%s', r.day) AS INTEGER) * 1000000";
const dayEnd = `${dayTs} + 86400000000`;

interface RowView {
  readonly columns: string;
  readonly dictionary: string;
  readonly rows: string;
  readonly key: string;
}

const indexTicks: RowView = {
  columns: `s.index_type, s.index_id, s.name, r.ts, ${timeText("r.ts")} AS time,
  ${decimals("r", ["price", "volume", "tick_volume"])},
  ${isSettled("index_ticks", "r.series", "r.ts")} AS is_settled,
  CASE r.source WHEN 0 THEN 'rest' ELSE 'live' END AS source, ${qualityAndExtra}`,
  dictionary: "series s",
  rows: "index_tick_rows",
  key: "series",
};

/** How long one ticker speaks for: the settle delay of an observed stream is two of its periods. Read once a query. */
export const tickerPeriod = `(SELECT coalesce(max(w.settle_delay) / 2, 30000000) FROM wanted_ranges w WHERE w.stream = 'exchange_ticks')`;

const exchangeTicks: RowView = {
  columns: `s.exchange_id, s.market_id, s.exchange, s.pair, r.ts, ${timeText("r.ts")} AS time,
  ${decimals("r", ["last", "bid", "ask", "volume"])},
  ${timeText("r.last_moved")} AS last_moved,
  (r.ts - r.last_moved) / 1000000.0 AS unmoved_seconds,
  CASE WHEN r.last_moved IS NULL THEN ${repeatsPrice("r", tickerPeriod)} ELSE r.ts - r.last_moved > ${tickerPeriod} END AS is_stale,
  CASE r.source WHEN 0 THEN 'rest' ELSE 'live' END AS source, ${qualityAndExtra}`,
  dictionary: "listings s",
  rows: "exchange_tick_rows",
  key: "listing",
};

const marketCaps: RowView = {
  columns: `s.index_id AS asset_id, s.name AS symbol, r.ts, ${timeText("r.ts")} AS time, r.rank, r.volume_rank,
  ${decimals("r", [
    "price",
    "volume",
    "market_cap",
    "total_market_cap",
    "free_float_supply",
    "total_supply",
    "change_24h",
    "change_7d",
    "change_30d",
  ])},
  ${qualityAndExtra}`,
  dictionary: "series s",
  rows: "market_cap_rows",
  key: "series",
};

const derivativeTicks: RowView = {
  columns: `s.id AS contract_id, s.derivative_type, s.exchange_id, s.market_id, s.exchange_name, r.ts, ${timeText("r.ts")} AS time,
  ${decimals("r", [
    "price",
    "volume",
    "volume_usd",
    "open_interest",
    "open_interest_usd",
    "bid",
    "ask",
    "index_price",
    "mark_price",
    "funding_rate",
  ])},
  ${qualityAndExtra}`,
  dictionary: "contracts s",
  rows: "derivative_tick_rows",
  key: "contract",
};

const all = ({ columns, dictionary, rows, key }: RowView) =>
  `SELECT ${columns}\nFROM ${dictionary} CROSS JOIN ${rows} r ON r.${key} = s.${key}`;

/** A row from the far future is kept, but it is nobody's latest. */
const latest = ({ columns, dictionary, rows, key }: RowView) =>
  `SELECT ${columns}\nFROM ${dictionary} CROSS JOIN ${rows} r ON r.${key} = s.${key}
  AND r.ts = (SELECT max(n.ts) FROM ${rows} n WHERE n.${key} = s.${key} AND n.ts < ${presentTs} + ${MICROS_PER_DAY})`;

export const rowViews: Record<string, string> = {
  index_ticks: all(indexTicks),
  exchange_ticks: all(exchangeTicks),
  market_caps: all(marketCaps),
  derivative_ticks: all(derivativeTicks),
  latest_index_ticks: latest(indexTicks),
  latest_exchange_ticks: latest(exchangeTicks),
  latest_market_caps: latest(marketCaps),
  latest_derivative_ticks: latest(derivativeTicks),

  // A bar is final once its day is over and the ledger holds the whole day.
  ohlcv: `SELECT s.index_type, s.index_id, s.name, r.day,
  ${decimals("r", ["open", "high", "low", "close", "volume", "vwap", "twap", "volume_usd"])},
  ${dayEnd} <= ${presentTs} AND ${isSettled("ohlcv", "r.series", dayTs, dayEnd)} AS is_final,
  r.record_id, ${qualityAndExtra}
FROM series s CROSS JOIN daily_bar_rows r ON r.series = s.series`,
};
