import { emptyDetails, type RowDetails } from "../../model/answers/bar-aggregate.ts";
import { toPlainNotation } from "../../model/decimal.ts";

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
