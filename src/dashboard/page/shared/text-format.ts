// Formats numbers and names. Pure functions without access to the page.

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const threeDigits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const digits = { minimumSignificantDigits: 3, maximumSignificantDigits: 3 };
const compactAmount = new Intl.NumberFormat("en", { notation: "compact", ...digits });

/** 1,234,567 */
export const count = (number: number): string => whole.format(number);

/** 1.2M */
export const brief = (number: number) => (number < 10_000 ? whole.format(number) : compact.format(number));

/** 1.23M, 45.6K, 789: an amount of a column, with three digits each. */
export function amount(number: number | null | undefined): string {
  if (number === null || number === undefined) return "–";
  return number < 1_000 ? threeDigits.format(number) : compactAmount.format(number);
}

/** 12 ranges, 1 range */
export const countNoun = (number: number, noun: string): string =>
  `${brief(number)} ${number === 1 ? noun : `${noun}s`}`;

/** index_ticks → Index ticks */
export function title(stream: string): string {
  const words = stream.replaceAll("_", " ");
  return stream === "ohlcv" ? "Daily bars" : words.charAt(0).toUpperCase() + words.slice(1);
}

/** A price with thousands separators and the service's digits, at most eight after the point. */
export function price(exact: string): string {
  const [integer = "", fraction = ""] = exact.split(".");
  const grouped = integer.replace(/\B(?=(\d{3})+$)/g, ",");
  const shown = fraction.slice(0, integer.replace("-", "").length > 3 ? 2 : 8);
  return withMinusSign(shown ? `${grouped}.${shown}` : grouped);
}

/** A price from a number: two digits after the point from a thousand on, about five significant ones below. */
export function quote(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  const digits = size >= 1_000 ? 2 : Math.min(12, Math.max(2, 4 - Math.floor(Math.log10(size))));
  return price(value.toFixed(digits));
}

/** +1.23 %, with a real minus sign. */
export function percentChange(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined) return "–";
  return `${figureOf(value, digits, true)} %`;
}

/** 1.2 bp, −0.3 bp, or +1.2 bp if it `isSigned`. */
export const basisPoints = (value: number, isSigned = false): string => `${figureOf(value, 1, isSigned)} bp`;

function figureOf(value: number, digits: number, isSigned: boolean): string {
  const figure = withMinusSign(value.toFixed(digits));
  return isSigned && value > 0 && /[1-9]/.test(figure) ? `+${figure}` : figure;
}

/** A figure whose sign is that of `toFixed` with a real minus sign; what rounds to 0 has none. */
export const withMinusSign = (figure: string) => figure.replace(/^-/, /[1-9]/.test(figure) ? "−" : "");

/** `up` or `down`, by the sign that a figure shows: what rounds to 0 has none. */
export const signOf = (text: string): "up" | "down" | "" =>
  text.startsWith("+") ? "up" : text.startsWith("−") ? "down" : "";

/** `up` or `down`, for the colour of a change. */
export function direction(value: number | null | undefined): "up" | "down" | "" {
  const change = value ?? 0;
  return change > 0 ? "up" : change < 0 ? "down" : "";
}
