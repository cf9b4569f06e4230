// Converts the daemon's bars into the slots of the chart. Pure functions without access to the page.

import type { ChartBar, ChartBarsResult, ChartRange } from "../../../model/answers/chart-bars.ts";
import { type BarWidth, barWidths, MICROS_PER_SECOND } from "../../../model/time.ts";

/** The length of a bar in seconds. */
export const secondsOf = (width: BarWidth): number => barWidths[width] / MICROS_PER_SECOND;

/** The prices of a bar. */
interface Candle {
  readonly open: number;
  readonly high: number;
  readonly low: number;
  readonly close: number;
}

/** What is known about a bar. */
interface BarFigures {
  readonly ticks: number;
  readonly expected: number;
  readonly coverage: number;
  readonly isComplete: boolean;
  readonly volume: number | null;
}

/** The place of one possible bar. */
export interface Slot extends Partial<BarFigures> {
  readonly time: number;
  readonly candle?: Candle | undefined;
  /** The worst span that overlaps the slot; undefined if the bar is proven complete. */
  readonly span: ChartRange | undefined;
}

/** The daemon sends a bar as an array. */
function parseBar(bar: ChartBar): Omit<Slot, "time" | "span"> {
  const [, open, high, low, close, ticks, expected, coverage, isComplete, volume] = bar;
  const hasPrices = open !== null && high !== null && low !== null && close !== null;
  const candle = hasPrices ? { open, high, low, close } : undefined;
  return { candle, ticks, expected, coverage, isComplete: isComplete === 1, volume };
}

/** In spans of these states an incomplete bar is normal. */
const NORMAL_STATES: readonly string[] = ["settling"];

/** What the slots are made of. */
export type LoadedBars = Pick<ChartBarsResult, "from" | "to" | "width" | "bars" | "spans">;

/**
 * Returns one slot per possible bar, in order, so that a missing bar leaves a gap of its own width. A range at the start that
 * is not selected is left out, because it would be blank.
 */
export function buildSlots({ from, to, width, bars, spans }: LoadedBars): Slot[] {
  const length = secondsOf(width);
  const [first] = spans;
  const selectedFrom = first?.state === "none" && first.from <= from ? first.to : from;
  const start = Math.min(
    Math.floor(selectedFrom / length) * length,
    bars[0]?.[0] ?? Number.POSITIVE_INFINITY,
  );
  const byTime = new Map(bars.map((bar) => [bar[0], parseBar(bar)]));
  const result: Slot[] = [];
  for (let time = Math.max(from, start); time < to; time += length) {
    const span = worstSpan(spans, time, time + length);
    result.push({ time, ...byTime.get(time), span });
  }
  return result;
}

const SEVERITY = ["lost", "open", "empty", "none", "settling"];

function worstSpan(spans: readonly ChartRange[], from: number, to: number): ChartRange | undefined {
  let worst: ChartRange | undefined;
  // Binary search in the ascending list for the first span that ends after the bar's start.
  let low = 0;
  for (let high = spans.length; low < high; ) {
    const middle = (low + high) >> 1;
    if ((spans[middle]?.to ?? 0) <= from) low = middle + 1;
    else high = middle;
  }
  for (let i = low, span = spans[i]; span && span.from < to; span = spans[++i]) {
    if (!worst || SEVERITY.indexOf(span.state) < SEVERITY.indexOf(worst.state)) worst = span;
  }
  return worst;
}

/** Replaces the end of the loaded range by a newer response. */
export function merge<T extends LoadedBars>(loaded: T, tail: Omit<LoadedBars, "width">): T {
  const earlier = loaded.spans.filter((span) => span.from < tail.from);
  return {
    ...loaded,
    to: Math.max(loaded.to, tail.to),
    bars: [...loaded.bars.filter(([time]) => time < tail.from), ...tail.bars],
    spans: joinSpans([
      ...earlier.map((span) => (span.to <= tail.from ? span : { ...span, to: tail.from })),
      ...tail.spans,
    ]),
  };
}

/** Joins spans that `merge` has cut in two. */
function joinSpans(spans: readonly ChartRange[]): ChartRange[] {
  const result: ChartRange[] = [];
  for (const span of spans) {
    const last = result.at(-1);
    if (last && last.to === span.from && last.state === span.state && last.reason === span.reason)
      result[result.length - 1] = { ...last, to: span.to };
    else result.push(span);
  }
  return result;
}

/** `complete`; `settling`: only awaits confirmation; `partial`: a part is missing; `missing`: all of it is missing. */
export function stateOf(slot: Slot): "complete" | "settling" | "partial" | "missing" {
  if (!slot.candle) return "missing";
  if (slot.isComplete) return "complete";
  return slot.span && NORMAL_STATES.includes(slot.span.state) ? "settling" : "partial";
}

/** The number of fraction digits to show: about five significant digits. */
export function precisionOf(bars: readonly ChartBar[]): number {
  const highest = bars.reduce((most, [, , high]) => Math.max(most, high ?? 0), 0);
  if (highest === 0) return 2;
  return Math.min(12, Math.max(2, 5 - Math.ceil(Math.log10(highest))));
}

/** The spans to list: not the settling head, and not what is not selected. */
export function listGaps(spans: readonly ChartRange[]): ChartRange[] {
  return spans.filter(({ state }) => state === "open" || state === "lost" || state === "empty");
}
