// Formats moments and durations. Pure functions without access to the page.

import { count } from "./text-format.ts";

const units = Object.entries({ day: 86_400, h: 3_600, min: 60, s: 1 });

/** 45 s, 12 min, 3.5 h, 200 days: one unit, with one decimal below 10. A negative age, an error of a clock, is 0 s. */
export function duration(length: number): string {
  const seconds = Math.max(0, length);
  const [name, size] = units.find(([, least]) => seconds >= least) ?? ["s", 1];
  const value = seconds / size;
  const digits = name !== "s" && value < 10 ? Math.round(value * 10) / 10 : Math.round(value);
  return `${count(digits)} ${name}${name === "day" && digits !== 1 ? "s" : ""}`;
}

/** 2026-03-01 12:00, or only the day at midnight. */
export function minuteOf(time: string | null): string {
  if (!time) return "";
  const iso = zonedIso(Date.parse(time));
  const minute = iso.slice(11, 16);
  return minute === "00:00" ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${minute}`;
}

/** Times are shown in UTC, unless a person has chosen the browser's zone. */
let isLocal = false;
export const setLocalTime = (local: boolean): void => {
  isLocal = local;
};

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

export const dayAndMonth = (iso: string) =>
  `${Number(iso.slice(8, 10))} ${monthNames[Number(iso.slice(5, 7)) - 1]}`;

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

export const secondsBetween = (earlier: string, later: string): number =>
  Math.max(0, (Date.parse(later) - Date.parse(earlier)) / 1000);

/** Figures that are older than the rest of their page by more than this say of which moment they are. */
const MAX_AGE_SECONDS = 30;

/** ` · as of 12:00:05 UTC` for figures that are old by the other time; else nothing. */
export function asOf(time: string, now: string): string {
  if (!(secondsBetween(time, now) > MAX_AGE_SECONDS)) return "";
  return ` · as of ${momentText(Date.parse(time) * 1000).slice(11)}`;
}
