import type { Column } from "../../model/column.ts";
import { derivativeContractColumns, lookupColumns, marketColumns } from "../../model/stream-columns.ts";
import {
  type Dictionary,
  isDaily,
  keyColumns,
  type RowStream,
  rowStreams,
  streamTable,
} from "../../model/streams.ts";
import { rowColumns, rowTables } from "../tables/row-tables.ts";
import { type ColumnDoc, type RelationDoc, relation, tableDocs } from "./column-doc.ts";

const details = doc("details", "TEXT", "JSON object of rare values: exact digits, quality, extra");
const SINCE = "the commit that wrote this version, commits.seq; NULL: one before the warehouse kept its past";
const since = doc("since", "INTEGER", SINCE);
const until = doc("until", "INTEGER", "the commit that replaced or deleted it");
const confirmed = doc("confirmed", "INTEGER", "the commit in which REST confirmed a live row; NULL: none");
const series = "series INTEGER the series, series.series";
const range = `from_ts INTEGER where the range begins, microseconds since 1970 UTC
to_ts INTEGER where it ends, exclusive`;

const keyMeanings: Readonly<Record<Dictionary, string>> = {
  series: "the series, series.series",
  listings: "the market on the exchange, listings.listing",
  contracts: "the contract, contracts.contract",
};

function doc(name: string, type: ColumnDoc["type"], meaning: string): ColumnDoc {
  return { name, type, meaning };
}

/** The table that a row stream is stored in. */
function rowTableDoc(stream: RowStream): RelationDoc {
  const { dictionary } = streamTable[stream];
  return {
    summary: `the rows of ${stream}`,
    columns: [
      doc(keyColumns[dictionary], "INTEGER", keyMeanings[dictionary]),
      isDaily(stream)
        ? doc("day", "TEXT", "the UTC day, YYYY-MM-DD")
        : doc("ts", "INTEGER", "the timestamp, microseconds since 1970 UTC"),
      ...tableDocs(rowColumns(stream), stream),
      details,
      ...(rowTables[stream].pastTable === undefined ? [] : [since]),
      ...(stream === "index_ticks" ? [confirmed] : []),
    ],
  };
}

/** The table of the earlier versions of a stream's rows. */
function pastTableDoc(stream: RowStream): RelationDoc {
  const { columns } = rowTableDoc(stream);
  return {
    summary: `earlier versions of the rows of ${stream}, for --known-at`,
    columns: [...columns, until],
  };
}

const rowTableDocs = Object.fromEntries(
  rowStreams.map((stream) => [streamTable[stream].table, rowTableDoc(stream)]),
);

/** The columns of the table behind a lookup's view. */
function lookupTableDocs(columns: readonly Column[], added: readonly ColumnDoc[] = []): ColumnDoc[] {
  const serviceColumns = columns.filter(({ source }) => source === "row");
  return [...tableDocs(serviceColumns), ...added, ...tableDocs(lookupColumns)];
}

/** The tables below the views. They may change with any version, except `series`, which is meant to be joined. */
export const internalDocs = {
  series: relation(
    "every index with its key, for joins",
    `series INTEGER the key
index_type TEXT GWA, MWA or LX; empty for a ledger key of a snapshot stream
index_id TEXT the asset, market or liquid index; in a snapshot stream the exchange
name TEXT its readable name
name_from TEXT price: the name was concluded from a price; NULL: the service or the settings gave it`,
  ),
  listings: relation(
    "the markets on exchanges and their keys",
    `listing INTEGER the key
exchange_id TEXT the exchange
market_id TEXT the market
exchange TEXT the exchange's name
pair TEXT the market's pair`,
  ),
  contracts: {
    summary: "derivative contracts and their keys",
    columns: [
      doc("contract", "INTEGER", "the key"),
      ...lookupTableDocs(derivativeContractColumns, [
        details,
        doc("exchange", "TEXT", "as in derivative_contracts"),
        doc("pair", "TEXT", "as in derivative_contracts"),
        doc("is_described", "INTEGER", "0: known from a tick only"),
      ]),
    ],
  },
  market_rows: { summary: "the rows of markets", columns: lookupTableDocs(marketColumns) },
  ...rowTableDocs,
  kept_bars: relation(
    "the hourly bars of the index ticks, kept for bars_1h, bars_4h and bars_1d",
    `${series}
ts INTEGER the start of the hour, microseconds since 1970 UTC
open REAL the first tick of the hour
high REAL its highest tick
low REAL its lowest tick
close REAL its last tick
volume_24h REAL the rolling 24-hour volume at the last tick
n_ticks INTEGER number of ticks; NULL: a tick has changed since, and the views read the ticks instead
n_doubtful INTEGER how many of them have a quality
details TEXT JSON object of rare values: exact digits
first_commit INTEGER the first commit that wrote one of its ticks; NULL: one before the warehouse kept its past
last_commit INTEGER the last commit that may have changed one of them; NULL: as above`,
  ),
  past_tick_rows: pastTableDoc("index_ticks"),
  past_daily_bar_rows: pastTableDoc("ohlcv"),
  revision_rows: relation(
    "the rows of revisions",
    `revision INTEGER sequence number of the revision
stream TEXT the stream
key INTEGER the row's key in the dictionary of its stream
ts INTEGER the timestamp, microseconds since 1970 UTC
before TEXT as in revisions
after TEXT as in revisions
changed_at INTEGER microseconds since 1970 UTC`,
  ),
  settled_ranges: relation(
    "the rows of coverage",
    `stream TEXT the stream
${series}
${range}
proof TEXT rows, moved, empty or lost
reason TEXT why it is empty or lost, or where its rows were moved
since INTEGER ${SINCE}`,
  ),
  past_settled_ranges: relation(
    "what the ledger said earlier, for --known-at",
    `stream TEXT the stream
${series}
${range}
proof TEXT rows, moved, empty or lost
reason TEXT as in settled_ranges
since INTEGER ${SINCE}
until INTEGER the commit that changed or retracted it`,
  ),
  commits: relation(
    "the commits that changed rows or the ledger",
    `seq INTEGER number of the commit; 0: what the warehouse had when it began to keep its past
at INTEGER when it was made by this machine's clock, microseconds since 1970 UTC; never less than the commit before
unknown_from INTEGER a copy was restored: what was known between this moment and \`at\` is in another file; NULL: an ordinary commit
clock_skew INTEGER the service's clock minus this machine's then, microseconds; NULL: \`at\` is by the service's clock, as earlier versions had it`,
  ),
  targets: relation(
    "the targets: what the settings select",
    `stream TEXT the stream
${series}
from_ts INTEGER where the range begins, microseconds since 1970 UTC
to_ts INTEGER where it ends, exclusive; NULL: it grows with time
settle_delay INTEGER the target ends this many microseconds before now: two refresh periods
period INTEGER microseconds between two records: a day for daily bars, else the refresh period
step INTEGER the end of the target moves in steps of this many microseconds
service_window INTEGER how long the service keeps history, microseconds; NULL: for ever
is_snapshot INTEGER 1: a snapshot stream, whose periods without a snapshot are lost
blocked_reason TEXT why open ranges cannot be fetched at present; NULL while they can`,
  ),
  live_spans: relation(
    "the live spans: what each subscription has received without a break until now",
    `stream TEXT the stream
index_type TEXT the index type
index_id TEXT the index; empty: the subscription is to all indices of the type
from_ts INTEGER when the service confirmed the subscription
to_ts INTEGER the newest tick that was received and stored`,
  ),
  publications: relation(
    "what REST has shown of each series: coverage does not go beyond it",
    `stream TEXT the stream
${series}
published_to INTEGER the newest record that REST has shown plus one period; 0: none
asked_at INTEGER when the head was last requested, microseconds since 1970 UTC; 0: never
asked_to INTEGER the request asked for everything up to here
quiet_margin INTEGER the series is quiet: its target ends this many microseconds before now; 0: it is not`,
  ),
  rechecks: relation(
    "the last recheck of each ledger key for late corrections, and when an exchange last had no contracts",
    `stream TEXT the stream; derivative_contracts and a type: the exchange has no contracts of this type
${series}
day TEXT the UTC day of the recheck`,
  ),
  pending_claims: relation(
    "claims that records do not exist, which the service must repeat before they are accepted",
    `claim INTEGER sequence number of the claim
kind TEXT \`end\`: nothing is older; \`end moved\`: nor what it served before; \`withdrawn\`: many rows are gone; \`not found\`: the index does not exist
stream TEXT the stream
${series}
${range}
rows INTEGER how many stored rows the service lacks
subject TEXT JSON array of timestamps: the rows that are gone, or the oldest record above an end
answers INTEGER how many answers made the claim
first_at INTEGER the first of these answers, microseconds since 1970 UTC
last_at INTEGER the last of these answers, microseconds since 1970 UTC
accepted_at INTEGER when it was accepted, microseconds since 1970 UTC; NULL: pending, the rows stay and the range is open`,
  ),
  changes: relation(
    "the journal: where rows or coverage changed, for every reader that follows the warehouse",
    `seq INTEGER sequence number; a range that changes again may get a new one
stream TEXT the stream
kind TEXT \`rows\`: rows or coverage changed; \`ledger\`: the coverage of snapshots changed; \`retracted\`: coverage was taken back
key INTEGER the key of the rows in the dictionary of their stream, or of the ledger
${range}`,
  ),
  stream_states: relation(
    "one row per stream: values that would otherwise need a scan",
    `stream TEXT the stream
rows INTEGER rows stored
newest_ts INTEGER the newest timestamp of a row
last_error TEXT the last error; NULL once the stream works again
last_error_at TEXT when it happened
missing_scopes TEXT scopes that the token lacks, a JSON array
late_by INTEGER how long after their timestamps records appeared, microseconds; 0: in time
late_at INTEGER when that was last seen, microseconds since 1970 UTC
live_offset INTEGER how much later the websocket stamps a tick than REST, microseconds; NULL: equal, or unknown
serves_running_day INTEGER 1: the service serves the bar of a day that has not ended; NULL: it never did so far`,
  ),
  warehouse_state: relation(
    "one row: the state of the file",
    `one INTEGER always 1
epoch INTEGER raised by each process that becomes the writer
clock_skew INTEGER the service's clock minus this machine's, microseconds
views TEXT digest of the stored view definitions
request_rate REAL history requests a second of the last long backfill; NULL: not measured yet
changes_id INTEGER a random number that names the journal
changes_pruned INTEGER the newest entry of the journal that was deleted; 0: none
history_id INTEGER a random number that names the past of the warehouse; copies share it
service_url TEXT the REST address of the service that the data is from; NULL: nothing is stored yet`,
  ),
  service_ids: relation(
    "the ids of everything that the warehouse's service has listed: they tell it from another service",
    `stream TEXT assets, markets or exchanges
id TEXT the id`,
  ),
  job_runs: relation(
    "the last run of each scheduled job",
    `job TEXT the job
scheduled_at INTEGER the scheduled time that it ran for, microseconds since 1970 UTC
ended_at TEXT when the run ended
outcome TEXT ok, new (has never run), or the code of the failure`,
  ),
  size_samples: relation(
    "the size of the warehouse, every ten minutes of the last two days",
    `at INTEGER microseconds since 1970 UTC
bytes INTEGER the file and its WAL`,
  ),
  decimal_scales: relation(
    "powers of ten for the _exact columns",
    `low REAL the row applies to magnitudes from here up to the next row
factor REAL scales a value to an integer
unit INTEGER splits that integer into whole part and fraction
zeros TEXT leading zeros of the fraction that unit cannot represent`,
  ),
} satisfies Readonly<Record<string, RelationDoc>>;
