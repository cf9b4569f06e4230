import { keyColumns, type RowStream, streamTable } from "../../model/streams.ts";
import { MICROS_PER_SECOND } from "../../model/time.ts";
import { coverageViews } from "../../warehouse/views/coverage-views.ts";
import {
  liveColumns,
  MAX_AHEAD_MICROS,
  streamViews,
  tickStreams,
  viewColumns,
} from "../../warehouse/views/data-views.ts";
import { optionGreeksView } from "../../warehouse/views/option-greeks.ts";
import {
  buildResearchViews,
  ifUsd,
  joinedBest,
  MAX_INDEX_AGE,
  MAX_QUOTE_PERIODS,
  type ResearchParts,
} from "../../warehouse/views/research-views.ts";
import { refreshPeriod } from "../../warehouse/views/sql-dialect.ts";
import { seekStandsStill, tickersOfListing } from "../../warehouse/views/stale-price.ts";
import { sharedBarViews } from "./bar-views.ts";
import { exactNumber, postgresDialect } from "./postgres-dialect.ts";

/*
 * The public relations in schema `mds`, with the columns of the SQLite views in their order, and real types. `ts` is the
 * stored column, so conditions on `ts` use the primary key and skip the partitions of other months.
 */

/** The newest row of each series, by one index seek each. */
function latestRows(stream: RowStream): string {
  const { table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const newest = (entry: string) => `SELECT n.* FROM mds.${table} n WHERE n.${key} = ${entry}.${key}
    AND n.ts < ${postgresDialect.presentTs} + ${MAX_AHEAD_MICROS} ORDER BY n.ts DESC LIMIT 1`;
  const newestOfStream = `(SELECT max(x.ts) FROM mds.${dictionary} k CROSS JOIN LATERAL (${newest("k")}) x)`;
  const live = liveColumns(postgresDialect, stream, newestOfStream);
  return `SELECT ${[...viewColumns(postgresDialect, stream, postgresDialect.decimals), live].join(",\n  ")}
FROM mds.${dictionary} s CROSS JOIN LATERAL (${newest("s")}) r`;
}

const rowViews: Readonly<Record<string, string>> = {
  ...streamViews(postgresDialect),
  ...Object.fromEntries(tickStreams.map((stream) => [`latest_${stream}`, latestRows(stream)])),
};

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

const tickerPeriod = refreshPeriod(postgresDialect, "exchange_ticks");

const crossRate = `bt.price / ${ifUsd("1.0", "nullif(qt.price, 0)")}`;
const quoteTs = ifUsd("bt.ts", "qt.ts");

/** The newest quotes of the market on each exchange as of `t`, and the best of them; of equal ones the first by name. */
function bestQuotes(): string {
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

/** `rowViews[ticks]` is the SQL of a view: an upgrade can replace a view that no other one names. */
const researchParts: ResearchParts = {
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
  fromContractTicks: (ticks, type) => `FROM (${rowViews[ticks]}) t
  LEFT JOIN mds.contracts c ON c.derivative_type = t.derivative_type AND c.id = t.contract_id
  ${indexJoins("AND t.index_price IS NULL ")}
WHERE t.derivative_type = '${type}'`,
  fromExchangeTicks: (ticks) => `FROM (${rowViews[ticks]}) t ${indexJoins()}`,
  fromQuotes: (ticks) => `FROM (${rowViews[ticks]}) t ${bestQuotes()}`,
};

/** The public relations that are views, by name. The others are tables. */
export const sharedViews: Readonly<Record<string, string>> = {
  ...rowViews,
  ...sharedBarViews,
  ...buildResearchViews(postgresDialect, researchParts),
  ...buildResearchViews(postgresDialect, researchParts, "latest_"),
  latest_option_greeks: optionGreeksView(postgresDialect),
  ...coverageViews(postgresDialect),
  status_changes: "SELECT change, entity, id, field, old, new, seen_at FROM mds.status_change_rows",
  rejects: "SELECT reject, stream, received_at, reason, raw, request FROM mds.reject_rows",
};
