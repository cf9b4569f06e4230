/* SQL that several views of the shared warehouse use. */

/** Microseconds since 1970 as a moment, exactly: `to_timestamp` would go through a double. */
export function momentOf(ts: string): string {
  return `timestamptz '1970-01-01 00:00:00+00' + (${ts}) * interval '1 microsecond'`;
}

/** Now by the service's clock, in whole seconds as in SQLite. */
export const sharedPresentTs =
  "(floor(extract(epoch FROM statement_timestamp()))::bigint * 1000000 + (SELECT x.clock_skew FROM mds.source x))";

/** A decimal and its exact twin (docs/decisions/exact-decimals.md). `name`: what the view calls them. */
export function sharedDecimals(row: string, column: string, name = column): string {
  const digits = `coalesce((${readAside(row, column)})::numeric, ${row}.${column}::numeric)`;
  return `${row}.${column}${name === column ? "" : ` AS ${name}`}, ${digits} AS ${name}_exact`;
}

export function readAside(row: string, entry: string): string {
  return `(${row}.aside ->> '${entry}')`;
}

/** Whether the ledger covers `[ts, until)`. One index seek. */
export function isCoveredThere(stream: string, series: string, ts: string, until: string): string {
  return `coalesce((SELECT g.to_ts >= ${until} AND g.proof <> 'lost' FROM mds.settled_ranges g
    WHERE g.stream = '${stream}' AND g.series = ${series} AND g.from_ts <= ${ts} ORDER BY g.from_ts DESC LIMIT 1), false)`;
}
