import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dayOf, formatInstant, parseDayOrInstant, parseInstant, startOfDay } from "../../src/model/time.ts";

describe("parseInstant", () => {
  it.each([
    ["2026-03-01T12:00:00Z", 1772366400000000],
    ["2026-03-01T12:00:00.5Z", 1772366400500000],
    ["2026-03-01T12:00:00.123Z", 1772366400123000],
    ["2026-03-01T12:00:00.123456Z", 1772366400123456],
    ["2026-03-01t12:00:00z", 1772366400000000],
    ["1970-01-01T00:00:00Z", 0],
    ["1969-12-31T23:59:59.999999Z", -1],
    ["2024-02-29T00:00:00Z", 1709164800000000],
  ])("reads %s", (text, micros) => {
    expect(parseInstant(text)).toBe(micros);
  });

  it("cuts what is finer than a microsecond", () => {
    expect(parseInstant("2026-03-01T12:00:00.123456999Z")).toBe(1772366400123456);
  });

  it("puts a leap second at the last microsecond of its minute", () => {
    expect(parseInstant("2016-12-31T23:59:60Z")).toBe(parseInstant("2016-12-31T23:59:59.999999Z"));
  });

  it("reads 24:00:00 as the next midnight", () => {
    expect(parseInstant("2026-02-28T24:00:00Z")).toBe(parseInstant("2026-03-01T00:00:00Z"));
  });

  it.each([
    "2026-03-01T12:00:00",
    "2026-03-01T12:00:00.123",
    "2026-03-01T12:00:00+02:00",
    "2026-03-01T12:00:00+00:00",
    "2026-03-01T12:00:00-00:00",
    "2026-03-01",
    "1772366400000",
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-03-01T24:00:01Z",
    "2026-03-01T12:60:00Z",
    "2026-03-01T12:00:61Z",
    "2026-03-01T12:00:00.Z",
    "2026-03-01T12:00:00Z ",
    "2026-03-01 12:00:00Z",
    "",
    "null",
  ])("refuses %j", (text) => {
    expect(parseInstant(text)).toBeUndefined();
  });

  it("agrees with the platform on every millisecond and undoes formatInstant on every microsecond", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e15, max: 4e15 }), (micros) => {
        expect(parseInstant(formatInstant(micros))).toBe(micros);
        expect(formatInstant(micros)).toHaveLength(27);
        const ms = Math.floor(micros / 1000);
        expect(parseInstant(new Date(ms).toISOString())).toBe(ms * 1000);
      }),
    );
  });

  it("never throws and never yields NaN, whatever the text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9TZ:.+-]{15,30}$/)), (text) => {
        const micros = parseInstant(text);
        expect(micros === undefined || Number.isSafeInteger(micros)).toBe(true);
      }),
    );
  });
});

describe("days", () => {
  it("names the UTC day and its start", () => {
    const noon = parseInstant("2026-03-01T12:00:00Z") ?? Number.NaN;
    expect(dayOf(noon)).toBe("2026-03-01");
    expect(startOfDay(noon)).toBe(parseInstant("2026-03-01T00:00:00Z"));
    expect(parseDayOrInstant("2026-03-01")).toBe(startOfDay(noon));
    expect(parseDayOrInstant("2026-03-01T12:00:00Z")).toBe(noon);
    expect(parseDayOrInstant("yesterday")).toBeUndefined();
  });
});
