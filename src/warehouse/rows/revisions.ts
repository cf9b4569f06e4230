import { toPlainNotation } from "../../model/decimal.ts";
import type { Micros } from "../../model/time.ts";
import type { RowTable, SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/** Stores the earlier version of a row; `after` is null if the row was withdrawn. */
export function storeRevision(
  transaction: Transaction,
  table: RowTable<never>,
  row: { key: number; ts: Micros; before: readonly SqlValue[]; after: readonly SqlValue[] | null },
): void {
  transaction.run(
    "INSERT INTO revision_rows (stream, key, ts, before, after, changed_at) VALUES (?, ?, ?, ?, ?, ?)",
    [
      table.stream,
      row.key,
      row.ts,
      toRowJson(table, row.before),
      row.after === null ? null : toRowJson(table, row.after),
      transaction.at,
    ],
  );
}

/**
 * Whether two rows of the same timestamp have the same figures. Ignores what only one source sends: unknown fields
 * (`extra`), quality flags, and `last_moved`, which the websocket omits.
 */
export function hasSameValues<Row>(
  table: RowTable<Row>,
  before: readonly SqlValue[],
  after: readonly SqlValue[],
): boolean {
  return table.columns.every((column, i) => {
    const [old, latest] = [before[i] ?? null, after[i] ?? null];
    if (column === "source") return true;
    if (column === "details") return exactTextsOf(old) === exactTextsOf(latest);
    return old === latest || (column === "last_moved" && (old === null || latest === null));
  });
}

/** The exact decimals in `details`, without `quality` and `extra`. */
function exactTextsOf(details: SqlValue): string {
  if (typeof details !== "string") return "{}";
  const { quality: _quality, extra: _extra, ...digits } = JSON.parse(details) as Record<string, string>;
  return JSON.stringify(digits);
}

/** A row as JSON: decimals as exact text, and the entries of `details` merged in. */
function toRowJson(table: RowTable<never>, values: readonly SqlValue[]): string {
  const json: Record<string, SqlValue> = {};
  table.columns.forEach((column, i) => {
    const value = values[i] ?? null;
    if (column === "details") Object.assign(json, typeof value === "string" ? JSON.parse(value) : {});
    else if (column === "source") json[column] = value === 0 ? "rest" : "live";
    else json[column] = i < table.decimals && typeof value === "number" ? toExactText(value) : value;
  });
  return JSON.stringify(json);
}

/** For a REAL without an exact text in `details`: docs/decisions/exact-decimals.md. */
function toExactText(real: number): string {
  return toPlainNotation(real.toPrecision(15)) ?? String(real);
}
