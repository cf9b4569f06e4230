// The cells of a heat map in words. Pure functions without access to the page.

import { type CellRun, type CellState, cellStates } from "../../../model/answers/heatmap.ts";
import { dayAndMonth } from "../shared/time-format.ts";

export const stateLabels: Readonly<Record<CellState, string>> = {
  covered: "covered",
  unconfirmed: "awaiting confirmation",
  open: "open",
  lost: "lost",
};

/** The percentage of each state, in the order of `cellStates`. */
export type HeatmapCell = readonly number[];

export const expand = (runs: readonly CellRun[]): HeatmapCell[] =>
  runs.flatMap(([columns, ...fractions]) => Array.from({ length: columns }, () => fractions));

export function describeCell(fractions: HeatmapCell): string {
  const parts = cellStates.flatMap((state, i) => {
    const fraction = fractions[i] ?? 0;
    return fraction > 0 ? [`${fraction} % ${stateLabels[state]}`] : [];
  });
  return parts.length > 0 ? parts.join(", ") : "not selected";
}

/** Describes a whole strip in words, for screen readers. */
export function summarize(cells: readonly HeatmapCell[]): string {
  const selected = cells.filter((fractions) => fractions.some((fraction) => fraction > 0));
  const mean = cellStates.map(
    (_, i) => selected.reduce((sum, fractions) => sum + (fractions[i] ?? 0), 0) / (selected.length || 1),
  );
  return describeCell(mean.map((fraction) => (fraction > 0 && fraction < 1 ? 1 : Math.round(fraction))));
}

/** The labels of days, months or years as [fraction of the width, text], at least `apart` columns from each other. */
export function axis(labels: readonly string[], apart: number): [fraction: number, text: string][] {
  const marks: [number, string][] = [];
  let last = Number.NEGATIVE_INFINITY;
  labels.forEach((label, i) => {
    const isFirst = label.length > 10 ? label.endsWith(" 00:00") : label.endsWith("-01");
    if (!isFirst || i - last < apart || i > labels.length - apart * 0.8) return;
    last = i;
    marks.push([i / labels.length, axisLabel(label)]);
  });
  return marks;
}

/** A day as its date, a month as its name (January with the year), a year as its number. */
function axisLabel(label: string): string {
  if (label.length === 7) return label.slice(0, 4);
  if (label.length > 10) return dayAndMonth(label);
  const name = dayAndMonth(label).slice(2);
  return label.slice(5, 7) === "01" ? `${name} ${label.slice(0, 4)}` : name;
}
