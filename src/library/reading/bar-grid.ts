import { type Failure, usageFailure } from "../../model/failure.ts";
import { MICROS_PER_DAY, MICROS_PER_SECOND, type Micros, parseDuration } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { OFFSET_BLOCK_MICROS, type TimeZone, utcZone } from "./time-zone.ts";

const MAX_LENGTH_MICROS = 3_660 * MICROS_PER_DAY;
/** 1970-01-05 was a Monday: weeks begin on Mondays. */
const FIRST_MONDAY = 4;

/**
 * Where bars begin and end. Bars shorter than a day begin at multiples of their length since 1970-01-01T00:00Z; in a time zone
 * they count from each midnight, and the last one of a day ends with it. Bars of days consist of whole days of the zone, counted
 * from 1970-01-01; weeks begin on Monday.
 */
export interface BarGrid {
  /** The usual length: a day is shorter or longer when clocks change. */
  readonly length: Micros;
  readonly zone: TimeZone;
  startOf(ts: Micros): Micros;
  /** The end of the bar that begins at `start`. */
  endOf(start: Micros): Micros;
}

/** Parses a bar length such as `30s`, `10m`, `1h`, `1d` or `1w`. Throws a Failure for anything else. */
export function createBarGrid(every: string, zone: TimeZone = utcZone): BarGrid {
  const seconds = every.startsWith("0") ? undefined : parseDuration(every);
  const length = (seconds ?? Number.NaN) * MICROS_PER_SECOND;
  if (!(length <= MAX_LENGTH_MICROS)) throw lengthFailure(`a bar cannot be ${every} long`);
  const isDays = /[dw]$/.test(every);
  const origin = every.endsWith("w") ? FIRST_MONDAY : 0;
  // The offset of every zone is a multiple of these blocks.
  const isFixed = zone === utcZone || OFFSET_BLOCK_MICROS % length === 0;
  const hasParts = !isDays && length <= MICROS_PER_DAY;
  const grid = isFixed || !(isDays || hasParts) ? fixedGrid : isDays ? dayGrid : partGrid;
  return { length, zone, ...grid(length, origin, zone) };
}

export function lengthFailure(message: string): Failure {
  return usageFailure(message, "give a length such as 30s, 10m, 1h, 1d or 1w");
}

type GridFunctions = Pick<BarGrid, "startOf" | "endOf">;

function fixedGrid(length: Micros, originDay: number): GridFunctions {
  const origin = originDay * MICROS_PER_DAY;
  return {
    startOf: (ts) => Math.floor((ts - origin) / length) * length + origin,
    endOf: (start) => start + length,
  };
}

function dayGrid(length: Micros, originDay: number, zone: TimeZone): GridFunctions {
  const days = length / MICROS_PER_DAY;
  const firstDay = (ts: Micros) => Math.floor((zone.dayOf(ts) - originDay) / days) * days + originDay;
  return {
    startOf: (ts) => zone.startOfDay(firstDay(ts)),
    endOf: (start) => zone.startOfDay(firstDay(start) + days),
  };
}

/** Parts of days. */
function partGrid(length: Micros, _origin: number, zone: TimeZone): GridFunctions {
  const startOf = (ts: Micros) => {
    const midnight = zone.startOfDay(zone.dayOf(ts));
    return midnight + Math.floor((ts - midnight) / length) * length;
  };
  const endOf = (start: Micros) => Math.min(start + length, zone.startOfDay(zone.dayOf(start) + 1));
  return { startOf, endOf };
}

/** The bars that begin in [from, to), as one range. */
export function alignToBars(grid: BarGrid, { from, to }: TimeRange): TimeRange {
  const first = grid.startOf(from);
  const start = first < from ? grid.endOf(first) : first;
  if (start >= to) return { from: start, to: start };
  return { from: start, to: grid.endOf(grid.startOf(to - 1)) };
}

/** Whether every bar of the range begins and ends at a multiple of `unit`. The range consists of whole bars. */
export function isAlignedTo(grid: BarGrid, unit: Micros, { from, to }: TimeRange): boolean {
  if (grid.zone === utcZone || grid.length % unit !== 0) return grid.length % unit === 0;
  for (let start = from; start < to; start = grid.endOf(start)) if (start % unit !== 0) return false;
  return to % unit === 0;
}
