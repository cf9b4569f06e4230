import { index, type RelationDoc, relation } from "./column-doc.ts";

const time = `ts INTEGER the timestamp of the ticker, microseconds since 1970 UTC
time TEXT ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ`;

const names = `exchange TEXT the exchange's name; its id while the name is unknown
pair TEXT the market's pair, such as BTC/USD; its id while the pair is unknown`;

const ids = `exchange_id TEXT the exchange
market_id TEXT the market`;

const contract = `${names}
contract TEXT the contract's name at the exchange
contract_id TEXT the contract, derivative_contracts.id
${ids}
${time}`;

const expiry = `expiration TEXT when the contract expires
days_to_expiry REAL days from ts to expiration`;

const prices = `price DECIMAL the last price
bid DECIMAL the best bid
ask DECIMAL the best ask
mark_price DECIMAL the price at which positions are valued
index_price REAL the price of the underlying index: the ticker's own, else that of index_source as of ts
index_source TEXT ticker; else MWA: the market's own average, or GWA: its base asset in USD over its quote asset in USD, at most five minutes old
volume DECIMAL rolling 24-hour volume: never sum it
open_interest DECIMAL contracts outstanding
settlement_currency TEXT the currency in which the contract settles`;

const quality = (more: string) => `quality TEXT quality of the ticker, or else ${more}; NULL if none applies`;
const contractQuality = quality("no index price, no expiration or expired");

const moved = `unmoved_seconds REAL seconds since the price last moved at the exchange; NULL if the ticker does not say
is_stale INTEGER as in exchange_ticks`;

const latest = `age_seconds REAL seconds from ts to now, by the service's clock
is_live INTEGER 1: in the newest state that the warehouse has; 0: a delisted market, an expired contract, a ticker that has gone quiet`;

/** A relation, and the one with its newest rows. */
/** `added`: columns after all others, so that none moved when they came. */
function both(
  name: string,
  summary: string,
  newest: string,
  columns: string,
  added = "",
): [string, RelationDoc][] {
  return [
    [name, relation(summary, `${columns}\n${added}`)],
    [`latest_${name}`, relation(newest, `${columns}\n${latest}\n${added}`)],
  ];
}

/** What every desk computes from tickers and bars. */
export const researchDocs: Readonly<Record<string, RelationDoc>> = {
  returns_1h: relation(
    "the simple return of each hour",
    `${index}
ts INTEGER the start of the hour, microseconds since 1970 UTC
time TEXT ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
close DECIMAL the last tick of the hour
close_before DECIMAL the last tick of the hour before; NULL if that hour has no bar
simple_return REAL close / close_before - 1; the log return is ln(1 + simple_return); NULL unless both hours are whole
coverage REAL the part of the hour, 0 to 1, that the ledger covers
coverage_before REAL the same of the hour before
is_complete INTEGER 1: the ledger covers both hours
quality TEXT quality of the bar, or else of the bar before, or else no bar before; NULL if none applies`,
  ),
  ...Object.fromEntries([
    ...both(
      "futures_curve",
      "every ticker of a future with its basis",
      "the curve now: each future's newest ticker",
      `${contract}
${expiry}
basis REAL price / index_price - 1
annualised_basis REAL basis × 365 / days_to_expiry, without compounding; NULL from the expiration on
${prices}
${contractQuality}`,
    ),
    ...both(
      "perpetuals",
      "tickers of perpetuals with premium and funding",
      "each perpetual's newest ticker with premium and funding",
      `${contract}
premium REAL price / index_price - 1
mark_premium REAL mark_price / index_price - 1
funding_rate DECIMAL as in derivative_ticks: a fraction a funding period, whose length the service does not tell
${prices}
${quality("no index price")}`,
    ),
    ...both(
      "option_chain",
      "every ticker of an option with its strike and expiry",
      "the chain now: each option's newest ticker",
      `${contract}
${expiry}
option_type TEXT CALL or PUT
strike DECIMAL the strike price
moneyness REAL strike / index_price
${prices}
${contractQuality}`,
    ),
    [
      "latest_option_greeks",
      relation(
        "the live chain with implied volatility and greeks",
        `${contract}
${expiry}
option_type TEXT CALL or PUT
strike REAL the strike price
worth REAL mark_price, else price: what the volatility is computed from
forward REAL strike + call - put, at the strike of this market and expiry where call and put cost nearly the same; else index_price
implied_volatility REAL the volatility per year at which Black's formula without interest gives worth, between 0.0001 and 5; NULL if none does, or if a forward 0.001 % higher changes it by more than a percentage point, as far in the money; assumes prices in the quote currency
delta REAL by how much worth changes with the forward
gamma REAL by how much delta changes with the forward
vega REAL by how much worth changes with a percentage point of volatility
theta REAL by how much worth changes in a day
open_interest REAL contracts outstanding
index_price REAL as in option_chain
${quality("no index price or no implied volatility")}
${latest}`,
      ),
    ] as [string, RelationDoc],
    ...both(
      "spread",
      "quotes of a market on each exchange, and the best ones",
      "the newest quotes of each market, and the best ones",
      `${names}
${ids}
${time}
bid DECIMAL the best bid on this exchange
ask DECIMAL the best ask on this exchange
mid REAL (bid + ask) / 2
spread_bps REAL (ask - bid) / mid in basis points
best_bid REAL the highest bid of the market as of ts, over the exchanges whose newest quote is at most two refresh periods old and has moved within the hour
best_bid_exchange TEXT the exchange that bids it; of several the first by name
best_ask REAL the lowest ask of the market as of ts, over the same exchanges
best_ask_exchange TEXT the exchange that asks it; of several the first by name
${moved}
${quality("no quote, crossed or not moved for an hour")}`,
      `best_bid_any REAL the highest bid of the market as of ts, whether it moves or not
best_ask_any REAL the lowest ask of the market as of ts, whether it moves or not`,
    ),
    ...both(
      "index_deviation",
      "last prices on each exchange against the index",
      "the newest prices on each exchange against the index",
      `${names}
${ids}
${time}
last DECIMAL the last price
index_price REAL the index as of ts; NULL if there is none of the last five minutes
index_source TEXT MWA: the market's own average; GWA, where that is not synced: its base asset in USD over its quote asset in USD
index_ts INTEGER the timestamp of the index, microseconds since 1970 UTC; of two the older
index_time TEXT index_ts as text
deviation_bps REAL (last / index_price - 1) in basis points
${moved}
${quality("no index price")}`,
    ),
  ]),
};
