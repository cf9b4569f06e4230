/** A timestamp (microseconds since 1970 UTC) or a duration in microseconds. Exact as a double until the year 2255. */
export type Micros = number;

export const MICROS_PER_MS = 1_000;
export const MICROS_PER_SECOND = 1_000_000;
export const MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND;
/** For all annual figures: basis, funding, volatility. Columns and pages must agree. */
export const DAYS_PER_YEAR = 365;
/** A machine whose clock differs more from the service's is reported. The service's Date header has no fractions of a second. */
export const CLOCK_TOLERANCE_MS = 2_000;

const ZERO = 48;
const MS_PER_DAY = MICROS_PER_DAY / MICROS_PER_MS;

/** The value of the `count` ASCII digits at `at`; NaN if one is no digit. */
function parseDigits(text: string, at: number, count: number): number {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    const digit = text.charCodeAt(i) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    value = value * 10 + digit;
  }
  return value;
}

// The last parsed date is cached: pages carry thousands of timestamps of the same day.
let cachedDate = "";
let cachedDays = Number.NaN;

function parseDateDays(date: string): number {
  if (date === cachedDate) return cachedDays;
  const start = new Date(`${date}T00:00:00Z`);
  // V8 reads 30 February as 2 March.
  const isDay = !Number.isNaN(start.getTime()) && start.toISOString().startsWith(date);
  cachedDate = date;
  cachedDays = isDay ? start.getTime() / MS_PER_DAY : Number.NaN;
  return cachedDays;
}

/** `Z`, or an offset of zero: any other zone is not UTC. */
function isUtcZone(text: string, at: number): boolean {
  if (text.length === at + 1) return (text.charCodeAt(at) | 32) === 122; /* z */
  return /^[+-]00(:?00)?$/.test(text.slice(at));
}

/**
 * Parses an ISO 8601 timestamp in UTC (`Z` or `+00:00`); other offsets and a missing zone give undefined.
 * Digits beyond microseconds are cut, not rounded. The leap second `:60` becomes the last microsecond of its minute,
 * `24:00:00` the next midnight.
 */
export function parseTimestamp(text: string): Micros | undefined {
  const separator = text.charCodeAt(10) | 32;
  if (separator !== 116 /* t */) return undefined;
  const days = parseDateDays(text.slice(0, 10));
  const hour = parseDigits(text, 11, 2);
  const minute = parseDigits(text, 14, 2);
  let second = parseDigits(text, 17, 2);
  if (text.charCodeAt(13) !== 58 || text.charCodeAt(16) !== 58) return undefined;

  let at = 19;
  let fraction = 0;
  if (text.charCodeAt(at) === 46 /* . */) {
    let scale = 100_000;
    const start = ++at;
    for (; at < text.length; at++) {
      const digit = text.charCodeAt(at) - ZERO;
      if (!(digit >= 0 && digit <= 9)) break;
      fraction += digit * scale;
      scale = scale > 1 ? scale / 10 : 0;
    }
    if (at === start) return undefined;
  }
  if (!isUtcZone(text, at)) return undefined;

  if (second === 60 && minute === 59 && hour === 23) {
    second = 59;
    fraction = 999_999;
  }
  const endOfDay = hour === 24 && minute === 0 && second === 0 && fraction === 0;
  if (!(hour <= 23 || endOfDay) || !(minute <= 59) || !(second <= 59)) return undefined;
  const micros =
    ((days * 24 + hour) * 60 + minute) * 60 * MICROS_PER_SECOND + second * MICROS_PER_SECOND + fraction;
  return Number.isSafeInteger(micros) ? micros : undefined;
}

/** Milliseconds since 1970 between 2001 and 2096: seconds and microseconds of these years have other lengths. */
const EPOCH_MS_RANGE = { from: 1e12, to: 4e12 };

/** Parses a timestamp of the service: ISO 8601 in UTC, or milliseconds since 1970 as a number or its digits. */
export function parseServiceTimestamp(value: unknown): Micros | undefined {
  const text = typeof value === "string" ? parseTimestamp(value) : undefined;
  if (text !== undefined) return text;
  const ms = typeof value === "string" && /^\d{13}$/.test(value) ? Number(value) : value;
  if (typeof ms !== "number" || !(ms >= EPOCH_MS_RANGE.from && ms < EPOCH_MS_RANGE.to)) return undefined;
  return Math.floor(ms * MICROS_PER_MS);
}

/** `YYYY-MM-DDTHH:MM:SS.ffffffZ`: always 27 characters, so that texts sort by time. */
export function formatTimestamp(micros: Micros): string {
  const ms = Math.floor(micros / MICROS_PER_MS);
  const rest = micros - ms * MICROS_PER_MS;
  return `${new Date(ms).toISOString().slice(0, 23)}${String(rest).padStart(3, "0")}Z`;
}

/** With as many digits as the timestamp has: three, or six. */
export function formatShort(ts: Micros): string {
  return formatTimestamp(ts).replace(/000Z$/, "Z");
}

/** Without the fraction: `2026-05-01T12:00:00Z`. */
export function formatToSecond(ts: Micros): string {
  return `${formatTimestamp(ts).slice(0, 19)}Z`;
}

/** Every ISO 8601 parser accepts three fractional digits. */
export function formatToMillisecond(ts: Micros): string {
  return `${formatTimestamp(ts).slice(0, 23)}Z`;
}

/** For people, in UTC: `2026-05-01 12:00:00`, or up to the minute. */
export function formatMoment(time: Micros | string, until: "minute" | "second" = "second"): string {
  const text = typeof time === "string" ? time : formatTimestamp(time);
  return text.slice(0, until === "minute" ? 16 : 19).replace("T", " ");
}

/** The UTC day of a timestamp, `YYYY-MM-DD`. */
export function formatDay(micros: Micros): string {
  return formatTimestamp(micros).slice(0, 10);
}

/** Midnight at the start of the timestamp's UTC day. */
export function startOfDay(micros: Micros): Micros {
  return Math.floor(micros / MICROS_PER_DAY) * MICROS_PER_DAY;
}

const dateAndTime =
  /^(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2})(:\d{2}(?:\.\d+)?)?(?:(Z)|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?$/i;

/** The moment at which clocks show a time: microseconds since 1970-01-01 00:00 on these clocks. */
type ClockReader = (local: Micros) => Micros;

/**
 * Parses `YYYY-MM-DD`, or a time `YYYY-MM-DD HH:MM[:SS[.f]]`, also with `T`. Without `Z` or an offset it is a time of the clocks that
 * `toMoment` reads: those of UTC by default.
 */
export function parseDateOrTimestamp(
  text: string,
  toMoment: ClockReader = (local) => local,
): Micros | undefined {
  const [, day, minute = "00:00", second = ":00", utc, sign, hours, minutes = 0] =
    dateAndTime.exec(text) ?? [];
  const ts = day === undefined ? undefined : parseTimestamp(`${day}T${minute}${second}Z`);
  if (ts === undefined || utc !== undefined) return ts;
  if (sign === undefined) return toMoment(ts);
  const offset = (Number(hours) * 60 + Number(minutes)) * 60 * MICROS_PER_SECOND;
  return sign === "-" ? ts + offset : ts - offset;
}

export const secondsPerUnit = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 } as const;

/** Parses `90s`, `10m`, `1h`, `7d` or `2w`; returns seconds. */
export function parseDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([smhdw])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Number(count) * secondsPerUnit[unit as keyof typeof secondsPerUnit];
}

/** Parses what users type: also `now` and times relative to it, `-7d`, `-90m` or `now-7d`. */
export function parseUserTime(text: string, now: Micros, toMoment?: ClockReader): Micros | undefined {
  if (text === "now") return now;
  const ago = parseDuration(text.replace(/^(now)?-/, ""));
  return ago === undefined || /^\d/.test(text)
    ? parseDateOrTimestamp(text, toMoment)
    : now - ago * MICROS_PER_SECOND;
}

/** What `parseUserTime` accepts, for remedies. */
export const USER_TIME_FORMS =
  "YYYY-MM-DD, a time such as '2026-03-01 12:00' (UTC) or 2026-03-01T07:00:00.5-05:00, now, or a relative time such as -7d or -90m";

const minutes = (n: number): Micros => n * 60 * MICROS_PER_SECOND;

/** The bar widths for which there is a view: `bars_1m` and so on. */
export const barWidths = {
  "1m": minutes(1),
  "5m": minutes(5),
  "15m": minutes(15),
  "1h": minutes(60),
  "4h": minutes(240),
  "1d": MICROS_PER_DAY,
} as const satisfies Record<string, Micros>;

export type BarWidth = keyof typeof barWidths;
export const isBarWidth = (text: string): text is BarWidth => Object.hasOwn(barWidths, text);

/** No market is older than Bitcoin's first block of January 2009. */
const MIN_PLAUSIBLE_TS = parseTimestamp("2009-01-01T00:00:00Z") ?? 0;
const MAX_PLAUSIBLE_TS = parseTimestamp("2090-01-01T00:00:00Z") ?? 0;

export function isPlausible(micros: Micros): boolean {
  return micros >= MIN_PLAUSIBLE_TS && micros < MAX_PLAUSIBLE_TS;
}
