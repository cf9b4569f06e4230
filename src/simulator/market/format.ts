export const DAY_MS = 86_400_000;

const HOUR_MS = 3_600_000;
let hour = { at: Number.NaN, text: "" };
const two = (value: number) => (value < 10 ? `0${value}` : `${value}`);

/** The text of the hour is kept: the records of a page share it, and `toISOString` takes longer than the rest of a record. */
export function formatUtc(ms: number): string {
  const at = Math.floor(ms / HOUR_MS);
  if (at !== hour.at) hour = { at, text: new Date(at * HOUR_MS).toISOString().slice(0, 14) };
  const rest = Math.trunc(ms - at * HOUR_MS);
  const seconds = Math.trunc(rest / 1000);
  const fraction = rest % 1000;
  return `${hour.text}${two(Math.trunc(seconds / 60))}:${two(seconds % 60)}.${fraction < 100 ? "0" : ""}${two(fraction)}Z`;
}

/** The number of fraction digits that shows about nine significant digits of a value of this size. */
export function chooseFractionDigits(typical: number): number {
  const magnitude = Math.floor(Math.log10(typical));
  return Math.max(2, Math.min(20, 8 - magnitude));
}

/** Formats with `digits` fraction digits, never with an exponent; a value that a double cannot represent gets two at most. */
export function formatDecimal(value: number, digits: number): string {
  const isExact = Math.abs(value) * 10 ** digits <= Number.MAX_SAFE_INTEGER;
  const text = value.toFixed(isExact ? digits : Math.min(digits, 2));
  return value < 0 && Number(text) === 0 ? text.replace("-", "") : text;
}
