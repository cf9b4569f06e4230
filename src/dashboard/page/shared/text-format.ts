// Formats numbers, durations and names. Pure functions without access to the page.

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const threeDigits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const compactAmount = new Intl.NumberFormat("en", {
  notation: "compact",
  minimumSignificantDigits: 3,
  maximumSignificantDigits: 3,
});

const units = [
  ["day", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** 1,234,567 */
export const count = (number: number): string => whole.format(number);

/** 1.2M */
export const brief = (number: number): string =>
  number < 10_000 ? whole.format(number) : compact.format(number);

/** 1.23M, 45.6K, 789: an amount of a column, with three digits each. */
export function amount(number: number | null | undefined): string {
  if (number === null || number === undefined) return "–";
  return number < 1_000 ? threeDigits.format(number) : compactAmount.format(number);
}

/** 45 s, 12 min, 3.5 h, 200 days: one unit, with one decimal below 10. A negative age, an error of a clock, is 0 s. */
export function duration(length: number): string {
  const seconds = Math.max(0, length);
  const [name, size] = units.find(([, least]) => seconds >= least) ?? ["s", 1];
  const value = seconds / size;
  const digits = name !== "s" && value < 10 ? Math.round(value * 10) / 10 : Math.round(value);
  return `${whole.format(digits)} ${name}${name === "day" && digits !== 1 ? "s" : ""}`;
}

/** 12 ranges, 1 range */
export const countNoun = (number: number, noun: string): string =>
  `${brief(number)} ${number === 1 ? noun : `${noun}s`}`;

/** index_ticks → Index ticks */
export function title(stream: string): string {
  const words = stream.replaceAll("_", " ");
  return stream === "ohlcv" ? "Daily bars" : words.charAt(0).toUpperCase() + words.slice(1);
}

/** 2026-03-01 12:00, or only the day at midnight. */
export function minuteOf(time: string | null): string {
  if (!time) return "";
  const iso = zonedIso(Date.parse(time));
  const minute = iso.slice(11, 16);
  return minute === "00:00" ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${minute}`;
}

/** Times are told in UTC, unless a person has chosen the browser's zone. */
let isLocal = false;
export function tellLocalTime(local: boolean): void {
  isLocal = local;
}

/** How far the chosen zone was ahead of UTC, in milliseconds. */
export const aheadOfUtc = (ms: number): number => (isLocal ? -new Date(ms).getTimezoneOffset() * 60_000 : 0);

/** ISO 8601 in the chosen zone, without its name. */
const zonedIso = (ms: number): string => new Date(ms + aheadOfUtc(ms)).toISOString().slice(0, 23);

/** What to add to a moment so that the browser's own zone, in which charts place their marks, reads as the chosen one. */
export const offsetOfZone = (ms: number): number => (isLocal ? 0 : new Date(ms).getTimezoneOffset() * 60_000);

/** UTC, or UTC+2 */
export function zoneName(ms = Date.now()): string {
  const hours = aheadOfUtc(ms) / 3_600_000;
  return hours === 0 ? "UTC" : `UTC${hours > 0 ? "+" : "−"}${Math.abs(hours)}`;
}

/** 2026-03-01 12:00:30 UTC; `digits`: how much of it. */
export function momentText(micros: number, digits = 19): string {
  return `${zonedIso(micros / 1000)
    .slice(0, digits)
    .replace("T", " ")} ${zoneName(micros / 1000)}`;
}

const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** 1 Nov, of an ISO date. */
const dayAndMonth = (iso: string) => `${Number(iso.slice(8, 10))} ${monthNames[Number(iso.slice(5, 7)) - 1]}`;

/** 12:00, or 1 Nov at midnight: for the marks of an axis. `isFirst`: with the day in any case. */
export function clockText(micros: number, isFirst = false): string {
  const iso = zonedIso(micros / 1000);
  const [day, clock] = [dayAndMonth(iso), iso.slice(11, 16)];
  if (clock === "00:00") return day;
  return isFirst ? `${day} ${clock}` : clock;
}

/** 12, 1 Nov where a month or the axis begins, or 2026 where a year begins: the same for days, `ms` as if they were of UTC. */
export function dayText(ms: number, isFirst = false): string {
  const iso = new Date(ms).toISOString();
  const [day, year] = [dayAndMonth(iso), iso.slice(0, 4)];
  if (day === "1 Jan") return isFirst ? `${day} ${year}` : year;
  return isFirst || day.startsWith("1 ") ? day : day.slice(0, -4);
}

/** Seconds from one time to another, at least 0. */
export const secondsBetween = (earlier: string, later: string): number =>
  Math.max(0, (Date.parse(later) - Date.parse(earlier)) / 1000);

/** Figures that are older than the rest of their page by more than this say of which moment they are. */
const MAX_AGE_SECONDS = 30;

/** ` · as of 12:00:05 UTC` for figures that are old by the other time; else nothing. */
export function asOf(time: string, now: string): string {
  if (!(secondsBetween(time, now) > MAX_AGE_SECONDS)) return "";
  return ` · as of ${momentText(Date.parse(time) * 1000).slice(11)}`;
}

/** A price with thousands separators and the service's digits, at most eight after the point. */
export function price(exact: string | null): string {
  if (exact === null) return "–";
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
  const rounded = Math.abs(value).toFixed(digits);
  const sign = Number(rounded) === 0 ? "" : value > 0 ? "+" : "−";
  return `${sign}${rounded} %`;
}

/** 1.2 bp, −0.3 bp, or +1.2 bp if it `isSigned`. */
export function basisPoints(value: number, isSigned = false): string {
  const size = Math.abs(value).toFixed(1);
  const sign = size === "0.0" ? "" : value < 0 ? "−" : isSigned ? "+" : "";
  return `${sign}${size} bp`;
}

/** A figure whose sign is that of `toFixed` with a real minus sign; what rounds to 0 has none. */
export const withMinusSign = (figure: string): string =>
  figure.replace(/^-/, /[1-9]/.test(figure) ? "−" : "");

/** `up` or `down`, by the sign that a figure shows: what rounds to 0 has none. */
export const signOf = (text: string): "up" | "down" | "" =>
  text.startsWith("+") ? "up" : text.startsWith("−") ? "down" : "";

/** `up` or `down`, for the colour of a change. */
export function direction(value: number | null | undefined): "up" | "down" | "" {
  const change = value ?? 0;
  return change > 0 ? "up" : change < 0 ? "down" : "";
}
