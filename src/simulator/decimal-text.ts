const scales = Array.from({ length: 23 }, (_, digits) => 10 ** digits);

/** How many fraction digits show about nine significant ones of a figure of this size. */
export function fractionDigitsFor(typical: number): number {
  const magnitude = Math.floor(Math.log10(typical));
  return Math.max(2, Math.min(20, 8 - magnitude));
}

/** The figure as it is printed: a whole number of its last digit's units. Never falls when the figure rises. */
export function inUnits(value: number, digits: number): number {
  return Math.round(value * (scales[digits] ?? 1));
}

/** Plain notation with exactly `digits` fraction digits; never an exponent. */
export function plain(value: number, digits: number): string {
  const units = Math.abs(inUnits(value, digits));
  if (units > Number.MAX_SAFE_INTEGER) return value.toFixed(Math.min(digits, 2));
  const text = String(units).padStart(digits + 1, "0");
  const cut = text.length - digits;
  const sign = value < 0 && units !== 0 ? "-" : "";
  return digits === 0 ? sign + text : `${sign}${text.slice(0, cut)}.${text.slice(cut)}`;
}
