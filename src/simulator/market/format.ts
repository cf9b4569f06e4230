export const DAY_MS = 86_400_000;

export function formatUtc(ms: number): string {
  return new Date(ms).toISOString();
}

/** A fraction of this many digits, with a leading 1, fits in 31 bits. */
const MAX_SMALL_DIGITS = 9;
const POWERS_OF_TEN = Array.from({ length: 23 }, (_, digits) => 10 ** digits);

/** The number of fraction digits that shows about nine significant digits of a value of this size. */
export function chooseFractionDigits(typical: number): number {
  const magnitude = Math.floor(Math.log10(typical));
  return Math.max(2, Math.min(20, 8 - magnitude));
}

/** The value in units of its last fraction digit: 1.25 with two digits is 125. Monotonic. */
function toLastDigitUnits(value: number, digits: number): number {
  return Math.round(value * (POWERS_OF_TEN[digits] ?? 1));
}

/** Formats with exactly `digits` fraction digits, never with an exponent. */
export function formatDecimal(value: number, digits: number): string {
  const units = Math.abs(toLastDigitUnits(value, digits));
  if (units > Number.MAX_SAFE_INTEGER) return value.toFixed(Math.min(digits, 2));
  const sign = value < 0 && units !== 0 ? "-" : "";
  if (digits === 0) return sign + units;
  // Two small integers are formatted several times faster than a large one.
  if (digits <= MAX_SMALL_DIGITS) {
    const unit = POWERS_OF_TEN[digits] as number;
    const whole = Math.floor(units / unit);
    return `${sign}${whole}.${String(units - whole * unit + unit).slice(1)}`;
  }
  const text = String(units).padStart(digits + 1, "0");
  const cut = text.length - digits;
  return `${sign}${text.slice(0, cut)}.${text.slice(cut)}`;
}
