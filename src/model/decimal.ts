/** A decimal as the warehouse stores it: a double and, where the double loses digits, the exact value as text. */
export interface Decimal {
  readonly real: number;
  /** Plain notation: no exponent, no leading plus, no trailing zeros of the fraction. Null: `real` is exact. */
  readonly exact: string | null;
}

/**
 * A double preserves every decimal of at most 15 digits. The views restore them with integer arithmetic on
 * `real * 10^scale`, which is exact for zero and from this magnitude on; other values need their text.
 */
const MAX_EXACT_DIGITS = 15;
const MIN_EXACT_MAGNITUDE = 1e-7;

/** Longer texts are garbage; expanding a huge exponent would exhaust the memory. */
const MAX_TEXT_LENGTH = 400;

const decimalPattern = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?$/;

/** Parses the text of a JSON number or decimal string. Undefined for `NaN`, `0x10`, `1,234` and what overflows a double. */
export function parseDecimal(text: string): Decimal | undefined {
  const short = parseShortDecimal(text);
  if (!Number.isNaN(short)) {
    if (short === 0 || Math.abs(short) >= MIN_EXACT_MAGNITUDE) return { real: short, exact: null };
    return { real: short, exact: toPlainNotation(text) ?? null };
  }
  const plain = toPlainNotation(text);
  if (plain === undefined) return undefined;
  const real = Number(plain);
  if (!Number.isFinite(real)) return undefined;
  const fits = countDigits(plain) <= MAX_EXACT_DIGITS && Math.abs(real) >= MIN_EXACT_MAGNITUDE;
  return { real, exact: plain === "0" || fits ? null : plain };
}

const powersOfTen = Array.from({ length: MAX_EXACT_DIGITS + 1 }, (_, power) => 10 ** power);

/**
 * The double of `digits / 10^places`, of at most 15 digits; NaN if the decimal needs its text. Both are exact doubles, so
 * their quotient is the same double that `Number` gives.
 */
export function realFromDigits(digits: number, places: number): number {
  const real = digits / (powersOfTen[places] ?? 1);
  return real === 0 || real >= MIN_EXACT_MAGNITUDE ? real : Number.NaN;
}

/**
 * The hot path: at most 15 digits, with or without `-` and a point; NaN for all else. Digits and power of ten are exact doubles,
 * so their quotient is the same double that `Number` gives, at a third of the cost.
 */
function parseShortDecimal(text: string): number {
  const length = text.length;
  const negative = text.charCodeAt(0) === 45;
  let mantissa = 0;
  let digits = 0;
  let point = -1;
  for (let i = negative ? 1 : 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 48 && code <= 57) {
      mantissa = mantissa * 10 + (code - 48);
      digits++;
    } else if (code === 46 && point < 0) point = digits;
    else return Number.NaN;
  }
  if (digits === 0 || digits > MAX_EXACT_DIGITS) return Number.NaN;
  const magnitude = point < 0 ? mantissa : mantissa / (powersOfTen[digits - point] ?? 1);
  return negative ? -magnitude : magnitude;
}

/** The same value without exponent, redundant zeros or plus sign; undefined if the text is not a decimal. */
export function toPlainNotation(text: string): string | undefined {
  if (text.length > MAX_TEXT_LENGTH) return undefined;
  const match = decimalPattern.exec(text);
  if (!match) return undefined;
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;
  const digits = whole + fraction;
  const exponent = Number(exponentText);
  if (digits === "" || Math.abs(exponent) > MAX_TEXT_LENGTH) return undefined;
  const point = whole.length + exponent;
  const padded = "0".repeat(Math.max(0, 1 - point)) + digits + "0".repeat(Math.max(0, point - digits.length));
  const at = Math.max(1, point);
  const wholePart = padded.slice(0, at).replace(/^0+(?=\d)/, "");
  const fractionPart = padded.slice(at).replace(/0+$/, "");
  const plain = fractionPart === "" ? wholePart : `${wholePart}.${fractionPart}`;
  return sign === "-" && plain !== "0" ? `-${plain}` : plain;
}

/** Without leading zeros. Trailing zeros of an integer count. */
function countDigits(plain: string): number {
  return plain.replace("-", "").replace(".", "").replace(/^0+/, "").length;
}
