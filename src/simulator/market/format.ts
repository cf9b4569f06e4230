export const DAY_MS = 86_400_000;

export const formatUtc = (ms: number) => new Date(ms).toISOString();

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
