/** What every report fits into, however wide the terminal is: it is also read in mails and logs. */
export const REPORT_WIDTH = 80;

export type Alignment = "left" | "right";

/** Cells in columns at least as wide as `least`, two blanks between them, no blanks at the end of a line. */
export function textTable(
  rows: readonly (readonly string[])[],
  alignments: readonly Alignment[],
  least: readonly number[] = [],
): string {
  const widths = alignments.map((_, column) =>
    rows.reduce((width, row) => Math.max(width, row[column]?.length ?? 0), least[column] ?? 0),
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

/** What it is about to the left, its numbers to the right. */
export function numbersTable(rows: readonly (readonly string[])[]): string {
  return textTable(
    rows,
    (rows[0] ?? []).map((_, column) => (column === 0 ? "left" : "right")),
  );
}

/** Names in columns; what they mean takes the rest of the width, on as many lines as it needs. */
export function describedTable(rows: readonly (readonly string[])[]): string {
  const names = rows.map((row) => row.slice(0, -1));
  const leads = textTable(
    names.map((row) => [...row, "|"]),
    [...(names[0] ?? []).map(() => "left" as const), "left"],
  ).split("\n");
  return rows.map((row, at) => wrapped(row.at(-1) ?? "", leads[at]?.slice(0, -1) ?? "")).join("\n");
}

/** A blank at which no line is broken; on paper it is an ordinary one. */
export const FIXED_BLANK = "\u00a0";

/** The text in lines of at most `REPORT_WIDTH`, `lead` before the first and as many blanks before the others. */
export function wrapped(text: string, lead = ""): string {
  const room = REPORT_WIDTH - lead.length;
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  lines.push(line);
  return lines
    .map((each, n) => `${n === 0 ? lead : " ".repeat(lead.length)}${each}`.trimEnd())
    .join("\n")
    .replaceAll(FIXED_BLANK, " ");
}

/** A count in at most seven characters: `12,345`, `50.1M`. */
export function countText(count: number): string {
  if (count < 1_000_000) return count.toLocaleString("en-US");
  const [size, unit] = count < 1_000_000_000 ? ([1e6, "M"] as const) : ([1e9, "G"] as const);
  return `${(Math.floor(count / (size / 10)) / 10).toFixed(1)}${unit}`;
}

/** A count in four characters, up to 999 million: `9999`, `36k`, `1.2M`, `120M`. */
export function briefCount(count: number): string {
  if (count < 10_000) return String(count);
  if (count < 1_000_000) return `${Math.floor(count / 1000)}k`;
  const tenths = Math.floor(count / 100_000);
  return `${tenths < 100 ? tenths / 10 : Math.floor(tenths / 10)}M`;
}

/** `1 range`, `2 ranges`, `1,234 ranges`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/** For eyes: `45s`, `2h 5m`, `199d`. At most two units, cut rather than rounded, so that a day never reads `24h`. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const at = units.findIndex(([, size]) => whole >= size);
  const [unit, size] = units[at] ?? ["s", 1];
  const rest = whole % size;
  const [nextUnit, nextSize] = units[at + 1] ?? ["s", 1];
  const parts = [`${Math.floor(whole / size)}${unit}`];
  if (at >= 0 && rest >= nextSize && whole < 100 * size)
    parts.push(`${Math.floor(rest / nextSize)}${nextUnit}`);
  return parts.join(" ");
}

/** The largest unit alone: `45s`, `2h`, `199d`. */
export function ageText(seconds: number): string {
  return durationText(seconds).split(" ")[0] ?? "";
}
