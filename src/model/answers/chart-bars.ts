import type { GapState } from "../status/gap-state.ts";
import type { RowStream } from "../streams.ts";
import type { BarWidth } from "../time.ts";

/** The most bars of one answer. */
export const MAX_BARS = 5_000;

/** One bar as a tuple, to keep the JSON small: a response has thousands. `start` is in seconds since 1970. */
export type ChartBar = readonly [
  start: number,
  open: number | null,
  high: number | null,
  low: number | null,
  close: number | null,
  /** Null: the service's daily bar, in place of bars from ticks. */
  ticks: number | null,
  expected: number,
  coverage: number,
  isComplete: 0 | 1,
  /** Of 24 hours, at the end of the bar; of the day in a daily bar. */
  volume: number | null,
];

/** Seconds since 1970, half-open. */
export interface SecondsRange {
  readonly from: number;
  readonly to: number;
}

/** A range that is not proven to have its rows, and why. */
export interface ChartRange extends SecondsRange {
  readonly stream: RowStream;
  /** Those of the view `gaps`; `empty`: the service has no rows; `none`: the settings never selected it. */
  readonly state: GapState | "empty" | "none";
  readonly reason: string;
}

export interface ChartBarsResult extends SecondsRange {
  /** Its key in the news of commits. */
  readonly series: number;
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
  readonly width: BarWidth;
  /** Reading took too long: older bars were left out, and `from` is later than requested. */
  readonly is_cut: boolean;
  /** Where the stored history begins, and where its bars from ticks do; null: there are none. */
  readonly first: number | null;
  readonly ticks_from: number | null;
  /** The newest price of the series. */
  readonly last_price: number | null;
  /** The figure that the bars are of, and those that a ticker has, its price first. */
  readonly of: string;
  readonly figures: readonly string[];
  readonly bars: readonly ChartBar[];
  /** Days that have a daily bar or nothing, in place of bars from ticks. */
  readonly days: readonly SecondsRange[];
  readonly spans: readonly ChartRange[];
}
