/** One line of the verdict: what was measured, and what it must be. */
export interface Figure {
  readonly name: string;
  readonly measured: number;
  /** At least, or at most, this much; neither: told, not judged. */
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly digits?: number;
  readonly unit?: string;
  /** Beside the figure, for people. */
  readonly note?: string;
}

export function isMissed({ measured, atLeast, atMost }: Figure): boolean {
  return Number.isNaN(measured) || measured < (atLeast ?? measured) || measured > (atMost ?? measured);
}

/** Figure, measured, limit, verdict, in columns. */
export function figureTable(figures: readonly Figure[]): string[] {
  const text = ({ digits = 2, unit }: Figure, value: number) =>
    `${value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })}${unit ? ` ${unit}` : ""}`;
  const rows = figures.map((figure) => {
    const { name, measured, atLeast, atMost, note } = figure;
    const isJudged = atLeast !== undefined || atMost !== undefined;
    const limit =
      atLeast !== undefined
        ? `≥ ${text(figure, atLeast)}`
        : atMost !== undefined
          ? `≤ ${text(figure, atMost)}`
          : "";
    const verdict = isJudged ? (isMissed(figure) ? "MISSED" : "ok") : "";
    return [note ? `${name} (${note})` : name, text(figure, measured), limit, verdict];
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
