import { MAX_RETRY_AFTER_MS } from "../limits.ts";

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const imfFixdate = /^[a-z]{3}, (\d{2}) ([a-z]{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) gmt$/;
const rfc850 = /^[a-z]{6,9}, (\d{2})-([a-z]{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) gmt$/;
const asctime = /^[a-z]{3} ([a-z]{3}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/;

function toMillis(parts: (string | undefined)[]): number | undefined {
  const [year, month, day, hour, minute, second] = parts;
  const monthIndex = months.indexOf(month ?? "");
  const ms = Date.UTC(Number(year), monthIndex, Number(day), Number(hour), Number(minute), Number(second));
  const isInRange = monthIndex >= 0 && Number(hour) <= 23 && Number(minute) <= 59 && Number(second) <= 60;
  return isInRange && new Date(ms).getUTCMonth() === monthIndex ? ms : undefined;
}

/**
 * Parses the three date formats of HTTP. `Date.parse` would read asctime, which has no zone, as local time, and garbage
 * such as "7 apples" as a year.
 */
export function parseHttpDate(text: string, nowMs: number): number | undefined {
  const normalized = text.trim().toLowerCase();
  let match = imfFixdate.exec(normalized);
  if (match) return toMillis([match[3], match[2], match[1], match[4], match[5], match[6]]);
  match = asctime.exec(normalized);
  if (match) return toMillis([match[6], match[1], match[2], match[3], match[4], match[5]]);
  match = rfc850.exec(normalized);
  if (!match) return undefined;
  // RFC 9110: a two-digit year more than 50 years in the future belongs to the past century.
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(match[3]);
  const fullYear = year > thisYear + 50 ? year - 100 : year;
  return toMillis([String(fullYear), match[2], match[1], match[4], match[5], match[6]]);
}

/**
 * Returns the wait in milliseconds; 0 for a missing or unusable header. A date is compared with `respondedAt`, the `Date`
 * of the same response, so that a wrong clock on either side does no harm.
 */
export function parseRetryAfter(header: string | undefined, respondedAt: number): number {
  if (header === undefined) return 0;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, MAX_RETRY_AFTER_MS);
  const date = parseHttpDate(text, respondedAt);
  if (date === undefined) return 0;
  return Math.min(Math.max(0, date - respondedAt), MAX_RETRY_AFTER_MS);
}
