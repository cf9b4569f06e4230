import type { Column } from "../../model/column.ts";
import {
  exchangeMarketColumns,
  exchangeSymbolColumns,
  latestColumns,
  lookupColumns,
} from "../../model/stream-columns.ts";
import { type Stream, streamDefinition, streams } from "../../model/streams.ts";
import { index, quality, type RelationDoc, relation, slimDocs, viewDocs } from "./column-doc.ts";

/** A lookup with the columns that the warehouse adds; views omit the count of absences. */
function lookupDoc(summary: string, columns: readonly Column[], isView = false): RelationDoc {
  const added = lookupColumns.filter(({ name }) => !(isView && name === "absences"));
  return { summary, columns: viewDocs([...columns, ...added]) };
}

function streamDocs(stream: Stream): [string, RelationDoc][] {
  const { kind, table, summary, latestSummary, columns } = streamDefinition(stream);
  if (kind === "lookup") return [[stream, lookupDoc(summary, columns, table !== stream)]];
  const relations: [string, RelationDoc][] = [[stream, { summary, columns: viewDocs(columns) }]];
  if (latestSummary !== null)
    relations.push(
      [`latest_${stream}`, { summary: latestSummary, columns: viewDocs([...columns, ...latestColumns]) }],
      [
        `${stream}_slim`,
        {
          summary: `${stream}, the stored columns only: fast`,
          columns: slimDocs(columns),
        },
      ],
    );
  return relations;
}

const derived = Object.fromEntries(streams.flatMap(streamDocs));
const { assets, markets, exchanges, derivative_contracts, ...rows } = derived;

const tickDocs = rows.index_ticks?.columns ?? [];

/** The public relations of the lookups and the data. */
export const dataDocs = {
  assets,
  markets,
  exchanges,
  exchange_markets: lookupDoc("which markets each exchange has", exchangeMarketColumns),
  exchange_symbols: lookupDoc("an exchange's own symbol for an asset", exchangeSymbolColumns),
  derivative_contracts,
  shared_names: relation(
    "the series whose name another series has too",
    `name TEXT the name: a condition on it alone selects several series; add index_type, or take index_id
index_type TEXT GWA (an asset in USD), MWA (a market) or LX (a liquid index)
index_id TEXT the index
asset TEXT the full name of the asset, of a market that of its base asset; NULL for LX
status TEXT the status of that asset`,
  ),
  ...rows,
  index_ticks_by_day: {
    summary: "index_ticks with their day, by which they are read",
    columns: [{ name: "day", type: "TEXT", meaning: "the UTC day of the tick, YYYY-MM-DD" }, ...tickDocs],
  },
  index_tick_spans: relation(
    "the first and the last tick of each series",
    `${index}
first_ts INTEGER the first tick, microseconds since 1970 UTC
first_time TEXT first_ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
last_ts INTEGER the last tick, microseconds since 1970 UTC
last_time TEXT last_ts as text`,
  ),
  index_tick_versions: relation(
    "every version of a tick, and when it was valid",
    `${index}
ts INTEGER the timestamp, microseconds since 1970 UTC
time TEXT ts as text, YYYY-MM-DDTHH:MM:SS.ffffffZ
price DECIMAL the value of the index in this version
volume DECIMAL rolling 24-hour volume in this version
known_from_ts INTEGER when the previous version was corrected or withdrawn; NULL: this is the first version, whose arrival is not recorded
known_from_time TEXT known_from_ts as text
known_until_ts INTEGER when this version was corrected or withdrawn; NULL: it is still valid
known_until_time TEXT known_until_ts as text
${quality}`,
  ),
} as Readonly<Record<string, RelationDoc>>;
