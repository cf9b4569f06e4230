import { Failure } from "../../model/failure.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { MOVED_REASON } from "../../warehouse/coverage/ledger.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";
import type { BarSource, SeriesInfo } from "../rows.ts";

/** A covered range whose ticks are in an export only. */
export interface MovedTicks extends TimeRange {
  readonly place: string;
}

const movedSql = `SELECT from_ts AS "from", to_ts AS "to", substr(reason, ${MOVED_REASON.length + 1}) AS place FROM settled_ranges
  WHERE stream = 'index_ticks' AND series = ? AND proof = 'moved' AND from_ts < ? AND to_ts > ? ORDER BY from_ts`;

/** The moved ticks of a range, ascending. */
export function findMovedTicks(
  connection: Connection,
  key: number | null,
  { from, to }: TimeRange,
): MovedTicks[] {
  if (key === null) return [];
  return connection
    .rows<MovedTicks>(movedSql, [key, to, from])
    .map((range) => ({ ...range, from: Math.max(from, range.from), to: Math.min(to, range.to) }));
}

/** Where the first moved ticks of a series begin. */
export function findFirstMoved(connection: Connection, key: number | null): Micros | undefined {
  return findMovedTicks(connection, key, { from: Number.MIN_SAFE_INTEGER, to: Number.MAX_SAFE_INTEGER })[0]
    ?.from;
}

/** One line that says where they are; undefined if none were moved. */
export function describeMoved(name: string, moved: readonly MovedTicks[]): string | undefined {
  const [first, last] = [moved[0], moved.at(-1)];
  if (!first || !last) return undefined;
  const places = [...new Set(moved.map(({ place }) => place))].join(" and ");
  return `ticks of ${name} between ${formatTimestamp(first.from)} and ${formatTimestamp(last.to)} were moved to ${places}`;
}

/** Throws if ticks that must be complete are not here. */
export function assertNothingMoved(name: string, moved: readonly MovedTicks[]): void {
  const where = describeMoved(name, moved);
  if (where === undefined) return;
  throw new Failure(where, {
    code: "not_whole",
    remedy: "read them there, or ask for bars of whole hours, which stay here",
  });
}

/** What a reader is told about a series that has no rows of the source. */
export function describeMissingRows(series: SeriesInfo, source: BarSource): string | undefined {
  const isTicks = source === "ticks";
  if (isTicks ? series.has_ticks : series.has_ohlcv) return undefined;
  const other = isTicks && series.has_ohlcv ? ", only daily bars" : "";
  return `the warehouse has no ${isTicks ? "ticks" : "daily bars"} of ${series.name}${other}`;
}
