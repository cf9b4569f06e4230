import {
  type BarLength,
  barLengths,
  MICROS_PER_DAY,
  MICROS_PER_SECOND,
  type Micros,
} from "../../model/time.ts";
import { intersect, normalise, subtract, type TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";

/** Bars of one index, as somebody asks to see them; the range is of whole bars. */
export interface BarsWanted extends TimeRange {
  readonly indexType: string;
  readonly indexId: string;
  readonly width: BarLength;
}

/** One bar, as short as it can be sent: thousands of them go to a phone. Its start is in seconds since 1970. */
export type DrawnBar = readonly [
  start: number,
  open: number | null,
  high: number | null,
  low: number | null,
  close: number | null,
  ticks: number,
  expected: number,
  coverage: number,
  isComplete: 0 | 1,
];

/** A stretch without proof of ticks, and why. Seconds since 1970. */
export interface DrawnSpan {
  readonly from: number;
  readonly to: number;
  /** `settling`: only awaits its confirmation; `empty`: the service has nothing; `none`: nobody asked for it. */
  readonly state: "open" | "lost" | "settling" | "empty" | "none";
  readonly reason: string;
}

export interface DrawnBars {
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
  readonly width: BarLength;
  /** Seconds since 1970. Later than asked for where reading took too long: the newest bars are read first. */
  readonly from: number;
  readonly to: number;
  readonly is_cut: boolean;
  readonly bars: readonly DrawnBar[];
  readonly spans: readonly DrawnSpan[];
}

/** Read at once; between two of them it is asked whether there is time for more. */
const SPAN_AT_ONCE = 50 * MICROS_PER_DAY;
const MOST_SPANS = 2_000;
/** Between two ticks there is always a moment without one. */
const LEAST_EMPTY = 60 * MICROS_PER_SECOND;
const CLOCKS_APART = 5 * MICROS_PER_SECOND;

/** Undefined where no index has that id. */
export function readBars(
  connection: Connection,
  wanted: BarsWanted,
  now: Micros,
  hasTime: () => boolean,
): DrawnBars | undefined {
  const { indexType, indexId, width, to } = wanted;
  return connection.database.transaction(() => {
    const named = connection
      .statement("SELECT series, name FROM series WHERE index_type = ? AND index_id = ?")
      .get([indexType, indexId]) as { series: number; name: string } | undefined;
    if (!named) return undefined;
    const read = connection
      .statement(
        `SELECT ts, open, high, low, close, n_ticks, expected_ticks, coverage, is_complete FROM bars_${width}
          WHERE index_type = ? AND index_id = ? AND ts >= ? AND ts < ? ORDER BY ts`,
      )
      .raw();
    const length = barLengths[width];
    const atOnce = Math.max(length, Math.floor(SPAN_AT_ONCE / length) * length);
    const parts: DrawnBar[][] = [];
    let from = to;
    while (from > wanted.from && (from === to || hasTime())) {
      const until = from;
      from = Math.max(wanted.from, until - atOnce);
      parts.unshift((read.all([indexType, indexId, from, until]) as [Micros, ...unknown[]][]).map(brief));
    }
    return {
      index_type: indexType,
      index_id: indexId,
      name: named.name,
      width,
      from: from / MICROS_PER_SECOND,
      to: to / MICROS_PER_SECOND,
      is_cut: from > wanted.from,
      bars: parts.flat(),
      spans: readSpans(connection, named.series, { ...wanted, from }, now),
    };
  })();
}

function brief([ts, ...rest]: [Micros, ...unknown[]]): DrawnBar {
  return [ts / MICROS_PER_SECOND, ...rest] as unknown as DrawnBar;
}

interface SpanRow extends TimeRange {
  readonly state: DrawnSpan["state"];
  readonly reason: string;
}

const gapsSql = `SELECT from_ts AS "from", to_ts AS "to", CASE reason WHEN 'settling' THEN 'settling' ELSE state END AS state, reason
  FROM gaps WHERE stream = 'index_ticks' AND index_type = ? AND index_id = ? AND from_ts < ? AND to_ts > ?
  ORDER BY from_ts DESC LIMIT ${MOST_SPANS}`;

const settledSql = `SELECT from_ts AS "from", to_ts AS "to", proof, reason FROM settled_ranges
  WHERE stream = 'index_ticks' AND series = ? AND proof <> 'lost' AND from_ts < ? AND to_ts > ? ORDER BY from_ts`;

/** Whatever in the window is not proven to be here, down to what nobody asked for: no stretch is blank without a word. */
function readSpans(connection: Connection, series: number, wanted: BarsWanted, now: Micros): DrawnSpan[] {
  const window = normalise([wanted]);
  const gaps = connection
    .statement(gapsSql)
    .all([wanted.indexType, wanted.indexId, wanted.to, wanted.from]) as SpanRow[];
  const settled = connection.statement(settledSql).all([series, wanted.to, wanted.from]) as (TimeRange & {
    proof: string;
    reason: string | null;
  })[];
  const empty = settled
    .filter(({ proof, from, to }) => proof === "empty" && to - from >= LEAST_EMPTY)
    .map(({ reason, ...range }): SpanRow => ({ ...range, state: "empty", reason: reason ?? "no ticks" }));
  // A list of gaps that was cut off knows nothing of what is older; and nobody knows anything of what is to come. The
  // views have a clock of their own, which may be a little behind.
  const oldest = gaps.length < MOST_SPANS ? wanted.from : (gaps.at(-1)?.from ?? 0);
  const known = intersect(window, normalise([{ from: oldest, to: now - CLOCKS_APART }]));
  const unasked = subtract(known, normalise([...gaps, ...settled])).map(
    (range): SpanRow => ({ ...range, state: "none", reason: "not asked for" }),
  );
  return [...gaps, ...empty, ...unasked]
    .flatMap(({ from, to, state, reason }) =>
      intersect(normalise([{ from, to }]), window).map(
        (part): DrawnSpan => ({
          from: part.from / MICROS_PER_SECOND,
          to: part.to / MICROS_PER_SECOND,
          state,
          reason,
        }),
      ),
    )
    .sort((a, b) => a.from - b.from);
}
