/** What differs between SQLite, PostgreSQL and DuckDB, so that a view is described once for all of them. */
export interface SqlDialect {
  /** A relation of the warehouse by its full name. */
  table(name: string): string;
  /** The types of computed columns. */
  integer(sql: string): string;
  real(sql: string): string;
  text(sql: string): string;
  flag(sql: string): string;
  /** Microseconds as seconds. */
  seconds(micros: string): string;
  /** A timestamp as a moment; `wholeMoment`: one of a whole second. */
  moment(ts: string): string;
  wholeMoment(ts: string): string;
  /** The UTC day of a timestamp. */
  day(ts: string): string;
  /** A decimal and its exact twin; `name`: what the view calls them. */
  decimals(row: string, column: string, name?: string): string;
  /** The same for a view of few rows. */
  fewDecimals(row: string, column: string, name?: string): string;
  /** One entry of a row's `details`, as text. */
  details(row: string, entry: string): string;
  /** The largest and the smallest of several values; null if one of them is. */
  largest(...values: readonly string[]): string;
  smallest(...values: readonly string[]): string;
  /** What orders the exchange ticks of one listing by time, first to last. */
  readonly tickerOrder: readonly string[];
  /** Now by the service's clock, in microseconds. */
  readonly presentTs: string;
  readonly yes: string;
  readonly no: string;
}

export function refreshPeriod({ table }: Pick<SqlDialect, "table">, stream: string): string {
  return `(SELECT coalesce(max(w.period), 30000000) FROM ${table("targets")} w WHERE w.stream = '${stream}')`;
}

/** Whether the ledger covers `[ts, until)`. One index seek. */
export function isCovered(
  { table, no }: Pick<SqlDialect, "table" | "no">,
  stream: string,
  series: string,
  ts: string,
  until = `${ts} + 1`,
): string {
  return `coalesce((SELECT g.to_ts >= ${until} AND g.proof <> 'lost' FROM ${table("settled_ranges")} g
    WHERE g.stream = '${stream}' AND g.series = ${series} AND g.from_ts <= ${ts}
    ORDER BY g.from_ts DESC LIMIT 1), ${no})`;
}
