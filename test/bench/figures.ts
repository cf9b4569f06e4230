/** One measured value and its limit. */
export interface Figure {
  readonly name: string;
  readonly measured: number;
  /** The limit; without one the value is only printed. */
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly digits?: number;
  readonly unit?: string;
  /** Printed after the name. */
  readonly note?: string;
}

export function isMissed({ measured, atLeast, atMost }: Figure): boolean {
  return Number.isNaN(measured) || measured < (atLeast ?? measured) || measured > (atMost ?? measured);
}

/** A table with the columns figure, measured, limit and result. */
export function formatFigures(figures: readonly Figure[]): string[] {
  const text = ({ digits = 2, unit }: Figure, value: number) =>
    `${value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}${unit ? ` ${unit}` : ""}`;
  const rows = figures.map((figure) => {
    const { name, measured, atLeast, atMost, note } = figure;
    const hasLimit = atLeast !== undefined || atMost !== undefined;
    const limit =
      atLeast !== undefined
        ? `≥ ${text(figure, atLeast)}`
        : atMost !== undefined
          ? `≤ ${text(figure, atMost)}`
          : "";
    const result = hasLimit ? (isMissed(figure) ? "MISSED" : "ok") : "";
    return [note ? `${name} (${note})` : name, text(figure, measured), limit, result];
  });
  const table = [["figure", "measured", "limit", ""], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  return table.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  ")
      .trimEnd(),
  );
}

export function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
