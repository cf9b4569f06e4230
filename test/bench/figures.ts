/** One measured value and its limit. */
export interface Figure {
  readonly name: string;
  readonly measured: number;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly digits?: number;
  readonly unit?: string;
}

export function isMissed({ measured, atLeast = measured, atMost = measured }: Figure): boolean {
  return Number.isNaN(measured) || measured < atLeast || measured > atMost;
}

/** The figure, its limit, and whether it is missed. */
export function formatFigure(figure: Figure): string {
  const { name, measured, atLeast, atMost, digits = 2, unit = "" } = figure;
  const text = (value = 0) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const limit = atLeast === undefined ? `≤ ${text(atMost)}` : `≥ ${text(atLeast)}`;
  return `${name}: ${text(measured)} ${unit} (${limit}) ${isMissed(figure) ? "MISSED" : "ok"}`;
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
