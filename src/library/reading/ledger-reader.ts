import { usageFailure } from "../../model/failure.ts";
import type { GapRow } from "../../model/status/gap-state.ts";
import { type Stream, streams } from "../../model/streams.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { readPresentTs } from "../../warehouse/coverage/targets.ts";
import { type NamedSeries, resolveNames } from "../../warehouse/lookups/resolve-names.ts";
import { hasLedger, readGapReport } from "../../warehouse/read/gap-report.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { LedgerOptions } from "../read-options.ts";
import type { CoverageRow } from "../rows.ts";
import { readTime } from "./read-plan.ts";
import { findTimeZone } from "./time-zone.ts";

const coverageSql = "SELECT * FROM coverage ORDER BY stream, index_type, name, index_id, from_ts";

/** The settled ranges, clipped to the options. */
export function readCoverage(connection: Connection, options: LedgerOptions): CoverageRow[] {
  const { streams: selected, series, from, to } = readOptions(connection, options);
  return connection
    .rows<CoverageRow>(coverageSql)
    .filter(({ stream }) => selected === undefined || selected.some((name) => name === stream))
    .filter((row) => series?.some((named) => isOf(row, named)) ?? true)
    .map((row) => clip(row, from ?? row.from_ts, to ?? row.to_ts))
    .filter(({ from_ts, to_ts }) => from_ts < to_ts);
}

/** The gaps as `mds-sync gaps` lists them. */
export function readLedgerGaps(connection: Connection, options: LedgerOptions): GapRow[] {
  const { from, to, ...selection } = readOptions(connection, options);
  return [...readGapReport(connection, selection, { from, to }).gaps];
}

function readOptions(connection: Connection, { stream, series, from, to, tz }: LedgerOptions) {
  const [now, zone] = [readPresentTs(connection), findTimeZone(tz)];
  const names = typeof series === "string" ? [series] : series;
  return {
    streams: stream === undefined ? undefined : [findStream(stream)],
    series: names && resolveNames(connection, names).found,
    from: from === undefined ? undefined : readTime(from, now, zone),
    to: to === undefined ? undefined : readTime(to, now, zone),
  };
}

function isOf({ stream, index_id }: CoverageRow, { id, stream: only, ledgerId = id }: NamedSeries): boolean {
  if (only !== undefined && stream !== only) return false;
  // A subscription to all exchanges covers each of them.
  return index_id === ledgerId || (only !== undefined && index_id === null);
}

function findStream(name: string): Stream {
  const stream = streams.find((known) => known === name);
  if (stream !== undefined && hasLedger(stream)) return stream;
  throw usageFailure(
    `the ledger has no stream ${name}`,
    `give one of ${streams.filter(hasLedger).join(", ")}`,
  );
}

function clip(row: CoverageRow, from: Micros, to: Micros): CoverageRow {
  if (from <= row.from_ts && to >= row.to_ts) return row;
  const [from_ts, to_ts] = [Math.max(from, row.from_ts), Math.min(to, row.to_ts)];
  return { ...row, from_ts, to_ts, from_time: formatTimestamp(from_ts), to_time: formatTimestamp(to_ts) };
}
