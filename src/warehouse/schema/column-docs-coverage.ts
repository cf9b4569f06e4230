import { type RelationNote, relation } from "./column-doc.ts";

const line = `stream TEXT the stream: index_ticks, ohlcv, exchange_ticks, market_caps, derivative_ticks …
index_type TEXT GWA, MWA or LX; NULL for a subscription of a latest-only stream
index_id TEXT the index; for a subscription its exchange; NULL: the subscription to everything
name TEXT what a person calls it`;

const range = `from_ts INTEGER the first moment, microseconds since 1970 UTC
to_ts INTEGER the moment after the last
from_time TEXT the first moment as text
to_time TEXT the moment after the last as text`;

const unknown = `where TEXT the stream, or the websocket
name TEXT the name that is not known
first_seen TEXT when it was first seen
count INTEGER how often it was seen
sample TEXT one value of it, as it came`;

/** What is proven, what is missing, what changed and what could not be read. */
export const ledgerNotes: Readonly<Record<string, RelationNote>> = {
  coverage: relation(
    "the ledger: what is proven, as ranges [from, to)",
    `${line}
${range}
proof TEXT rows: all rows of the range are here; empty: the service has none; lost: it no longer says
reason TEXT why it is empty or lost; NULL for rows`,
  ),
  gaps: relation(
    "what is missing at this moment, as ranges [from, to)",
    `${line}
${range}
state TEXT open: it will be fetched; lost: the service no longer has it
reason TEXT pending, settling (it only awaits confirmation), forbidden, aged out, not observed, retention …
lost_at TEXT when an open range leaves the service's window; NULL: never`,
  ),
  revisions: relation(
    "what a row said before it was corrected or withdrawn",
    `stream TEXT the stream of the row
index_type TEXT GWA, MWA or LX; NULL where the row is of no index
index_id TEXT the index, asset, contract, or EXCHANGE/MARKET of an exchange tick
name TEXT what a person calls it
ts INTEGER the row's moment, microseconds since 1970 UTC
time TEXT the same moment as text
before TEXT the row as it was: a JSON object, decimals as exact text
after TEXT the row as it became; NULL: withdrawn
changed_at TEXT when the warehouse learned of it`,
  ),
  status_changes: relation(
    "what changed in a lookup, and when it was seen",
    `change INTEGER counts the changes
entity TEXT asset, market, exchange, exchange_market, exchange_symbol or contract
id TEXT whose; of a pair both ids with a slash between them
field TEXT which field
old TEXT what it said
new TEXT what it says now
seen_at TEXT when the change was seen`,
  ),
  rejects: relation(
    "records that could not be read, as they came",
    `reject INTEGER counts the rejects
stream TEXT the stream
received_at TEXT when it came
reason TEXT why it could not be read
raw TEXT the record as it came
request TEXT the request that brought it; NULL for the websocket`,
  ),
  unknown_fields: relation("properties of records that this version does not know", unknown),
  unknown_events: relation("websocket events that this version does not know", unknown),
};
