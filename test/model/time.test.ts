import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  formatDay,
  formatTimestamp,
  parseDateOrTimestamp,
  parseServiceTimestamp,
  parseTimestamp,
  startOfDay,
} from "../../src/model/time.ts";

describe("parseTimestamp", () => {
  it.each([
    ["2026-03-01T12:00:00Z", 1772366400000000],
    ["2026-03-01T12:00:00.5Z", 1772366400500000],
    ["2026-03-01T12:00:00.123Z", 1772366400123000],
    ["2026-03-01T12:00:00.123456Z", 1772366400123456],
    ["2026-03-01t12:00:00z", 1772366400000000],
    ["2026-03-01T12:00:00+00:00", 1772366400000000],
    ["2026-03-01T12:00:00+0000", 1772366400000000],
    ["2026-03-01T12:00:00+00", 1772366400000000],
    ["2026-03-01T12:00:00.5-00:00", 1772366400500000],
    ["1970-01-01T00:00:00Z", 0],
    ["1969-12-31T23:59:59.999999Z", -1],
    ["2024-02-29T00:00:00Z", 1709164800000000],
    ["2000-02-29T00:00:00Z", 951782400000000],
    ["2016-12-31T23:59:59.000001Z", 1483228799000001],
    // Digits beyond microseconds, a leap second, and the next midnight.
    ["2026-03-01T12:00:00.123456999Z", 1772366400123456],
    ["2016-12-31T23:59:60Z", 1483228799999999],
    ["2026-02-28T24:00:00Z", 1772323200000000],
  ])("parses %s", (text, micros) => {
    expect(parseTimestamp(text)).toBe(micros);
  });

  it.each([
    ...["2026-03-01T12:00:00", "2026-03-01T12:00:00+02:00", "2026-03-01T12:00:00+00:00Z", "2026-03-01"],
    ...["1772366400000", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-03-01T24:00:01Z"],
    ...["2026-03-01T25:00:00Z", "2100-02-29T00:00:00Z", "2026/03-01T12:00:00Z"],
    // Characters next to the digits in ASCII.
    ...["2026-03-0:T12:00:00Z", "2026-03-01T12:00:00X", "2016-12-31T23:58:60Z", "2026-03-01T12:60:00Z"],
    ...["2026-03-01T12:00:61Z", "2026-03-01T12:00:00.Z", "2026-03-01T12:00:00Z ", "2026-03-01 12:00:00Z"],
    // Zones that are none, or not UTC.
    ...["+01:00", "+00:0", "x+00:00", "+00:00x", "+000"].map((zone) => `2026-03-01T00:00:00${zone}`),
    "",
  ])("rejects %j", (text) => {
    expect(parseTimestamp(text)).toBeUndefined();
  });

  it("agrees with the platform on every millisecond and round-trips formatTimestamp on every microsecond", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e15, max: 4e15 }), (micros) => {
        expect(parseTimestamp(formatTimestamp(micros))).toBe(micros);
        expect(formatTimestamp(micros)).toHaveLength(27);
        const ms = Math.floor(micros / 1000);
        expect(parseTimestamp(new Date(ms).toISOString())).toBe(ms * 1000);
      }),
    );
  });

  it("never throws and never returns NaN for any text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9TZ:.+-]{15,30}$/)), (text) => {
        const micros = parseTimestamp(text);
        expect(micros === undefined || Number.isSafeInteger(micros)).toBe(true);
      }),
    );
  });
});

describe("days", () => {
  it("returns the UTC day and its start", () => {
    const noon = parseTimestamp("2026-03-01T12:00:00Z") ?? Number.NaN;
    expect(formatDay(noon)).toBe("2026-03-01");
    expect(startOfDay(noon)).toBe(parseTimestamp("2026-03-01T00:00:00Z"));
    expect(parseDateOrTimestamp("2026-03-01")).toBe(startOfDay(noon));
  });
});

describe("a timestamp of the service", () => {
  it("is ISO 8601, or milliseconds since 1970 as a number or its digits", () => {
    const ms = Date.UTC(2026, 2, 1);
    for (const value of ["2026-03-01T00:00:00Z", ms, String(ms)])
      expect(parseServiceTimestamp(value)).toBe(ms * 1000);
    expect(parseServiceTimestamp(ms + 0.0005)).toBe(ms * 1000);
    expect(parseServiceTimestamp(1e12)).toBe(1e15);
  });

  it("is nothing else: seconds, microseconds and other types are no milliseconds", () => {
    const texts = ["1772323200", `${1e12}0`, `x${1e12}`, ` ${1e12}`, `0${1e12}`, `${1e12}.5`, "", "today"];
    for (const value of [...texts, 4e12, 1e12 - 1, 1_772_323_200, null, true, [1.7e12], Number.NaN])
      expect(parseServiceTimestamp(value)).toBeUndefined();
  });
});
