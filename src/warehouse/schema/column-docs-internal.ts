import { absences, doubtAndExtra, listed, type RelationNote, relation } from "./column-doc.ts";

const aside = "aside TEXT what is rare, a JSON object: exact digits, quality, extra";
const source = "source INTEGER 0: a REST page said so; 1: so far only the websocket did";
const series = "series INTEGER the series, series.series";
const ts = "ts INTEGER the moment, microseconds since 1970 UTC";
const asInView = (names: string, view: string) =>
  names
    .split(" ")
    .map((name) => `${name} REAL as in ${view}`)
    .join("\n");
const range = `from_ts INTEGER the first moment
to_ts INTEGER the moment after the last`;

/** Tables that the views are made of. They may change with any version, except `series`, which is there to be joined. */
export const insideNotes = {
  series: relation(
    "every index with its key, to be joined: one seek each",
    `series INTEGER the key
index_type TEXT GWA, MWA or LX; empty for a subscription of a latest-only stream
index_id TEXT the asset, market or liquid index; for a subscription its exchange
name TEXT what a person calls it`,
  ),
  listings: relation(
    "every market on an exchange that has a key here",
    `listing INTEGER the key
exchange_id TEXT the exchange
market_id TEXT the market
exchange TEXT the exchange's name
pair TEXT the market's pair`,
  ),
  contracts: relation(
    "derivative contracts and their keys",
    `contract INTEGER the key
derivative_type TEXT futures, perpetuals or options
id TEXT the contract
exchange_id TEXT the exchange
market_id TEXT the market
exchange_name TEXT its name at the exchange
settlement_currency TEXT the currency in which it settles
contract_value REAL its size
value_currency TEXT the currency of contract_value
option_type TEXT CALL or PUT
option_strike REAL the strike price
listing INTEGER microseconds since 1970 UTC
expiration INTEGER microseconds since 1970 UTC
${aside}
described INTEGER 0: known from a tick only
${listed}
${absences}
${doubtAndExtra}`,
  ),
  market_rows: relation(
    "the rows of markets",
    `id TEXT the market
base_asset_id TEXT the base asset
quote_asset_id TEXT the quote asset
${listed}
${absences}
${doubtAndExtra}`,
  ),
  index_tick_rows: relation(
    "the rows of index_ticks",
    `${series}
${ts}
${asInView("price volume tick_volume", "index_ticks")}
${source}
${aside}`,
  ),
  daily_bar_rows: relation(
    "the rows of ohlcv",
    `${series}
day TEXT the UTC day, YYYY-MM-DD
${asInView("open high low close volume volume_usd vwap twap", "ohlcv")}
record_id TEXT the service's own id of the record
${aside}`,
  ),
  exchange_tick_rows: relation(
    "the rows of exchange_ticks",
    `listing INTEGER the market on the exchange, listings.listing
${ts}
${asInView("last bid ask volume", "exchange_ticks")}
last_moved INTEGER microseconds since 1970 UTC
${source}
${aside}`,
  ),
  market_cap_rows: relation(
    "the rows of market_caps",
    `${series}
${ts}
${asInView("price volume market_cap total_market_cap free_float_supply total_supply change_24h change_7d change_30d", "market_caps")}
rank INTEGER as in market_caps
volume_rank INTEGER as in market_caps
${aside}`,
  ),
  derivative_tick_rows: relation(
    "the rows of derivative_ticks",
    `contract INTEGER the contract, contracts.contract
${ts}
${asInView("price volume volume_usd open_interest open_interest_usd bid ask index_price mark_price funding_rate", "derivative_ticks")}
${aside}`,
  ),
  revision_rows: relation(
    "the rows of revisions",
    `revision INTEGER counts the revisions
stream TEXT the stream
key INTEGER the row's key in the dictionary of its stream
${ts}
before TEXT as in revisions
after TEXT as in revisions
changed_at INTEGER microseconds since 1970 UTC`,
  ),
  settled_ranges: relation(
    "the rows of coverage",
    `stream TEXT the stream
${series}
${range}
proof TEXT rows, empty or lost
reason TEXT why it is empty or lost`,
  ),
  wanted_ranges: relation(
    "what the settings ask for",
    `stream TEXT the stream
${series}
from_ts INTEGER the first moment
to_ts INTEGER the moment after the last; NULL: it follows the present
settle_delay INTEGER microseconds before now at which the claim ends: two refresh periods
step INTEGER the claim moves in steps of so many microseconds
kept_for INTEGER how long the service keeps history, microseconds; NULL: for ever
observed INTEGER 1: a latest-only stream: what was not observed is lost
hindrance TEXT why open ranges stay open at present; NULL while nothing hinders them`,
  ),
  live_spans: relation(
    "what the live feed has heard without a break until now, one row a subscription",
    `stream TEXT the stream
index_type TEXT the family
index_id TEXT the index; empty: the subscription is to the whole family
from_ts INTEGER when the service confirmed the subscription
to_ts INTEGER the newest tick that was heard and stored`,
  ),
  rereads: relation(
    "when the youngest stretch of a line was last read again for late corrections",
    `stream TEXT the stream
${series}
day TEXT the UTC day of it`,
  ),
  stream_states: relation(
    "one row a stream: figures that would cost a scan",
    `stream TEXT the stream
rows INTEGER rows stored
newest_ts INTEGER the newest moment of a row
last_error TEXT the last error; NULL once the stream works again
last_error_at TEXT its moment
missing_scopes TEXT scopes that the token lacks, a JSON array`,
  ),
  warehouse_state: relation(
    "one row: the state of the file",
    `one INTEGER 1
epoch INTEGER raised by each process that becomes the writer
clock_skew INTEGER the service's clock minus this machine's, microseconds
views TEXT digest of the views in place`,
  ),
  job_runs: relation(
    "the last run of each scheduled job",
    `job TEXT the job
moment INTEGER the moment of the schedule that it served, microseconds since 1970 UTC
ended_at TEXT when the run ended
outcome TEXT ok, new (never run so far), or the code of the failure`,
  ),
  size_samples: relation(
    "how large the warehouse was, every ten minutes of the last two days",
    `at INTEGER microseconds since 1970 UTC
bytes INTEGER the file and its WAL`,
  ),
  decimal_scales: relation(
    "powers of ten for the _exact columns",
    `low REAL magnitudes from here on
factor REAL makes them integers
unit INTEGER splits whole part and fraction
zeros TEXT zeros of the fraction that the unit cannot hold`,
  ),
} satisfies Readonly<Record<string, RelationNote>>;
