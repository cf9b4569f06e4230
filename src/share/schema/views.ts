import { keyColumns, type RowStream, streamTable } from "../../model/streams.ts";
import { coverageViews } from "../../warehouse/views/coverage-views.ts";
import {
  liveColumns,
  MAX_AHEAD_MICROS,
  streamViews,
  tickStreams,
  viewColumns,
} from "../../warehouse/views/data-views.ts";
import { refreshPeriod } from "../../warehouse/views/sql-dialect.ts";
import { sharedBarViews } from "./bar-views.ts";
import { postgresDialect } from "./postgres-dialect.ts";
import { sharedResearchViews } from "./research-views.ts";

/*
 * The public relations in schema `mds`, with the columns of the SQLite views in their order, and real types. `ts` is the
 * stored column, so conditions on `ts` use the primary key and skip the partitions of other months.
 */

/** The newest row of each series, by one index seek each. */
function latestRows(stream: RowStream): string {
  const { table, dictionary } = streamTable[stream];
  const key = keyColumns[dictionary];
  const newest = (entry: string) => `SELECT n.* FROM mds.${table} n WHERE n.${key} = ${entry}.${key}
    AND n.ts < ${postgresDialect.presentTs} + ${MAX_AHEAD_MICROS} ORDER BY n.ts DESC LIMIT 1`;
  const newestOfStream = `(SELECT max(x.ts) FROM mds.${dictionary} k CROSS JOIN LATERAL (${newest("k")}) x)`;
  const live = liveColumns(postgresDialect, stream, newestOfStream);
  return `SELECT ${[...viewColumns(postgresDialect, stream, postgresDialect.decimals), live].join(",\n  ")}
FROM mds.${dictionary} s CROSS JOIN LATERAL (${newest("s")}) r`;
}

const rowViews = {
  ...streamViews(postgresDialect),
  ...Object.fromEntries(tickStreams.map((stream) => [`latest_${stream}`, latestRows(stream)])),
};

/** The public relations that are views, by name. The others are tables. */
export const sharedViews: Readonly<Record<string, string>> = {
  ...rowViews,
  ...sharedBarViews,
  ...sharedResearchViews(rowViews, refreshPeriod(postgresDialect, "exchange_ticks")),
  ...coverageViews(postgresDialect),
  status_changes: "SELECT change, entity, id, field, old, new, seen_at FROM mds.status_change_rows",
  rejects: "SELECT reject, stream, received_at, reason, raw, request FROM mds.reject_rows",
};
