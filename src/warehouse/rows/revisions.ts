import { plainNotation } from "../../model/decimal.ts";
import type { Micros } from "../../model/time.ts";
import type { RowTable, SqlValue } from "../tables/row-tables.ts";
import type { Transaction } from "../tables/transaction.ts";

/** Keeps what a row said; `after` null means that the row was withdrawn. */
export function keepRevision(
  transaction: Transaction,
  table: RowTable<never>,
  row: { key: number; ts: Micros; before: readonly SqlValue[]; after: readonly SqlValue[] | null },
): void {
  transaction
    .statement(
      "INSERT INTO revision_rows (stream, key, ts, before, after, changed_at) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .run([
      table.stream,
      row.key,
      row.ts,
      rowJson(table, row.before),
      row.after === null ? null : rowJson(table, row.after),
      transaction.now,
    ]);
}

/**
 * Whether two rows of the same moment say the same, figure by figure. What only one of them mentions is no correction: a
 * property that this version does not know, a doubt, or a field that the websocket leaves out.
 */
export function saysTheSame<Row>(
  table: RowTable<Row>,
  before: readonly SqlValue[],
  after: readonly SqlValue[],
): boolean {
  return table.columns.every((column, i) => {
    const [was, is] = [before[i] ?? null, after[i] ?? null];
    if (column === "source") return true;
    if (column === "aside") return exactTexts(was) === exactTexts(is);
    return was === is || (column === "last_moved" && (was === null || is === null));
  });
}

/** The exact digits in a row's sidecar, without what else stands there. */
function exactTexts(aside: SqlValue): string {
  if (typeof aside !== "string") return "{}";
  const { quality: _quality, extra: _extra, ...digits } = JSON.parse(aside) as Record<string, string>;
  return JSON.stringify(digits);
}

/** A row as JSON: decimals as exact text, whatever stood aside put back in its place. */
function rowJson(table: RowTable<never>, values: readonly SqlValue[]): string {
  const json: Record<string, SqlValue> = {};
  table.columns.forEach((column, i) => {
    const value = values[i] ?? null;
    if (column === "aside") Object.assign(json, typeof value === "string" ? JSON.parse(value) : {});
    else if (column === "source") json[column] = value === 0 ? "rest" : "live";
    else json[column] = i < table.decimals && typeof value === "number" ? exactDigits(value) : value;
  });
  return JSON.stringify(json);
}

/** A REAL without exact text beside it has at most 15 significant digits. */
function exactDigits(real: number): string {
  return plainNotation(real.toPrecision(15)) ?? String(real);
}
