import { usageFailure } from "../../model/failure.ts";
import {
  formatTimestamp,
  MICROS_PER_DAY,
  MICROS_PER_MS,
  MICROS_PER_SECOND,
  type Micros,
} from "../../model/time.ts";

/** Since 1972 every zone changes its offset at a multiple of this, apart from a few before the service began. */
export const OFFSET_BLOCK_MICROS = 15 * 60 * MICROS_PER_SECOND;

/** A zone of the IANA database: what its clocks show, and where its days begin. */
export interface TimeZone {
  /** `2026-03-29T03:00:00.000000+02:00`, in UTC with `Z`. */
  format(ts: Micros): string;
  /** The number of days from 1970-01-01 to the local date. */
  dayOf(ts: Micros): number;
  /** The first moment of that local date: not always 00:00, where clocks change at midnight. */
  startOfDay(day: number): Micros;
  /**
   * The moment at which its clocks show a time, given as if in UTC: the first of two, when clocks are set back. A time that is
   * skipped counts by the offset before: 02:30 is 03:30.
   */
  momentOf(local: Micros): Micros;
}

export const utcZone: TimeZone = {
  format: formatTimestamp,
  dayOf: (ts) => Math.floor(ts / MICROS_PER_DAY),
  startOfDay: (day) => day * MICROS_PER_DAY,
  momentOf: (local) => local,
};

/** Default: UTC. Throws a Failure for an unknown name. */
export function findTimeZone(name = "UTC"): TimeZone {
  if (/^(utc|z|etc\/utc|gmt)$/i.test(name)) return utcZone;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  } catch {
    throw usageFailure(
      `there is no time zone ${name}`,
      "give a name such as Europe/Berlin or America/New_York",
    );
  }
  return createZone((ms) => readOffset(format, ms));
}

function createZone(readOffsetMs: (ms: number) => number): TimeZone {
  const offsets = new Map<number, readonly [offset: Micros, text: string]>();
  const findOffset = (ts: Micros) => {
    const block = Math.floor(ts / OFFSET_BLOCK_MICROS);
    let found = offsets.get(block);
    if (found === undefined) {
      const offset = readOffsetMs((block * OFFSET_BLOCK_MICROS) / MICROS_PER_MS) * MICROS_PER_MS;
      found = [offset, `${offset < 0 ? "-" : "+"}${formatTimestamp(Math.abs(offset)).slice(11, 16)}`];
      offsets.set(block, found);
    }
    return found;
  };
  const offsetAt = (ts: Micros) => findOffset(ts)[0];
  const momentOf = (local: Micros): Micros => {
    const before = offsetAt(local - MICROS_PER_DAY);
    const after = offsetAt(local + MICROS_PER_DAY);
    const isAfter = offsetAt(local - before) !== before && offsetAt(local - after) === after;
    return local - (isAfter ? after : before);
  };
  return {
    momentOf,
    dayOf: (ts) => Math.floor((ts + offsetAt(ts)) / MICROS_PER_DAY),
    startOfDay: (day) => momentOf(day * MICROS_PER_DAY),
    format: (ts) => {
      const [offset, text] = findOffset(ts);
      return `${formatTimestamp(ts + offset).slice(0, 26)}${text}`;
    },
  };
}

function readOffset(format: Intl.DateTimeFormat, ms: number): number {
  const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second) - ms;
}
