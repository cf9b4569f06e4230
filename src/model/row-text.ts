type RowValues = readonly unknown[];

/** One line of CSV, with its line end. A value that is missing is empty; bytes are hexadecimal. */
export function toCsvLine(row: RowValues): string {
  return `${row.map(toCsvCell).join(",")}\r\n`;
}

function toCsvCell(value: unknown): string {
  const text = toCellText(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function toCellText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return Buffer.isBuffer(value) ? value.toString("hex") : String(value);
}

/** A row as a JSON object. */
export function toJsonObject(columns: readonly string[], row: RowValues): string {
  return `{${columns.map((name, at) => `${JSON.stringify(name)}:${toJsonValue(row[at])}`).join(",")}}`;
}

/** Prints a bigint with all its digits. */
function toJsonValue(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  return JSON.stringify(Buffer.isBuffer(value) ? value.toString("hex") : value) ?? "null";
}
