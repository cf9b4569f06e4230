import { describe, expect, it } from "vitest";
import { alignToBars, createBarGrid } from "../../../src/library/reading/bar-grid.ts";
import { findTimeZone } from "../../../src/library/reading/time-zone.ts";
import { MICROS_PER_DAY, parseUserTime } from "../../../src/model/time.ts";

const HOUR = MICROS_PER_DAY / 24;
const at = (text: string) => parseUserTime(text, 0) ?? Number.NaN;

/** The starts of the bars that begin in a range, as text in the zone of the bars, to the minute. */
function startsOf(every: string, from: string, to: string, tz = "UTC"): string[] {
  const grid = createBarGrid(every, findTimeZone(tz));
  const range = alignToBars(grid, { from: at(from), to: at(to) });
  const starts: string[] = [];
  for (let start = range.from; start < range.to; start = grid.endOf(start))
    starts.push(grid.zone.format(start).replace(":00.000000", ""));
  return starts;
}

describe("bars shorter than a day", () => {
  it("begin at multiples of their length since 1970, in a zone at multiples since midnight", () => {
    const tens = startsOf("10m", "2026-03-01 00:05", "2026-03-01 00:21");
    expect(tens).toEqual(["2026-03-01T00:10Z", "2026-03-01T00:20Z"]);
    const seven = createBarGrid("7m").startOf(at("2026-03-01 12:00"));
    expect(seven % (7 * 60_000_000)).toBe(0);
    const fours = startsOf("4h", "2026-03-29", "2026-03-29 06:00", "Europe/Berlin");
    expect(fours).toEqual(["2026-03-29T05:00+02:00"]);
  });
});

describe("bars of days", () => {
  it("begin at the local midnight, across a change of the clocks", () => {
    const days = startsOf("1d", "2026-03-28 12:00", "2026-03-31", "Europe/Berlin");
    expect(days).toEqual(["2026-03-29T00:00+01:00", "2026-03-30T00:00+02:00", "2026-03-31T00:00+02:00"]);
    const grid = createBarGrid("1d", findTimeZone("Europe/Berlin"));
    const hours = (day: string) => {
      const start = grid.startOf(at(`${day} 12:00`));
      return (grid.endOf(start) - start) / HOUR;
    };
    expect([hours("2026-03-29"), hours("2026-03-30"), hours("2026-10-25")]).toEqual([23, 24, 25]);
  });

  it("begin at the first moment of a day whose midnight the clocks skip", () => {
    const days = startsOf("1d", "2026-04-23", "2026-04-25", "Africa/Cairo");
    expect(days).toEqual(["2026-04-24T01:00+03:00", "2026-04-25T00:00+03:00"]);
  });

  it("of weeks begin on Monday", () => {
    const weeks = startsOf("1w", "2026-03-01", "2026-03-10");
    expect(weeks).toEqual(["2026-03-02T00:00Z", "2026-03-09T00:00Z"]);
    const inNewYork = startsOf("1w", "2026-03-01", "2026-03-09 06:00", "America/New_York");
    expect(inNewYork).toEqual(["2026-03-02T00:00-05:00", "2026-03-09T00:00-04:00"]);
  });
});

describe("a bar length", () => {
  it.each(["0m", "7x", "", "1.5h", "-1h", "9999w", "m"])("cannot be %j", (every) => {
    expect(() => createBarGrid(every)).toThrow(/a bar cannot be .* long/);
  });
});
