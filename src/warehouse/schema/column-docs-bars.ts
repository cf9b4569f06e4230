import { type BarWidth, barWidths } from "../../model/time.ts";
import { index, quality, type RelationDoc, relation } from "./column-doc.ts";

const ohlc = `open DECIMAL the first tick of the bar
high DECIMAL its highest tick
low DECIMAL its lowest tick
close DECIMAL its last tick`;

const proof = `n_ticks INTEGER number of ticks in the bar
expected_ticks INTEGER number of ticks in a full bar at the service's refresh period
coverage REAL the part of the bar, 0 to 1, that the ledger covers; ranges that are lost, open or in the future count as not covered
is_complete INTEGER 1: the ledger covers the whole bar, so it has every tick that the service has`;

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
time TEXT ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
${length === "1d" ? "day TEXT the UTC day, YYYY-MM-DD\n" : ""}${ohlc}
volume_24h DECIMAL the rolling 24-hour volume at the last tick: never sum it
${proof}
quality TEXT in progress, not proven whole, doubtful ticks or fewer ticks than expected; NULL if none applies`,
  );
}

const compared = (column: string, what: string) => `computed_${column} REAL price × ${what}
${column}_diff REAL ${column} minus computed_${column}
${column}_rel_diff REAL ${column}_diff relative to computed_${column}`;

/** Bars and comparisons, which the views compute when they are queried. */
export const barDocs: Readonly<Record<string, RelationDoc>> = {
  ...Object.fromEntries(
    (Object.keys(barWidths) as BarWidth[]).map((length) => [`bars_${length}`, bars(length)]),
  ),

  reconcile_ohlcv: relation(
    "each daily bar from ticks versus the service's own",
    `${index}
ts INTEGER the start of the day, microseconds since 1970 UTC
time TEXT ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
day TEXT the UTC day, YYYY-MM-DD
${ohlc}
service_open DECIMAL open of the service's bar
service_high DECIMAL high of the service's bar
service_low DECIMAL low of the service's bar
service_close DECIMAL close of the service's bar
open_diff REAL open minus service_open
high_diff REAL high minus service_high
low_diff REAL low minus service_low
close_diff REAL close minus service_close
open_rel_diff REAL open_diff relative to service_open
high_rel_diff REAL high_diff relative to service_high
low_rel_diff REAL low_diff relative to service_low
close_rel_diff REAL close_diff relative to service_close
largest_rel_diff REAL the largest absolute value of the four; NULL if one of them is NULL
${proof}
service_is_final INTEGER 1: the service has the bar, its day is over, and the ledger covers all of it
quality TEXT the service has no bar, or else quality of the bar from ticks, or else of the service's bar; NULL if none applies`,
  ),

  reconcile_market_caps: relation(
    "each market cap versus price × supply and the index",
    `asset_id TEXT the asset
symbol TEXT the asset's symbol; its id while the symbol is unknown
ts INTEGER the timestamp of the ranking, microseconds since 1970 UTC
time TEXT ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
price DECIMAL price in USD, from the ranking
free_float_supply DECIMAL units in circulation
total_supply DECIMAL units that exist
market_cap DECIMAL as the service computes it
${compared("market_cap", "free_float_supply")}
total_market_cap DECIMAL as the service computes it
${compared("total_market_cap", "total_supply")}
index_ts INTEGER timestamp of the asset's newest GWA tick at or before ts
index_time TEXT index_ts as text
index_price DECIMAL price of that tick
price_rel_diff REAL price minus index_price, relative to index_price
${quality}`,
  ),
};
