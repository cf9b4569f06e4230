import { DAY_MS } from "./utc-text.ts";

const WEEK_MS = 7 * DAY_MS;
/** Contracts end on Fridays at 08:00 UTC; 1970 began on a Thursday. */
const FIRST_FRIDAY_MS = DAY_MS + 8 * 3_600_000;

/** The Friday of week `week` since 1970. */
export function fridayMs(week: number): number {
  return FIRST_FRIDAY_MS + week * WEEK_MS;
}

/** The first week whose Friday lies after this moment. */
export function weekAfter(ms: number): number {
  return Math.floor((ms - FIRST_FRIDAY_MS) / WEEK_MS) + 1;
}

/** The week that holds the last Friday of a quarter; quarters are counted from the first one of 1970. */
export function lastWeekOfQuarter(quarter: number): number {
  const nextQuarter = Date.UTC(1970 + Math.floor((quarter + 1) / 4), ((quarter + 1) % 4) * 3, 1);
  return weekAfter(nextQuarter) - 1;
}

/** The first quarter whose last Friday lies after this moment. */
export function quarterAfter(ms: number): number {
  const date = new Date(ms);
  const quarter = (date.getUTCFullYear() - 1970) * 4 + Math.floor(date.getUTCMonth() / 3);
  return fridayMs(lastWeekOfQuarter(quarter)) > ms ? quarter : quarter + 1;
}

const months = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(" ");

/** 27MAR26, as exchanges name their expiries. */
export function expiryName(ms: number): string {
  const date = new Date(ms);
  return `${date.getUTCDate()}${months[date.getUTCMonth()]}${String(date.getUTCFullYear() % 100).padStart(2, "0")}`;
}
