import type { DerivativeType } from "../../model/streams.ts";
import { barWidths, DAYS_PER_YEAR, MICROS_PER_DAY, MICROS_PER_SECOND } from "../../model/time.ts";
import { timeOrder } from "../tables/row-parts.ts";
import { optionGreeksView } from "./option-greeks.ts";
import { refreshPeriod, type SqlDialect } from "./sql-dialect.ts";
import { keepJoins, slowExactDigits, sqliteDialect } from "./sqlite-dialect.ts";
import { seekStandsStill, tickersOfListing } from "./stale-price.ts";

/*
 * The views that every desk would write again. Columns and formulas are written once, for all engines: `t` is the
 * ticker, `c` its contract. An engine adds what it reads (`ResearchParts`).
 */

/** An index tick that is older says nothing about a ticker. */
export const MAX_INDEX_AGE = 300 * MICROS_PER_SECOND;
/** A quote counts until it is this many refresh periods old. */
export const MAX_QUOTE_PERIODS = 2;

/** SQL for the best quotes of a market as of a ticker: of those that move, and of any. */
type BestQuotes = Readonly<Record<(typeof bestQuotes)[number], string>>;
const bestQuotes = ["bid", "bid_exchange", "ask", "ask_exchange", "bid_any", "ask_any"] as const;

/** Where a join `best` has them. */
export const joinedBest = Object.fromEntries(bestQuotes.map((name) => [name, `best.${name}`])) as BestQuotes;

/** What the views read, in the terms of one engine. */
export interface ResearchParts {
  /** The row with the names of exchange and pair: in SQLite one that an index finds. */
  readonly names: string;
  /** In microseconds. */
  readonly expirationTs: string;
  /** The columns strike and strike_exact. */
  readonly strike: string;
  /** The index of the ticker's market as of the ticker: price, timestamp, and how it was found. */
  readonly index: Readonly<Record<"price" | "ts" | "source", string>>;
  readonly best: BestQuotes;
  /** Whether the exchange ticker has not moved for an hour. */
  readonly standsStill: string;
  /** FROM and WHERE: the tickers of one type of derivative, their contracts, and the index where the ticker has none. */
  fromContractTicks(ticks: string, type: string): string;
  /** FROM and WHERE: the exchange tickers and the index. */
  fromExchangeTicks(ticks: string): string;
  /** FROM: the exchange tickers and the best quotes. */
  fromQuotes(ticks: string): string;
}

const exact = (names: string) =>
  names
    .split(" ")
    .map((name) => `t.${name}, t.${name}_exact`)
    .join(", ");

const contractViews = [
  ["futures_curve", "futures"],
  ["perpetuals", "perpetuals"],
  ["option_chain", "options"],
] as const;

/** The tickers of one type of derivative. `ticks`: derivative_ticks or latest_derivative_ticks. */
function contractView(
  { real, text, moment }: SqlDialect,
  parts: ResearchParts,
  ticks: string,
  type: DerivativeType,
): string {
  const { names, expirationTs, index } = parts;
  const indexPrice = `coalesce(t.index_price, ${index.price})`;
  const days = `${real(`${expirationTs} - t.ts`)} / ${MICROS_PER_DAY}.0`;
  const premium = (price: string) => `${price} / nullif(${indexPrice}, 0) - 1`;
  const basis = premium("t.price");
  const expiry =
    type === "perpetuals"
      ? ""
      : `${moment(expirationTs)} AS expiration, ${real(days)} AS days_to_expiry,\n  `;
  const own = {
    futures: `${real(basis)} AS basis,
  ${real(`CASE WHEN ${expirationTs} > t.ts THEN (${basis}) * ${DAYS_PER_YEAR} / (${days}) END`)} AS annualised_basis`,
    perpetuals: `${real(basis)} AS premium, ${real(premium("t.mark_price"))} AS mark_premium, ${exact("funding_rate")}`,
    options: `c.option_type, ${parts.strike}, ${real(`c.option_strike / nullif(${indexPrice}, 0)`)} AS moneyness`,
  }[type];
  const expired =
    type === "perpetuals"
      ? ""
      : ` WHEN ${expirationTs} IS NULL THEN 'no expiration' WHEN ${expirationTs} <= t.ts THEN 'expired'`;
  return `SELECT ${names}.exchange, ${names}.pair, t.exchange_name AS contract, t.contract_id, t.exchange_id, t.market_id, t.ts, t.time,
  ${expiry}${own},
  ${exact("price bid ask mark_price")}, ${real(indexPrice)} AS index_price,
  ${text(`CASE WHEN t.index_price IS NOT NULL THEN 'ticker' ELSE ${index.source} END`)} AS index_source,
  ${exact("volume open_interest")}, c.settlement_currency,
  ${text(`coalesce(t.quality, CASE WHEN ${indexPrice} IS NULL THEN 'no index price'${expired} END)`)} AS quality${addedColumns(ticks)}
${parts.fromContractTicks(ticks, type)}`;
}

const addedColumns = (ticks: string) => (ticks.startsWith("latest_") ? ", t.age_seconds, t.is_live" : "");

const listingColumns = "t.exchange, t.pair, t.exchange_id, t.market_id, t.ts, t.time";

/** The quotes of a market on each exchange, beside the best of all exchanges. */
function spreadView(
  { real, text }: SqlDialect,
  { best, standsStill, fromQuotes }: ResearchParts,
  ticks: string,
): string {
  const mid = "(t.bid + t.ask) / 2";
  return `SELECT ${listingColumns}, ${exact("bid ask")}, ${real(mid)} AS mid,
  ${real(`(t.ask - t.bid) / nullif(${mid}, 0) * 10000`)} AS spread_bps,
  ${real(best.bid)} AS best_bid, ${text(best.bid_exchange)} AS best_bid_exchange,
  ${real(best.ask)} AS best_ask, ${text(best.ask_exchange)} AS best_ask_exchange, t.unmoved_seconds, t.is_stale,
  ${text(`coalesce(t.quality, CASE WHEN t.bid IS NULL OR t.ask IS NULL THEN 'no quote' WHEN t.bid > t.ask THEN 'crossed'
    WHEN ${standsStill} THEN 'not moved for an hour' END)`)} AS quality${addedColumns(ticks)},
  ${real(best.bid_any)} AS best_bid_any, ${real(best.ask_any)} AS best_ask_any
${fromQuotes(ticks)}`;
}

/** The last price on each exchange against the index of its market. */
function deviationView(
  { real, text, moment }: SqlDialect,
  { names, index, fromExchangeTicks }: ResearchParts,
  ticks: string,
) {
  return `SELECT ${listingColumns.replace("t.exchange, t.pair", `${names}.exchange, ${names}.pair`)}, ${exact("last")},
  ${real(index.price)} AS index_price, ${text(index.source)} AS index_source, ${index.ts} AS index_ts, ${moment(index.ts)} AS index_time,
  ${real(`(t.last / nullif(${index.price}, 0) - 1) * 10000`)} AS deviation_bps, t.unmoved_seconds, t.is_stale,
  ${text(`coalesce(t.quality, CASE WHEN ${index.price} IS NULL THEN 'no index price' END)`)} AS quality${addedColumns(ticks)}
${fromExchangeTicks(ticks)}`;
}

/** Every research view but `returns_1h`, as observed or in its newest state. */
export function buildResearchViews(dialect: SqlDialect, parts: ResearchParts, prefix: "" | "latest_" = "") {
  const ofContracts = ([view, type]: (typeof contractViews)[number]) =>
    [`${prefix}${view}`, contractView(dialect, parts, `${prefix}derivative_ticks`, type)] as const;
  return {
    ...Object.fromEntries(contractViews.map(ofContracts)),
    [`${prefix}spread`]: spreadView(dialect, parts, `${prefix}exchange_ticks`),
    [`${prefix}index_deviation`]: deviationView(dialect, parts, `${prefix}exchange_ticks`),
  };
}

/** What `returns_1h` reads, in the terms of one engine. */
interface ReturnParts {
  /** The row with the names of the series. */
  readonly names: string;
  /** An expression over `p`, the bar before bar `b`; null if there is none. */
  before(sql: string): string;
  readonly digitsBefore: string;
  /** FROM: the bars `b`. */
  readonly from: string;
}

/** A return is known only between two whole bars that follow one another. */
export function returnsView(dialect: SqlDialect, { names, before, digitsBefore, from }: ReturnParts): string {
  const { real, text, flag, no } = dialect;
  const wholeBefore = before("CASE WHEN p.is_complete THEN nullif(p.close, 0) END");
  return `SELECT ${names}.index_type, ${names}.index_id, ${names}.name, b.ts, b.time, b.close, b.close_exact,
  ${real(before("p.close"))} AS close_before, ${digitsBefore} AS close_before_exact,
  ${real(`CASE WHEN b.is_complete THEN b.close / ${wholeBefore} - 1 END`)} AS simple_return,
  b.coverage, ${real(before("p.coverage"))} AS coverage_before,
  ${flag(`CASE WHEN b.is_complete THEN coalesce(${before("p.is_complete")}, ${no}) ELSE ${no} END`)} AS is_complete,
  ${text(`nullif(coalesce(b.quality, ${before("coalesce('bar before: ' || p.quality, '')")}, 'no bar before'), '')`)} AS quality
${from}`;
}

/** A subquery reads one kept bar; a LEFT JOIN of the view would compute all of them first. */
const barBefore = (what: string) => `(SELECT ${what} FROM bars_1h p
    WHERE p.index_type = b.index_type AND p.index_id = b.index_id AND p.ts = b.ts - ${barWidths["1h"]})`;

/** The indices of a market: its own average (MWA), and those of both assets in USD (GWA). Found once per listing or contract. */
const marketSeries = (row: string) => `LEFT JOIN market_rows m ON m.id = ${row}.market_id
  LEFT JOIN assets z ON z.id = m.quote_asset_id
  LEFT JOIN series w ON w.index_type = 'MWA' AND w.index_id = ${row}.market_id
  LEFT JOIN series b ON b.index_type = 'GWA' AND b.index_id = m.base_asset_id
  LEFT JOIN series q ON q.index_type = 'GWA' AND q.index_id = m.quote_asset_id`;

const keepMarketSeries = keepJoins("m.id", "z.id", "w.series", "b.series", "q.series");

/** The newest ticks of these indices as of `t`, if `condition` holds. */
const seriesTicks = (condition?: string) =>
  ["w", "b", "q"]
    .map((series) => {
      const asOf = `(SELECT max(n.ts) FROM index_tick_rows n WHERE n.series = ${series}.series AND n.ts <= t.ts AND n.ts > t.ts - ${MAX_INDEX_AGE})`;
      const ts = condition === undefined ? asOf : `CASE WHEN ${condition} THEN ${asOf} END`;
      return `LEFT JOIN index_tick_rows ${series}t ON ${series}t.series = ${series}.series AND ${series}t.ts = ${ts}`;
    })
    .join("\n  ");

/** A value if the quote asset `z` is the US dollar, else another. */
export const ifUsd = (value: string, otherwise: string) =>
  `CASE WHEN z.symbol = 'USD' AND coalesce(z.type, 'FIAT') = 'FIAT' THEN ${value} ELSE ${otherwise} END`;

const crossRate = `bt.price / ${ifUsd("1.0", "nullif(qt.price, 0)")}`;

const tickerPeriod = refreshPeriod(sqliteDialect, "exchange_ticks");
const isMoving = `coalesce(NOT ${seekStandsStill(sqliteDialect, "o", "(o.ts - o.last_moved)", "FROM exchange_tick_rows h WHERE h.listing = o.listing", tickerPeriod)}, 1)`;
/** The newest bid or ask of listing `x` as of `t`. */
const quoteOf = (
  quote: string,
) => `(SELECT ${quote} FROM exchange_tick_rows o WHERE o.listing = x.listing AND o.ts <= t.ts
      AND o.ts > t.ts - ${MAX_QUOTE_PERIODS} * ${tickerPeriod} ORDER BY ${timeOrder("exchange_ticks", "DESC")} LIMIT 1)`;
/** All of them. SQLite 3.40 cannot resolve `t` in a subquery of ORDER BY, so the quote is a column first. */
const anyQuotesOf = (quote: string) =>
  `FROM (SELECT x.exchange, ${quoteOf(quote)} AS quote FROM listings x WHERE x.market_id = t.market_id) y`;
const quotesOf = (side: "bid" | "ask") => anyQuotesOf(`CASE WHEN ${isMoving} THEN o.${side} END`);
/** Of equal quotes the first exchange by name. */
const bestExchange = (side: "bid" | "ask", order: "DESC" | "ASC") =>
  `(SELECT y.exchange ${quotesOf(side)} WHERE y.quote IS NOT NULL ORDER BY y.quote ${order}, y.exchange LIMIT 1)`;

/** CROSS JOIN: the contract or listing is found first, by its pair, and each seeks its own tickers. */
const sqliteParts: ResearchParts = {
  names: "c",
  expirationTs: "c.expiration",
  strike: `c.option_strike AS strike, CAST(${slowExactDigits("c", "option_strike")} AS TEXT) AS strike_exact`,
  index: {
    price: `coalesce(wt.price, ${crossRate})`,
    ts: `CAST(CASE WHEN wt.price IS NOT NULL THEN wt.ts ELSE min(bt.ts, ${ifUsd("bt.ts", "qt.ts")}) END AS INTEGER)`,
    source: `CASE WHEN wt.price IS NOT NULL THEN 'MWA' WHEN ${crossRate} IS NOT NULL THEN 'GWA' END`,
  },
  best: {
    bid: `(SELECT max(y.quote) ${quotesOf("bid")})`,
    bid_exchange: bestExchange("bid", "DESC"),
    ask: `(SELECT min(y.quote) ${quotesOf("ask")})`,
    ask_exchange: bestExchange("ask", "ASC"),
    bid_any: `(SELECT max(y.quote) ${anyQuotesOf("o.bid")})`,
    ask_any: `(SELECT min(y.quote) ${anyQuotesOf("o.ask")})`,
  },
  standsStill: seekStandsStill(
    sqliteDialect,
    "t",
    `(t.unmoved_seconds * ${MICROS_PER_SECOND})`,
    tickersOfListing(sqliteDialect),
    tickerPeriod,
  ),
  fromContractTicks: (ticks, type) => `FROM contracts c ${marketSeries("c")}
  CROSS JOIN ${ticks} t ${seriesTicks("t.index_price IS NULL")}
WHERE ${keepMarketSeries} AND c.derivative_type = '${type}' AND t.derivative_type = c.derivative_type AND t.contract_id = c.id`,
  fromExchangeTicks: (ticks) => `FROM listings c ${marketSeries("c")}
  CROSS JOIN ${ticks} t ${seriesTicks()}
WHERE ${keepMarketSeries} AND t.exchange_id = c.exchange_id AND t.market_id = c.market_id`,
  fromQuotes: (ticks) => `FROM ${ticks} t`,
};

/** The rows of a view that belong to the newest tickers. */
function latestOf(view: string, ticks: string, key: readonly string[], where = ""): string {
  const isSame = [...key, "ts"].map((column) => `x.${column} = t.${column}`).join(" AND ");
  return `SELECT x.*, t.age_seconds, t.is_live FROM latest_${ticks} t CROSS JOIN ${view} x WHERE ${where}${isSame}`;
}

const latestOfContracts = ([view, type]: (typeof contractViews)[number]) =>
  [
    `latest_${view}`,
    latestOf(view, "derivative_ticks", ["contract_id"], `t.derivative_type = '${type}' AND `),
  ] as const;

export const researchViews: Record<string, string> = {
  returns_1h: returnsView(sqliteDialect, {
    names: "b",
    before: barBefore,
    digitsBefore: sqliteDialect.text(barBefore("p.close_exact")),
    from: "FROM bars_1h b",
  }),
  ...buildResearchViews(sqliteDialect, sqliteParts),
  ...Object.fromEntries(contractViews.map(latestOfContracts)),
  latest_option_greeks: optionGreeksView(sqliteDialect),
  // Not `latestOf`: its columns would be before those that were added to `spread` last.
  latest_spread: spreadView(sqliteDialect, sqliteParts, "latest_exchange_ticks"),
  latest_index_deviation: latestOf("index_deviation", "exchange_ticks", ["exchange_id", "market_id"]),
};
