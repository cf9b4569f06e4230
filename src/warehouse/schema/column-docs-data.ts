import {
  absences,
  doubt,
  doubtAndExtra,
  extra,
  index,
  listed,
  moment,
  type RelationNote,
  relation,
} from "./column-doc.ts";

const source = "source TEXT rest: a page said so; live: so far only the websocket did";

const indexTicks = `${index}
${moment}
price DECIMAL the value of the index
volume DECIMAL rolling 24-hour figure: never to be summed
tick_volume DECIMAL LX only: the volume of this tick
is_settled INTEGER 1: the ledger proves this moment; 0: a page has yet to confirm it
${source}
${doubtAndExtra}`;

const exchangeTicks = `exchange_id TEXT the exchange
market_id TEXT the market
exchange TEXT the exchange's name; its id until it is known
pair TEXT the market's pair, BTC/USD; its id until it is known
${moment}
last DECIMAL the last price
bid DECIMAL the best bid
ask DECIMAL the best ask
volume DECIMAL rolling 24-hour figure in units of the base asset: never to be summed
last_moved TEXT when the price last moved at the exchange; NULL where the service does not say, as of live tickers
unmoved_seconds REAL how long the price had not moved at this tick; NULL where last_moved is
is_stale INTEGER 1: no move within the refresh period before this tick. Where last_moved is NULL: the price is that of the ticker before; NULL where there is none within two periods
${source}
${doubt}. That other markets of the moment are missing is no doubt about it: coverage has only whole moments, gaps the rest
${extra}`;

const marketCaps = `asset_id TEXT the asset
symbol TEXT its symbol; its id until it is known
${moment}
rank INTEGER the place by market_cap; 1 is the largest
volume_rank INTEGER the place by volume
price DECIMAL USD
volume DECIMAL rolling 24-hour figure: never to be summed
market_cap DECIMAL free-float supply × price, as the service says
total_market_cap DECIMAL total supply × price, as the service says
free_float_supply DECIMAL units in circulation
total_supply DECIMAL units that there are
change_24h DECIMAL percent change of market_cap over 24 hours
change_7d DECIMAL percent change of market_cap over 7 days
change_30d DECIMAL percent change of market_cap over 30 days
${doubtAndExtra}`;

const derivativeTicks = `contract_id TEXT the contract, derivative_contracts.id
derivative_type TEXT futures, perpetuals or options
exchange_id TEXT the exchange
market_id TEXT the market
exchange_name TEXT the contract's name at the exchange
${moment}
price DECIMAL the last price
volume DECIMAL rolling 24-hour figure: never to be summed
volume_usd DECIMAL the same in USD
open_interest DECIMAL contracts outstanding
open_interest_usd DECIMAL the same in USD
bid DECIMAL the best bid
ask DECIMAL the best ask
index_price DECIMAL the price of what the contract is on
mark_price DECIMAL the price that positions are valued at
funding_rate DECIMAL perpetuals: the rate of the present funding period
${doubtAndExtra}`;

/** The lookups and the data, as the contract names them. */
export const rowNotes: Readonly<Record<string, RelationNote>> = {
  assets: relation(
    "every asset that the service has ever listed",
    `id TEXT the asset; index_id of its GWA index
symbol TEXT its ticker symbol; several assets may share one
name TEXT its name
type TEXT CRYPTO or FIAT
status TEXT ACTIVE or INACTIVE
url TEXT where to read about it
contract_address TEXT a token's contract on the chain where it was issued
${listed}
${absences}
${doubtAndExtra}`,
  ),
  markets: relation(
    "every pair of assets that the service tracks",
    `id TEXT the market; index_id of its MWA index
base_asset_id TEXT the asset that is priced
quote_asset_id TEXT the asset that it is priced in
base_symbol TEXT the base asset's symbol
quote_symbol TEXT the quote asset's symbol
pair TEXT both symbols, BTC/USD
${listed}
${doubtAndExtra}`,
  ),
  exchanges: relation(
    "every exchange that the service has ever listed",
    `id TEXT the exchange
name TEXT its name
url TEXT its address
status TEXT ACTIVE, INACTIVE or MAINTENANCE
${listed}
${absences}
${doubtAndExtra}`,
  ),
  exchange_markets: relation(
    "which markets each exchange has",
    `exchange_id TEXT the exchange
market_id TEXT the market
status TEXT the market's status there
qualified INTEGER 1: the market takes part in the service's averages
${listed}
${absences}
${doubtAndExtra}`,
  ),
  exchange_symbols: relation(
    "an exchange's own symbol for an asset",
    `exchange_id TEXT the exchange
asset_id TEXT the asset
symbol TEXT what the exchange calls it
${listed}
${absences}
${doubtAndExtra}`,
  ),
  derivative_contracts: relation(
    "futures, perpetuals and options, expired ones too",
    `id TEXT the contract
derivative_type TEXT futures, perpetuals or options
exchange_id TEXT the exchange
market_id TEXT the market that it is on
exchange_name TEXT its name at the exchange
settlement_currency TEXT the currency in which it settles
contract_value DECIMAL its size in units of value_currency
value_currency TEXT the currency of contract_value
option_type TEXT options: CALL or PUT
option_strike DECIMAL options: the strike price
listing TEXT futures and options: when it was listed
expiration TEXT futures and options: when it expires
${listed}
${doubtAndExtra}`,
  ),
  ohlcv: relation(
    "the service's own end-of-day bars",
    `${index}
day TEXT the UTC day that the bar covers, YYYY-MM-DD
open DECIMAL the first price of the day
high DECIMAL the highest price of the day
low DECIMAL the lowest price of the day
close DECIMAL the last price of the day
volume DECIMAL the day's volume in units of the base asset
vwap DECIMAL the average price, weighted by volume
twap DECIMAL the average price, weighted by time
volume_usd DECIMAL the day's volume in USD
is_final INTEGER 1: the day is over and the ledger holds all of it
record_id TEXT the service's own id of the record
${doubtAndExtra}`,
  ),
  index_ticks: relation("GWA, MWA and LX values, every 30 seconds", indexTicks),
  latest_index_ticks: relation("the newest tick of each index", indexTicks),
  exchange_ticks: relation("tickers of each market on each exchange, as observed", exchangeTicks),
  latest_exchange_ticks: relation("the newest ticker of each market on each exchange", exchangeTicks),
  market_caps: relation("the ranking by market capitalisation, as observed", marketCaps),
  latest_market_caps: relation("the newest ranking of each asset", marketCaps),
  derivative_ticks: relation("tickers of derivative contracts, as observed", derivativeTicks),
  latest_derivative_ticks: relation("the newest ticker of each contract", derivativeTicks),
  index_tick_versions: relation(
    "every version of a tick, with when it was held true",
    `${index}
${moment}
price DECIMAL the value of the index in this version
volume DECIMAL rolling 24-hour figure in this version
known_from_ts INTEGER when this version replaced another, or the tick was withdrawn before it came back; NULL: it was the first, and its arrival is not recorded
known_from_time TEXT the same moment as text
known_until_ts INTEGER when it was corrected or withdrawn; NULL: it still stands
known_until_time TEXT the same moment as text
${doubt}`,
  ),
};
