/**
 * A decimal as the warehouse keeps it: a double for arithmetic and, only where a double cannot give the
 * digits back, the exact value as plain text beside it.
 */
export interface Decimal {
  readonly real: number;
  /** Plain notation: no exponent, no leading plus, no trailing zeros of the fraction. Null: `real` says it all. */
  readonly exact: string | null;
}

/**
 * A double gives back every decimal of at most 15 significant digits. The views do so with integer arithmetic on
 * `real * 10^scale`, which is exact for magnitudes in this window (and for zero); all else carries its text.
 */
const EXACT_DIGITS = 15;
const LEAST_EXACT = 1e-7;
const EXACT_BELOW = 1e15;

/** Longer than any figure on earth; a longer text is noise, and expanding its exponent would be a bomb. */
const LONGEST = 400;

const grammar = /^([+-]?)(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,4}))?$/;

/** Reads a JSON number's text or a decimal string. Undefined for anything else: `NaN`, `0x10`, `1,234`, more than a double can hold. */
export function readDecimal(text: string): Decimal | undefined {
  const short = shortPlain(text);
  if (!Number.isNaN(short)) {
    if (short === 0 || (Math.abs(short) >= LEAST_EXACT && Math.abs(short) < EXACT_BELOW))
      return { real: short, exact: null };
    return { real: short, exact: plainNotation(text) ?? null };
  }
  const plain = plainNotation(text);
  if (plain === undefined) return undefined;
  const real = Number(plain);
  if (!Number.isFinite(real)) return undefined;
  const magnitude = Math.abs(real);
  const fits =
    significantDigits(plain) <= EXACT_DIGITS && magnitude >= LEAST_EXACT && magnitude < EXACT_BELOW;
  return { real, exact: plain === "0" || fits ? null : plain };
}

const powersOfTen = Array.from({ length: EXACT_DIGITS + 1 }, (_, power) => 10 ** power);

/**
 * The decimal `digits / 10^places`, of at most 15 digits in all; undefined where it must carry its text. Both are exact
 * doubles, so that their quotient is the same double that `Number` gives.
 */
export function decimalOfDigits(digits: number, places: number): Decimal | undefined {
  const real = digits / (powersOfTen[places] ?? 1);
  return real === 0 || real >= LEAST_EXACT ? { real, exact: null } : undefined;
}

/**
 * The hot path: `-?digits[.digits]` of at most 15 digits, no sign of anything unusual; NaN for all else. The digits as an
 * integer and the power of ten are both exact doubles, so that their quotient is the same double that `Number` gives,
 * at a third of the cost.
 */
function shortPlain(text: string): number {
  const length = text.length;
  const negative = text.charCodeAt(0) === 45;
  if (length === 0 || length > EXACT_DIGITS + 2) return Number.NaN;
  let mantissa = 0;
  let digits = 0;
  let point = -1;
  for (let i = negative ? 1 : 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 48 && code <= 57) {
      mantissa = mantissa * 10 + (code - 48);
      digits++;
    } else if (code === 46 && point < 0 && digits > 0 && i < length - 1) point = digits;
    else return Number.NaN;
  }
  if (digits === 0 || digits > EXACT_DIGITS) return Number.NaN;
  const magnitude = point < 0 ? mantissa : mantissa / (powersOfTen[digits - point] ?? 1);
  return negative ? -magnitude : magnitude;
}

/** The same value without exponent, superfluous zeros or signs; undefined where the text is not a decimal. */
export function plainNotation(text: string): string | undefined {
  if (text.length > LONGEST) return undefined;
  const match = grammar.exec(text);
  if (!match) return undefined;
  const [, sign = "", whole = "", fraction = "", exponentText = "0"] = match;
  const digits = whole + fraction;
  const exponent = Number(exponentText);
  if (digits === "" || Math.abs(exponent) > LONGEST) return undefined;
  const point = whole.length + exponent;
  const padded = "0".repeat(Math.max(0, 1 - point)) + digits + "0".repeat(Math.max(0, point - digits.length));
  const at = Math.max(1, point);
  const wholePart = padded.slice(0, at).replace(/^0+(?=\d)/, "");
  const fractionPart = padded.slice(at).replace(/0+$/, "");
  const plain = fractionPart === "" ? wholePart : `${wholePart}.${fractionPart}`;
  return sign === "-" && plain !== "0" ? `-${plain}` : plain;
}

function significantDigits(plain: string): number {
  const digits = plain.replace("-", "").replace(".", "").replace(/^0+/, "");
  return plain.includes(".") ? digits.length : digits.replace(/0+$/, "").length;
}
