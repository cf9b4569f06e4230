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
  ticks: number,
  expected: number,
  coverage: number,
  isComplete: 0 | 1,
  /** Of 24 hours, at the end of the bar. */
  volume: number | null,
];

/** A range that is not proven to have ticks, and why. Seconds since 1970. */
export interface ChartRange {
  readonly from: number;
  readonly to: number;
  /** `settling`: not confirmed yet; `empty`: the service has no ticks; `none`: the settings never selected it. */
  readonly state: "open" | "lost" | "settling" | "empty" | "none";
  readonly reason: string;
}

export interface ChartBarsResult {
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
  readonly width: BarWidth;
  /** Seconds since 1970. Later than requested if reading took too long: the newest bars are read first. */
  readonly from: number;
  readonly to: number;
  /** Reading took too long: older bars were left out. */
  readonly is_cut: boolean;
  readonly bars: readonly ChartBar[];
  readonly spans: readonly ChartRange[];
}
