import type { ChartRange } from "../../model/answers/chart-bars.ts";
import { MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { readKeyGaps } from "../coverage/series-gaps.ts";
import type { Connection } from "../sqlite/connection.ts";

/** A range of a series that is not proven to have its rows. */
export type UnprovenRange = TimeRange & Omit<ChartRange, "from" | "to">;

const MAX_GAPS = 2_000;
/** Shorter empty ranges are not shown: they lie between any two ticks. */
const MIN_EMPTY_MICROS = 60 * MICROS_PER_SECOND;

const settledSql = `SELECT from_ts AS "from", to_ts AS "to", proof, reason FROM settled_ranges
  WHERE stream = ? AND series = ? AND proof <> 'lost' AND from_ts < ? AND to_ts > ? ORDER BY from_ts`;

/**
 * Every part of the range without proof of rows, with its reason, including what the settings never selected. `present`: by the
 * clock of the views, read before. The daemon's clock may be ahead of it while the service is down: that was not asked for yet.
 */
export function readUnprovenRanges(
  connection: Connection,
  stream: ChartRange["stream"],
  series: number,
  { from: start, to: end }: TimeRange,
  present: Micros,
): UnprovenRange[] {
  const requested = normalise([{ from: start, to: end }]);
  const gaps = readKeyGaps(connection, { stream, series }, present)
    .filter(({ from, to }) => from < end && to > start)
    .reverse()
    .slice(0, MAX_GAPS)
    .map(({ from, to, state, reason }): UnprovenRange => ({ from, to, stream, state, reason }));
  const settled = connection.rows<SettledRange>(settledSql, [stream, series, end, start]);
  const empty = settled
    .filter(({ proof, from, to }) => proof === "empty" && to - from >= MIN_EMPTY_MICROS)
    .map(
      ({ from, to, reason }): UnprovenRange => ({
        ...{ from, to, stream, state: "empty" },
        reason: reason ?? "no rows",
      }),
    );
  // Nothing is known before the oldest gap of a truncated list, nor after the present of the views.
  const oldest = gaps.length < MAX_GAPS ? start : (gaps.at(-1)?.from ?? 0);
  const known = intersect(requested, normalise([{ from: oldest, to: present }]));
  const neverSelected = subtract(known, normalise([...gaps, ...settled])).map(
    (range): UnprovenRange => ({ ...range, stream, state: "none", reason: "not asked for" }),
  );
  return [...gaps, ...empty, ...neverSelected]
    .flatMap((range) => intersect(normalise([range]), requested).map((part) => ({ ...range, ...part })))
    .sort((a, b) => a.from - b.from);
}
