import { type BarWidth, barWidths } from "../../model/time.ts";
import { doubt, index, type RelationNote, relation } from "./column-doc.ts";

const ohlc = `open DECIMAL the first tick of the bar
high DECIMAL its highest tick
low DECIMAL its lowest tick
close DECIMAL its last tick`;

const proof = `n_ticks INTEGER ticks that the bar is made of
expected_ticks INTEGER ticks that a whole bar has, by the service's refresh period
coverage REAL how much of the bar, 0 to 1, the ledger proves as rows or empty; what is lost, open or yet to come is not
is_complete INTEGER 1: all of the bar is proven: no tick that the service has is missing`;

const words: Record<BarWidth, string> = {
  "1m": "one minute",
  "5m": "five minutes",
  "15m": "fifteen minutes",
  "1h": "one hour",
  "4h": "four hours",
  "1d": "one UTC day",
};

function bars(length: BarWidth): RelationNote {
  return relation(
    `bars of ${words[length]}; one without ticks is no row`,
    `${index}
ts INTEGER the start of the bar, microseconds since 1970 UTC
time TEXT the same moment, YYYY-MM-DDTHH:MM:SS.ffffffZ
${ohlc}
volume_24h DECIMAL the rolling 24-hour volume at the last tick: never to be summed
${proof}
quality TEXT in progress, not proven whole, doubtful ticks or fewer ticks than expected; NULL when fine`,
  );
}

const compared = (column: string, what: string) => `computed_${column} REAL price × ${what}
${column}_diff REAL ${column} minus what it should come to
${column}_rel_diff REAL the same, relative to what it should come to`;

/** What is computed from the data at the moment of the query. */
export const barNotes: Readonly<Record<string, RelationNote>> = {
  ...Object.fromEntries(
    (Object.keys(barWidths) as BarWidth[]).map((length) => [`bars_${length}`, bars(length)]),
  ),

  reconcile_ohlcv: relation(
    "each daily bar of ours against the service's",
    `${index}
ts INTEGER the start of the day, microseconds since 1970 UTC
time TEXT the same moment, YYYY-MM-DDTHH:MM:SS.ffffffZ
day TEXT the UTC day, YYYY-MM-DD
${ohlc}
service_open DECIMAL what the service's bar says
service_high DECIMAL what the service's bar says
service_low DECIMAL what the service's bar says
service_close DECIMAL what the service's bar says
open_diff REAL ours minus the service's
high_diff REAL ours minus the service's
low_diff REAL ours minus the service's
close_diff REAL ours minus the service's
open_rel_diff REAL the difference, relative to the service's
high_rel_diff REAL the difference, relative to the service's
low_rel_diff REAL the difference, relative to the service's
close_rel_diff REAL the difference, relative to the service's
largest_rel_diff REAL the largest of the four, without its sign; NULL where the service has no bar
${proof}
service_is_final INTEGER 1: the service's bar is there, its day is over, and the ledger holds all of it
quality TEXT of our bar, else of the service's; NULL when both are fine`,
  ),

  reconcile_market_caps: relation(
    "each market cap against price × supply and the index",
    `asset_id TEXT the asset
symbol TEXT its symbol; its id until it is known
ts INTEGER the moment of the ranking, microseconds since 1970 UTC
time TEXT the same moment, YYYY-MM-DDTHH:MM:SS.ffffffZ
price DECIMAL USD, as the ranking says
free_float_supply DECIMAL units in circulation
total_supply DECIMAL units that there are
market_cap DECIMAL as the service says
${compared("market_cap", "free_float_supply")}
total_market_cap DECIMAL as the service says
${compared("total_market_cap", "total_supply")}
index_ts INTEGER the asset's newest GWA tick at or before the ranking
index_time TEXT the same moment as text
index_price DECIMAL that tick's value
price_rel_diff REAL price minus index_price, relative to index_price
${doubt}`,
  ),
};
