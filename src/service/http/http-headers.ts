const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const imf = /^[a-z]{3}, (\d{2}) ([a-z]{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) gmt$/;
const rfc850 = /^[a-z]{6,9}, (\d{2})-([a-z]{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) gmt$/;
const asctime = /^[a-z]{3} ([a-z]{3}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/;

function moment(parts: (string | undefined)[]): number | undefined {
  const [year, month, day, hour, minute, second] = parts;
  const at = months.indexOf(month ?? "");
  const ms = Date.UTC(Number(year), at, Number(day), Number(hour), Number(minute), Number(second));
  const inRange = at >= 0 && Number(hour) <= 23 && Number(minute) <= 59 && Number(second) <= 60;
  return inRange && new Date(ms).getUTCMonth() === at ? ms : undefined;
}

/**
 * The three date forms of HTTP, in milliseconds. `Date.parse` is no use here: it takes asctime, which
 * has no zone, for local time, and reads garbage such as "7 apples" as a year.
 */
export function parseHttpDate(text: string, nearMs: number): number | undefined {
  const plain = text.trim().toLowerCase();
  let match = imf.exec(plain);
  if (match) return moment([match[3], match[2], match[1], match[4], match[5], match[6]]);
  match = asctime.exec(plain);
  if (match) return moment([match[6], match[1], match[2], match[3], match[4], match[5]]);
  match = rfc850.exec(plain);
  if (!match) return undefined;
  // Two digits: the year of this century, unless that is more than 50 years ahead (RFC 9110).
  const thisYear = new Date(nearMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(match[3]);
  const century = year > thisYear + 50 ? year - 100 : year;
  return moment([String(century), match[2], match[1], match[4], match[5], match[6]]);
}

/** However long the service asks us to stay away: after this we look whether it meant it. */
export const LONGEST_PAUSE_MS = 15 * 60_000;

/**
 * The wait that a `Retry-After` header asks for, as a floor under our own backoff; 0 where it says nothing useful.
 * A date is compared with `answeredAt`, the moment at which the same server says that it wrote the
 * answer, so that a wrong clock on either side does no harm.
 */
export function retryAfterMs(header: string | undefined, answeredAt: number): number {
  if (header === undefined) return 0;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_PAUSE_MS);
  const date = parseHttpDate(text, answeredAt);
  if (date === undefined) return 0;
  return Math.min(Math.max(0, date - answeredAt), LONGEST_PAUSE_MS);
}
