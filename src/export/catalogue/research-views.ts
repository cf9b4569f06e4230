import { barWidths, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { optionGreeksView } from "../../warehouse/views/option-greeks.ts";
import {
  buildResearchViews,
  ifUsd,
  joinedBest,
  MAX_INDEX_AGE,
  MAX_QUOTE_PERIODS,
  type ResearchParts,
  returnsView,
} from "../../warehouse/views/research-views.ts";
import { atHourStart, standsStill } from "../../warehouse/views/stale-price.ts";
import { duckDbDialect } from "./duckdb-dialect.ts";

const barBefore = (sql: string) => `CASE WHEN b.p.ts = b.ts - ${barWidths["1h"]} THEN ${sql} END`;

/** The bar before is a struct `p` beside the bar: a join would compute all bars twice. */
const hourlyBars = `FROM (SELECT *, lag({ts: ts, close: close, close_exact: close_exact, coverage: coverage, is_complete: is_complete,
    quality: quality}) OVER (PARTITION BY index_type, index_id, name ORDER BY ts) AS p FROM bars_1h) b`;
const returnParts = {
  names: "b",
  before: barBefore,
  digitsBefore: barBefore("p.close_exact"),
  from: hourlyBars,
};

/**
 * The newest ticks of the market's average (w) and of both assets in USD (b, q) as of `t`. `needed`: the tickers that use
 * them; if none does, DuckDB reads no index tick.
 */
function indexJoins(needed: string): string {
  const asOf = (alias: string, type: string, id: string) =>
    `ASOF LEFT JOIN (SELECT index_id, ts, price FROM index_ticks_stored WHERE index_type = '${type}' AND index_id IN (
      SELECT ${id} FROM ${needed} t LEFT JOIN markets m ON m.id = t.market_id)) ${alias} ON ${alias}.index_id = ${id} AND ${alias}.ts <= t.ts`;
  return `LEFT JOIN markets m ON m.id = t.market_id LEFT JOIN assets z ON z.id = m.quote_asset_id
  ${asOf("w", "MWA", "t.market_id")}
  ${asOf("b", "GWA", "m.base_asset_id")}
  ${asOf("q", "GWA", "m.quote_asset_id")}`;
}

/** A column of an index tick, null if the tick is too old. */
const recent = (alias: string, column: string) =>
  `CASE WHEN ${alias}.ts > t.ts - ${MAX_INDEX_AGE} THEN ${alias}.${column} END`;
const average = recent("w", "price");
const crossRate = `${recent("b", "price")} / ${ifUsd("1.0", `nullif(${recent("q", "price")}, 0)`)}`;
const quoteTs = ifUsd(recent("b", "ts"), recent("q", "ts"));

/** The first ticker `h` of the hour before `row`, and whether that one has not moved since. */
const hourJoin = (row: string) =>
  `ASOF LEFT JOIN (SELECT exchange_id, market_id, ts, last, bid, ask, ts - unmoved_seconds * ${MICROS_PER_SECOND} AS last_moved
      FROM exchange_ticks) h ON h.exchange_id = ${row}.exchange_id AND h.market_id = ${row}.market_id AND ${atHourStart(row)}`;
const hourStart = { last: "h.last", bid: "h.bid", ask: "h.ask", ts: "h.ts", lastMoved: "h.last_moved" };
const still = (row: string, tickerPeriod: Micros) =>
  standsStill(row, `(${row}.unmoved_seconds * ${MICROS_PER_SECOND})`, hourStart, String(tickerPeriod));

/**
 * The newest quotes of each exchange as of each ticker, and the best of them. The pair adds nothing to the market, but DuckDB
 * passes a condition on it down to every scan.
 */
function bestQuotes(ticks: string, tickerPeriod: Micros): string {
  const isSame = (a: string, b: string) => `${a}.pair = ${b}.pair AND ${a}.market_id = ${b}.market_id`;
  const moves = `NOT coalesce(${still("o", tickerPeriod)}, false)`;
  return `LEFT JOIN (
    SELECT moments.pair, moments.market_id, moments.ts, max(o.bid) FILTER (${moves}) AS bid, min(o.ask) FILTER (${moves}) AS ask,
      arg_min(o.exchange, (-o.bid, o.exchange)) FILTER (o.bid IS NOT NULL AND ${moves}) AS bid_exchange,
      arg_min(o.exchange, (o.ask, o.exchange)) FILTER (o.ask IS NOT NULL AND ${moves}) AS ask_exchange,
      max(o.bid) AS bid_any, min(o.ask) AS ask_any
    FROM (SELECT DISTINCT pair, market_id, ts FROM ${ticks}) moments
      JOIN (SELECT DISTINCT pair, market_id, exchange_id FROM exchange_ticks) x ON ${isSame("x", "moments")}
      ASOF JOIN exchange_ticks o ON ${isSame("o", "x")} AND o.exchange_id = x.exchange_id AND o.ts <= moments.ts
      ${hourJoin("o")}
    WHERE o.ts > moments.ts - ${MAX_QUOTE_PERIODS * tickerPeriod}
    GROUP BY moments.pair, moments.market_id, moments.ts) best ON ${isSame("best", "t")} AND best.ts = t.ts`;
}

const researchParts = (tickerPeriod: Micros): ResearchParts => ({
  names: "t",
  expirationTs: "epoch_us(c.expiration)",
  strike: "c.option_strike AS strike, c.option_strike_exact AS strike_exact",
  index: {
    price: `coalesce(${average}, ${crossRate})`,
    ts: `CASE WHEN ${average} IS NOT NULL THEN w.ts WHEN ${recent("b", "ts")} < ${quoteTs} THEN b.ts ELSE ${quoteTs} END`,
    source: `CASE WHEN ${average} IS NOT NULL THEN 'MWA' WHEN ${crossRate} IS NOT NULL THEN 'GWA' END`,
  },
  best: joinedBest,
  standsStill: still("t", tickerPeriod),
  fromContractTicks: (ticks, type) => `FROM ${ticks} t
  LEFT JOIN derivative_contracts c ON c.derivative_type = t.derivative_type AND c.id = t.contract_id
  ${indexJoins(`(SELECT market_id FROM ${ticks} WHERE derivative_type = '${type}' AND index_price IS NULL)`)}
WHERE t.derivative_type = '${type}'`,
  fromExchangeTicks: (ticks) => `FROM ${ticks} t ${indexJoins(`(SELECT DISTINCT market_id FROM ${ticks})`)}`,
  fromQuotes: (ticks) => `FROM ${ticks} t ${bestQuotes(ticks, tickerPeriod)} ${hourJoin("t")}`,
});

export function catalogueResearchViews(present: Micros, tickerPeriod: Micros): Record<string, string> {
  const dialect = duckDbDialect(present);
  const parts = researchParts(tickerPeriod);
  return {
    returns_1h: returnsView(dialect, returnParts),
    ...buildResearchViews(dialect, parts),
    ...buildResearchViews(dialect, parts, "latest_"),
    latest_option_greeks: optionGreeksView(dialect),
  };
}
