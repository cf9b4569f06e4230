import { type RelationDoc, relation } from "./column-doc.ts";

const ledgerKey = `stream TEXT the stream: index_ticks, ohlcv, exchange_ticks, market_caps, derivative_ticks …
index_type TEXT GWA, MWA or LX; NULL for a snapshot stream
index_id TEXT the index; in a snapshot stream the exchange, NULL for all exchanges
name TEXT its readable name`;

const range = `from_ts INTEGER where the range begins, microseconds since 1970 UTC
to_ts INTEGER where it ends, exclusive
from_time TEXT from_ts as text
to_time TEXT to_ts as text`;

const unknown = `where TEXT the stream, or the websocket
name TEXT the unknown name
first_seen TEXT when it was first seen
count INTEGER how often it was seen
sample TEXT one value, as received`;

/** Coverage, gaps, changes and unreadable records. */
export const coverageDocs: Readonly<Record<string, RelationDoc>> = {
  coverage: relation(
    "the ledger: covered and lost ranges [from, to)",
    `${ledgerKey}
${range}
proof TEXT rows: all rows of the range are stored; moved: they are where the reason says; empty: the service has none; lost: it no longer serves them
reason TEXT why the range is empty or lost; moved to …: the export or database that has its rows; NULL: they are here`,
  ),
  gaps: relation(
    "what is not proven now, as ranges [from, to)",
    `${ledgerKey}
${range}
state TEXT open: the sync will fetch it; unconfirmed: all that the service has shown is stored, and it must say once more that there is nothing else; lost: the service no longer has it
reason TEXT of an open range: pending, not published yet, withdrawal unconfirmed, forbidden …; of an unconfirmed one: settling (a young head), end unconfirmed, "not found, unconfirmed"; of a lost one: aged out, no longer served, not observed, retention …
lost_at TEXT when an open range leaves the service's window; NULL: never`,
  ),
  revisions: relation(
    "earlier versions of corrected or withdrawn rows",
    `stream TEXT the stream of the row
index_type TEXT GWA, MWA or LX; NULL if the row belongs to no index
index_id TEXT the index, asset, contract, or EXCHANGE/MARKET of an exchange tick
name TEXT its readable name
ts INTEGER the row's timestamp, microseconds since 1970 UTC
time TEXT ts as text
before TEXT the row as it was: a JSON object, decimals as exact text
after TEXT the row after the change; NULL: withdrawn
changed_at TEXT when the warehouse received the change, by the clock of its machine, as for --known-at`,
  ),
  status_changes: relation(
    "changes of the lookups, and when they were noticed",
    `change INTEGER sequence number of the change
entity TEXT asset, market, exchange, exchange_market, exchange_symbol or contract
id TEXT the id of the entity; for an exchange_market or exchange_symbol both ids, joined by a slash
field TEXT the field that changed
old TEXT the value before
new TEXT the value after
seen_at TEXT when the warehouse noticed the change`,
  ),
  rejects: relation(
    "records that are unreadable, or the second of a moment",
    `reject INTEGER sequence number of the reject
stream TEXT the stream
received_at TEXT when the record was received
reason TEXT why it could not be read; or: second record of one moment, when the row of that moment is another record, and its quality says so
raw TEXT the record as received
request TEXT the request that returned it; NULL for the websocket`,
  ),
  unknown_fields: relation("properties of records that this version does not know", unknown),
  unknown_events: relation("websocket events that this version does not know", unknown),
};
