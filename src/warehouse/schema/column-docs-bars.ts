import { type BarWidth, barWidths } from "../../model/time.ts";
import { index, quality, type RelationDoc, relation } from "./column-doc.ts";

const ohlc = `open DECIMAL the first tick of the bar
high DECIMAL its highest tick
low DECIMAL its lowest tick
close DECIMAL its last tick`;

const proof = `n_ticks INTEGER ticks that the bar is made of
expected_ticks INTEGER ticks that a whole bar has, at the service's refresh period
coverage REAL the share of the bar, 0 to 1, that the ledger covers; ranges that are lost, open or in the future count as not covered
is_complete INTEGER 1: the whole bar is covered: no tick that the service has is missing`;

const words: Record<BarWidth, string> = {
  "1m": "one minute",
  "5m": "five minutes",
  "15m": "fifteen minutes",
  "1h": "one hour",
  "4h": "four hours",
  "1d": "one UTC day",
};

function bars(length: BarWidth): RelationDoc {
  return relation(
    `bars of ${words[length]}; a bar without ticks has no row`,
    `${index}
ts INTEGER the start of the bar, microseconds since 1970 UTC
time TEXT the same as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
${ohlc}
volume_24h DECIMAL the rolling 24-hour volume at the last tick: never sum it
${proof}
quality TEXT in progress, not proven whole, doubtful ticks or fewer ticks than expected; NULL when fine`,
  );
}

const compared = (column: string, what: string) => `computed_${column} REAL price × ${what}
${column}_diff REAL ${column} minus computed_${column}
${column}_rel_diff REAL the same, relative to computed_${column}`;

/** What the views compute from the data when they are queried. */
export const barDocs: Readonly<Record<string, RelationDoc>> = {
  ...Object.fromEntries(
    (Object.keys(barWidths) as BarWidth[]).map((length) => [`bars_${length}`, bars(length)]),
  ),

  reconcile_ohlcv: relation(
    "each daily bar from ticks against the service's own",
    `${index}
ts INTEGER the start of the day, microseconds since 1970 UTC
time TEXT the same as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
day TEXT the UTC day, YYYY-MM-DD
${ohlc}
service_open DECIMAL the service's bar
service_high DECIMAL the service's bar
service_low DECIMAL the service's bar
service_close DECIMAL the service's bar
open_diff REAL the bar made from ticks minus the service's
high_diff REAL the bar made from ticks minus the service's
low_diff REAL the bar made from ticks minus the service's
close_diff REAL the bar made from ticks minus the service's
open_rel_diff REAL the difference, relative to the service's
high_rel_diff REAL the difference, relative to the service's
low_rel_diff REAL the difference, relative to the service's
close_rel_diff REAL the difference, relative to the service's
largest_rel_diff REAL the largest of the four, without its sign; NULL where the service has no bar
${proof}
service_is_final INTEGER 1: the service has the bar, its day is over, and the ledger covers all of it
quality TEXT of the bar made from ticks, else of the service's; NULL when both are fine`,
  ),

  reconcile_market_caps: relation(
    "each market cap against price × supply and the index",
    `asset_id TEXT the asset
symbol TEXT its symbol; its id until it is known
ts INTEGER the timestamp of the ranking, microseconds since 1970 UTC
time TEXT the same as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
price DECIMAL USD, from the ranking
free_float_supply DECIMAL units in circulation
total_supply DECIMAL units that exist
market_cap DECIMAL from the service
${compared("market_cap", "free_float_supply")}
total_market_cap DECIMAL from the service
${compared("total_market_cap", "total_supply")}
index_ts INTEGER the asset's newest GWA tick at or before the ranking
index_time TEXT the same as text
index_price DECIMAL that tick's value
price_rel_diff REAL price minus index_price, relative to index_price
${quality}`,
  ),
};
