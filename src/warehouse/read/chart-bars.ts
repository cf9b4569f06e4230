import type { ChartBar, ChartBarsResult, ChartRange } from "../../model/answers/chart-bars.ts";
import {
  type BarWidth,
  barWidths,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  type Micros,
} from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { series } from "../schema/lookups.ts";
import type { Connection } from "../sqlite/connection.ts";
import { and, eq } from "../sqlite/drizzle.ts";

/** Which bars of which index to read. The range consists of whole bars. */
export interface ChartBarsOptions extends TimeRange {
  readonly indexType: string;
  readonly indexId: string;
  readonly width: BarWidth;
}

/** Bars are read in chunks of this length; `hasTime` is checked between two chunks. */
const CHUNK_MICROS = 50 * MICROS_PER_DAY;
const MAX_GAPS = 2_000;
/** Shorter empty ranges are not shown: they lie between any two ticks. */
const MIN_EMPTY_MICROS = 60 * MICROS_PER_SECOND;
/** How far the clock of the views may be behind `now`. */
const CLOCK_TOLERANCE_MICROS = 5 * MICROS_PER_SECOND;

/** Undefined if no index has that id. */
export function readChartBars(
  connection: Connection,
  options: ChartBarsOptions,
  now: Micros,
  hasTime: () => boolean,
): ChartBarsResult | undefined {
  const { indexType, indexId, width, to } = options;
  return connection.database.transaction(() => {
    const isIndex = and(eq(series.indexType, indexType), eq(series.indexId, indexId));
    const found = connection.orm.select().from(series).where(isIndex).get();
    if (!found) return undefined;
    const read = connection
      .statement<ChartBar>(
        `SELECT ts / ${MICROS_PER_SECOND}, open, high, low, close, n_ticks, expected_ticks, coverage, is_complete, volume_24h FROM bars_${width}
          WHERE index_type = ? AND index_id = ? AND ts >= ? AND ts < ? ORDER BY ts`,
      )
      .raw();
    const length = barWidths[width];
    const chunkLength = Math.max(length, Math.floor(CHUNK_MICROS / length) * length);
    const chunks: ChartBar[][] = [];
    let from = to;
    while (from > options.from && (from === to || hasTime())) {
      const until = from;
      from = Math.max(options.from, until - chunkLength);
      chunks.unshift(read.all([indexType, indexId, from, until]));
    }
    return {
      index_type: indexType,
      index_id: indexId,
      name: found.name,
      width,
      from: from / MICROS_PER_SECOND,
      to: to / MICROS_PER_SECOND,
      is_cut: from > options.from,
      bars: chunks.flat(),
      spans: readUnprovenRanges(connection, found.series, { ...options, from }, now),
    };
  })();
}

interface UnprovenRow extends TimeRange {
  readonly state: ChartRange["state"];
  readonly reason: string;
}

const gapsSql = `SELECT from_ts AS "from", to_ts AS "to", CASE reason WHEN 'settling' THEN 'settling' ELSE state END AS state, reason
  FROM gaps WHERE stream = 'index_ticks' AND index_type = ? AND index_id = ? AND from_ts < ? AND to_ts > ?
  ORDER BY from_ts DESC LIMIT ${MAX_GAPS}`;

const settledSql = `SELECT from_ts AS "from", to_ts AS "to", proof, reason FROM settled_ranges
  WHERE stream = 'index_ticks' AND series = ? AND proof <> 'lost' AND from_ts < ? AND to_ts > ? ORDER BY from_ts`;

/** Every part of the range without proof of ticks, with its reason, including what the settings never selected. */
function readUnprovenRanges(
  connection: Connection,
  series: number,
  options: ChartBarsOptions,
  now: Micros,
): ChartRange[] {
  const requested = normalise([options]);
  const gaps = connection
    .statement<UnprovenRow>(gapsSql)
    .all([options.indexType, options.indexId, options.to, options.from]);
  const settled = connection.statement<SettledRange>(settledSql).all([series, options.to, options.from]);
  const empty = settled
    .filter(({ proof, from, to }) => proof === "empty" && to - from >= MIN_EMPTY_MICROS)
    .map(({ reason, ...range }): UnprovenRow => ({ ...range, state: "empty", reason: reason ?? "no ticks" }));
  // Nothing is known before the oldest gap of a truncated list, nor after the present of the views, whose clock may be
  // slightly behind ours.
  const oldest = gaps.length < MAX_GAPS ? options.from : (gaps.at(-1)?.from ?? 0);
  const known = intersect(requested, normalise([{ from: oldest, to: now - CLOCK_TOLERANCE_MICROS }]));
  const neverSelected = subtract(known, normalise([...gaps, ...settled])).map(
    (range): UnprovenRow => ({ ...range, state: "none", reason: "not asked for" }),
  );
  return [...gaps, ...empty, ...neverSelected]
    .flatMap(({ from, to, state, reason }) =>
      intersect(normalise([{ from, to }]), requested).map(
        (part): ChartRange => ({
          from: part.from / MICROS_PER_SECOND,
          to: part.to / MICROS_PER_SECOND,
          state,
          reason,
        }),
      ),
    )
    .sort((a, b) => a.from - b.from);
}
