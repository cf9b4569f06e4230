// Converts the daemon's bars into the slots of the chart. Pure functions without access to the page.

import type { ChartBarsResult, ChartRange, SecondsRange } from "../../../model/answers/chart-bars.ts";
import { type BarWidth, barWidths, MICROS_PER_SECOND } from "../../../model/time.ts";

export const DAY_SECONDS = 86_400;

export const secondsOf = (width: BarWidth): number => barWidths[width] / MICROS_PER_SECOND;

/** The place of one possible bar, and what is known about the bar. */
export interface Slot extends Partial<ReturnType<typeof parseBar>> {
  readonly time: number;
  /** In seconds: that of a bar, or a day where daily bars take the place of bars from ticks. */
  readonly length: number;
  /** It has a daily bar of the service, or could have one. */
  readonly isDaily: boolean;
  /** The worst span that overlaps the slot; undefined if the bar is proven complete. */
  readonly span: ChartRange | undefined;
}

/** The daemon sends a bar as an array. Without `ticks` it is a daily bar of the service. */
function parseBar(bar: ChartBarsResult["bars"][number]) {
  const [, open, high, low, close, ticks, expected, coverage, isComplete, volume] = bar;
  const hasPrices = open !== null && high !== null && low !== null && close !== null;
  const candle = hasPrices ? { open, high, low, close } : undefined;
  return { candle, ticks, expected, coverage, isComplete: isComplete === 1, volume };
}

export type LoadedBars = Pick<ChartBarsResult, "from" | "to" | "width" | "bars" | "days" | "spans">;

/**
 * Returns one slot per possible bar, in order, so that a missing bar leaves a gap of its own width. A range at the start that
 * is not selected, or before all history, is left out, because it would be blank.
 */
export function buildSlots({ from, to, width, bars, days, spans }: LoadedBars): Slot[] {
  const isDay = days.length > 0 ? new Set(days.flatMap(listDays)) : undefined;
  const [first] = spans;
  const isBlank = first?.state === "none" || first?.reason === "nothing older";
  const selectedFrom = first && isBlank && first.from <= from ? first.to : from;
  const grid = isDay?.has(dayStart(selectedFrom)) ? DAY_SECONDS : secondsOf(width);
  const start = Math.min(Math.floor(selectedFrom / grid) * grid, bars[0]?.[0] ?? Number.POSITIVE_INFINITY);
  const byTime = new Map(bars.map((bar) => [bar[0], parseBar(bar)]));
  const result: Slot[] = [];
  let nextSpan = 0;
  for (let time = Math.max(from, start); time < to; ) {
    const isDaily = isDay?.has(time) ?? false;
    const length = isDaily ? DAY_SECONDS : secondsOf(width);
    while (nextSpan < spans.length && (spans[nextSpan]?.to ?? 0) <= time) nextSpan++;
    const span = worstSpan(spans, nextSpan, time + length);
    const bar = byTime.get(time);
    // The ticks of a day may begin late: what was not asked for before them would be blank.
    const isUnasked = !bar && span?.state === "none" && span.from <= time && span.to >= time + length;
    const isLateStart = isUnasked && !isDaily && result.at(-1)?.isDaily;
    if (!isLateStart) result.push({ time, length, isDaily, ...bar, span });
    time += length;
  }
  return result;
}

export const dayStart = (seconds: number) => Math.floor(seconds / DAY_SECONDS) * DAY_SECONDS;

const listDays = ({ from, to }: SecondsRange): number[] =>
  Array.from({ length: (to - from) / DAY_SECONDS }, (_, i) => from + i * DAY_SECONDS);

/** Where a time is among the slots: 2.5 is the middle of the third one. Before the first one it is negative. */
export function positionOf(slots: readonly Slot[], time: number): number {
  let low = 0;
  for (let high = slots.length - 1; low < high; ) {
    const middle = (low + high + 1) >> 1;
    if ((slots[middle]?.time ?? 0) <= time) low = middle;
    else high = middle - 1;
  }
  const slot = slots[low];
  return slot ? low + Math.min(1, (time - slot.time) / slot.length) : 0;
}

/** The time at a place among the slots, at most that of their ends. */
export function timeAt(slots: readonly Slot[], position: number): number {
  const index = Math.min(slots.length - 1, Math.max(0, Math.floor(position)));
  const slot = slots[index];
  if (!slot) return 0;
  const fraction = Math.min(1, Math.max(0, position - index));
  return slot.time + fraction * slot.length;
}

/** The parts of the slots' range that are in no span: proven to have all their rows. */
export function listCovered(slots: readonly Slot[], spans: readonly ChartRange[]): SecondsRange[] {
  const last = slots.at(-1);
  if (!last) return [];
  // A bar in progress reaches into the future, of which nothing is known.
  const end = last.isComplete ? last.time + last.length : Math.max(spans.at(-1)?.to ?? 0, last.time);
  const covered: SecondsRange[] = [];
  let from = slots[0]?.time ?? 0;
  for (const span of spans) {
    covered.push({ from, to: Math.min(span.from, end) });
    from = Math.max(from, span.to);
  }
  return [...covered, { from, to: end }].filter((range) => range.to > range.from);
}

const SEVERITY = ["lost", "open", "empty", "none", "unconfirmed"];

/** The worst of the ascending spans that begin before `to`, from number `first` on. */
function worstSpan(spans: readonly ChartRange[], first: number, to: number): ChartRange | undefined {
  let worst: ChartRange | undefined;
  for (let i = first, span = spans[i]; span && span.from < to; span = spans[++i]) {
    if (!worst || SEVERITY.indexOf(span.state) < SEVERITY.indexOf(worst.state)) worst = span;
  }
  return worst;
}

/** Replaces a part of the loaded range by a newer response, or adds an earlier or later part that touches it. */
export function merge<T extends LoadedBars>(loaded: T, part: Omit<LoadedBars, "width">): T {
  const isOutside = (time: number) => time < part.from || time >= part.to;
  const cut = <R extends SecondsRange>(ranges: readonly R[], added: readonly R[]): R[] => {
    const kept = ranges.flatMap((range) => [
      { ...range, to: Math.min(range.to, part.from) },
      { ...range, from: Math.max(range.from, part.to) },
    ]);
    return [...kept, ...added].filter(({ from, to }) => from < to).sort((a, b) => a.from - b.from);
  };
  return {
    ...loaded,
    from: Math.min(loaded.from, part.from),
    to: Math.max(loaded.to, part.to),
    bars: [...loaded.bars.filter(([time]) => isOutside(time)), ...part.bars].sort(([a], [b]) => a - b),
    days: cut(loaded.days, part.days),
    spans: joinSpans(cut(loaded.spans, part.spans)),
  };
}

/** Joins spans that `merge` has cut in two. */
function joinSpans(spans: readonly ChartRange[]): ChartRange[] {
  const result: ChartRange[] = [];
  for (const span of spans) {
    const last = result.at(-1);
    const isSame = last?.state === span.state && last.reason === span.reason && last.stream === span.stream;
    if (last && isSame && last.to === span.from) result[result.length - 1] = { ...last, to: span.to };
    else result.push(span);
  }
  return result;
}

/** `complete`; `unconfirmed`: only awaits confirmation; `partial`: a part is missing; `missing`: all of it is missing. */
export function stateOf(slot: Slot): "complete" | "unconfirmed" | "partial" | "missing" {
  if (!slot.candle) return "missing";
  if (slot.isComplete) return "complete";
  return slot.span?.state === "unconfirmed" ? "unconfirmed" : "partial";
}

/** The number of fraction digits to show: about five significant digits. */
export function precisionFor(values: readonly number[]): number {
  const highest = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (highest === 0) return 2;
  return Math.min(12, Math.max(2, 5 - Math.ceil(Math.log10(highest))));
}

/** The spans to list: not what only awaits confirmation, and not what is not selected. */
export const listGaps = <T extends ChartRange>(spans: readonly T[]): T[] =>
  spans.filter(({ state }) => state === "open" || state === "lost" || state === "empty");

/** The closes of bars, and when they were; where there are no ticks, those of whole days. */
export function closesOf({ bars, width }: Pick<LoadedBars, "bars" | "width">) {
  return bars.flatMap(([start, , , , close, ticks]) => {
    const end = start + (ticks === null ? DAY_SECONDS : secondsOf(width));
    return close !== null && close > 0 ? [{ start, end, close }] : [];
  });
}

/**
 * What another series was worth at the end of each candle, up to its last close. Only there: the chart takes the first value in
 * view of each series as its base, which must be of one moment.
 */
export function toPoints(slots: readonly Slot[], closes: ReturnType<typeof closesOf>) {
  let next = 0;
  return slots.flatMap(({ time, length, candle }) => {
    while ((closes[next]?.end ?? Number.POSITIVE_INFINITY) <= time + length) next++;
    const last = closes[next - 1];
    if (!candle || !last || (next === closes.length && last.end <= time)) return [];
    return [{ time, value: last.close, close: candle.close }];
  });
}

/** How series are compared: all from 100 on, or by one figure of the candles and the first other one. */
export const comparisons = { course: "Course", ratio: "Ratio", spread: "Spread" } as const;
export type Comparison = keyof typeof comparisons;

/** The figure at the end of each candle. */
export const comparePoints = (points: ReturnType<typeof toPoints>, how: Comparison) =>
  points.map(({ time, value, close }) => ({ time, value: how === "ratio" ? close / value : close - value }));
