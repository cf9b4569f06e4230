/** Every report fits into 80 columns, whatever the terminal: reports are also read in mails and logs. */
const REPORT_WIDTH = 80;

export type Alignment = "left" | "right";

/** Aligns cells in columns of at least `minWidths`, two spaces apart, without trailing spaces. */
export function formatTable(
  rows: readonly (readonly string[])[],
  alignments: readonly Alignment[],
  minWidths: readonly number[] = [],
): string {
  const widths = alignments.map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), minWidths[column] ?? 0),
  );
  return rows
    .map((row) =>
      alignments
        .map((alignment, column) => {
          const cell = row[column] ?? "";
          const width = widths[column] ?? 0;
          return alignment === "right" ? cell.padStart(width) : cell.padEnd(width);
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The last cell of each row is a description, wrapped in the rest of the width. */
export function formatDescriptionTable(rows: readonly (readonly string[])[]): string {
  const names = rows.map((row) => row.slice(0, -1));
  const leads = formatTable(
    names.map((row) => [...row, "|"]),
    [...(names[0] ?? []).map(() => "left" as const), "left"],
  ).split("\n");
  return rows.map((row, at) => wrapText(row.at(-1) ?? "", leads[at]?.slice(0, -1) ?? "")).join("\n");
}

/** `wrapText` breaks no line here, and prints an ordinary space. */
export const NO_BREAK_SPACE = "\u00a0";

/** Wraps at `REPORT_WIDTH`; `lead` starts the first line, spaces of its length start the others. */
export function wrapText(text: string, lead = ""): string {
  const width = REPORT_WIDTH - lead.length;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines
    .map((each, n) => `${n === 0 ? lead : " ".repeat(lead.length)}${each}`.trimEnd())
    .join("\n")
    .replaceAll(NO_BREAK_SPACE, " ");
}

/** `12,345`. */
export function formatNumber(value: number): string {
  return value.toLocaleString("en-US");
}

/** `900 MiB`, `1.5 GiB`: one decimal below ten. Rounded down, so that free space is never overstated. */
export function formatBytes(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [value, unit] = [bytes, 0];
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${value < 10 && unit > 0 ? Math.floor(value * 10) / 10 : Math.floor(value)} ${units[unit]}`;
}

/** A count in four characters: `9999`, `36k`, `1.2M`, `120M`, `1.2G`. */
export function formatShortCount(count: number): string {
  if (count < 10_000) return String(count);
  if (count < 1_000_000) return `${Math.floor(count / 1000)}k`;
  const [size, unit] = count < 1_000_000_000 ? ([1e6, "M"] as const) : ([1e9, "G"] as const);
  const tenths = Math.floor((count * 10) / size);
  return `${tenths < 100 ? tenths / 10 : Math.floor(tenths / 10)}${unit}`;
}

/** `1 range`, `2 ranges`, `1,234 ranges`. */
export function pluralize(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`;
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/** `45s`, `2h 5m`, `199d`: at most two units, truncated and not rounded, so that a day never reads `24h`. */
export function formatDuration(seconds: number): string {
  const total = Math.max(0, Math.floor(seconds));
  const at = units.findIndex(([, size]) => total >= size);
  const [unit, size] = units[at] ?? ["s", 1];
  const rest = total % size;
  const [nextUnit, nextSize] = units[at + 1] ?? ["s", 1];
  const parts = [`${Math.floor(total / size)}${unit}`];
  if (at >= 0 && rest >= nextSize && total < 100 * size)
    parts.push(`${Math.floor(rest / nextSize)}${nextUnit}`);
  return parts.join(" ");
}

/** `12 ms`, or at least ten seconds as a duration. */
export function formatElapsed(ms: number): string {
  return ms < 10_000 ? `${Math.round(ms)} ms` : formatDuration(ms / 1000);
}

/** The largest unit alone: `45s`, `2h`, `199d`. */
export function formatAge(seconds: number): string {
  return formatDuration(seconds).split(" ")[0] ?? "";
}
