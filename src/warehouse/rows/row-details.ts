import { emptyDetails, type RowDetails } from "../../model/answers/bar-aggregate.ts";
import { toPlainNotation } from "../../model/decimal.ts";
import type { RowTable, SqlValue } from "../tables/row-tables.ts";

export function parseRowDetails(details: string | null): RowDetails {
  return details === null ? emptyDetails : (JSON.parse(details) as RowDetails);
}

/** The exact digits of a stored decimal in plain notation: docs/decisions/exact-decimals.md. */
export function formatExact(real: number | null, digits?: string): string | null {
  if (real === null) return null;
  if (digits !== undefined) return digits;
  const text = String(real);
  return text.includes("e") ? (toPlainNotation(text) ?? text) : text;
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
