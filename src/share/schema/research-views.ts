import { MICROS_PER_SECOND } from "../../model/time.ts";
import { optionGreeksView } from "../../warehouse/views/option-greeks.ts";
import {
  buildResearchViews,
  ifUsd,
  joinedBest,
  MAX_INDEX_AGE,
  MAX_QUOTE_PERIODS,
  type ResearchParts,
} from "../../warehouse/views/research-views.ts";
import { seekStandsStill, tickersOfListing } from "../../warehouse/views/stale-price.ts";
import { exactNumber, postgresDialect } from "./postgres-dialect.ts";

/** The newest row of a table at or before `t` that is not older than `age`. */
const newest = (columns: string, table: string, key: string, age: string | number, condition = "") =>
  `(SELECT ${columns} FROM mds.${table} n WHERE n.${key} ${condition}AND n.ts <= t.ts AND n.ts > t.ts - ${age}
    ORDER BY n.ts DESC LIMIT 1)`;

/** The market's average (w) and both assets in USD (b, q) as of `t`, if `condition` holds. */
function indexJoins(condition = ""): string {
  const asOf = (alias: string) =>
    `LEFT JOIN LATERAL ${newest("n.ts, n.price", "index_tick_rows", `series = ${alias}.series`, MAX_INDEX_AGE, condition)} ${alias}t ON true`;
  return `LEFT JOIN mds.market_rows m ON m.id = t.market_id LEFT JOIN mds.assets z ON z.id = m.quote_asset_id
  LEFT JOIN mds.series w ON w.index_type = 'MWA' AND w.index_id = t.market_id
  LEFT JOIN mds.series b ON b.index_type = 'GWA' AND b.index_id = m.base_asset_id
  LEFT JOIN mds.series q ON q.index_type = 'GWA' AND q.index_id = m.quote_asset_id
  ${["w", "b", "q"].map(asOf).join("\n  ")}`;
}

const crossRate = `bt.price / ${ifUsd("1.0", "nullif(qt.price, 0)")}`;
const quoteTs = ifUsd("bt.ts", "qt.ts");

/** The newest quotes of the market on each exchange as of `t`, and the best of them; of equal ones the first by name. */
function bestQuotes(tickerPeriod: string): string {
  const listing = "FROM mds.exchange_tick_rows h WHERE h.listing = n.listing";
  const still = seekStandsStill(postgresDialect, "n", "(n.ts - n.last_moved)", listing, tickerPeriod);
  const quote = (side: string) =>
    `CASE WHEN coalesce(${still}, false) THEN NULL ELSE n.${side} END AS ${side}, n.${side} AS any_${side}`;
  const first = (side: string, order: string) =>
    `(array_agg(x.exchange ORDER BY y.${side} ${order}, x.exchange COLLATE "C") FILTER (WHERE y.${side} IS NOT NULL))[1] AS ${side}_exchange`;
  const quotes = newest(
    `${quote("bid")}, ${quote("ask")}`,
    "exchange_tick_rows",
    "listing = x.listing",
    `${MAX_QUOTE_PERIODS} * ${tickerPeriod}`,
  );
  return `CROSS JOIN LATERAL (SELECT max(y.bid) AS bid, min(y.ask) AS ask, max(y.any_bid) AS bid_any, min(y.any_ask) AS ask_any,
      ${first("bid", "DESC")}, ${first("ask", "ASC")}
    FROM mds.listings x CROSS JOIN LATERAL ${quotes} y WHERE x.market_id = t.market_id) best`;
}

/**
 * The research views of the warehouse; `returns_1h` is among the bars. They contain the SQL of the views that
 * they read instead of naming them, so that an upgrade can replace those.
 */
export function sharedResearchViews(
  views: Readonly<Record<string, string>>,
  tickerPeriod: string,
): Record<string, string> {
  const parts: ResearchParts = {
    names: "t",
    expirationTs: "c.expiration",
    strike: `c.option_strike AS strike, ${exactNumber("c", "option_strike")} AS strike_exact`,
    index: {
      price: `coalesce(wt.price, ${crossRate})`,
      ts: `CASE WHEN wt.price IS NOT NULL THEN wt.ts WHEN bt.ts < ${quoteTs} THEN bt.ts ELSE ${quoteTs} END`,
      source: `CASE WHEN wt.price IS NOT NULL THEN 'MWA' WHEN ${crossRate} IS NOT NULL THEN 'GWA' END`,
    },
    best: joinedBest,
    standsStill: seekStandsStill(
      postgresDialect,
      "t",
      `(t.unmoved_seconds * ${MICROS_PER_SECOND})`,
      tickersOfListing(postgresDialect),
      tickerPeriod,
    ),
    fromContractTicks: (ticks, type) => `FROM (${views[ticks]}) t
  LEFT JOIN mds.contracts c ON c.derivative_type = t.derivative_type AND c.id = t.contract_id
  ${indexJoins("AND t.index_price IS NULL ")}
WHERE t.derivative_type = '${type}'`,
    fromExchangeTicks: (ticks) => `FROM (${views[ticks]}) t ${indexJoins()}`,
    fromQuotes: (ticks) => `FROM (${views[ticks]}) t ${bestQuotes(tickerPeriod)}`,
  };
  return {
    ...buildResearchViews(postgresDialect, parts),
    ...buildResearchViews(postgresDialect, parts, "latest_"),
    latest_option_greeks: optionGreeksView(postgresDialect),
  };
}
