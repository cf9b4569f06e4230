type RowValues = readonly unknown[];

/** Rows as text. They yield pieces while they read the rows, so that memory does not grow with their number. */
export const textRenderers = {
  *csv(columns: readonly string[], rows: Iterable<RowValues>): Generator<string> {
    yield toCsvLine(columns);
    for (const row of rows) yield toCsvLine(row);
  },

  *json(columns: readonly string[], rows: Iterable<RowValues>): Generator<string> {
    const keys = columns.map(toJsonKey);
    let lead = "[\n";
    for (const row of rows) {
      yield `${lead}${toJsonObject(keys, row)}`;
      lead = ",\n";
    }
    yield lead === "[\n" ? "[]\n" : "\n]\n";
  },

  *ndjson(columns: readonly string[], rows: Iterable<RowValues>): Generator<string> {
    const keys = columns.map(toJsonKey);
    for (const row of rows) yield `${toJsonObject(keys, row)}\n`;
  },
};

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

/** The beginning of a property of `toJsonObject`. */
export function toJsonKey(name: string, at: number): string {
  return `${at === 0 ? "{" : ","}${JSON.stringify(name)}:`;
}

/** A row as a JSON object. Built by hand: this takes a third of the time of `JSON.stringify` on an object. */
export function toJsonObject(keys: readonly string[], row: RowValues): string {
  let text = keys.length === 0 ? "{" : "";
  for (let at = 0; at < keys.length; at++) text += keys[at] + toJsonValue(row[at]);
  return `${text}}`;
}

/** Text that JSON does not escape: without quotes, backslashes, control characters and halves of surrogate pairs. */
const plainText = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** Prints a bigint with all its digits. */
function toJsonValue(value: unknown): string {
  if (typeof value === "string") return plainText.test(value) ? `"${value}"` : JSON.stringify(value);
  if (value === null) return "null";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "null";
  if (typeof value === "bigint") return String(value);
  return JSON.stringify(Buffer.isBuffer(value) ? value.toString("hex") : value) ?? "null";
}
