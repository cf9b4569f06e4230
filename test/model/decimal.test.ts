import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDecimal, realFromDigits, toPlainNotation } from "../../src/model/decimal.ts";

describe("parseDecimal", () => {
  it.each([
    ["67012.5", 67012.5, null],
    ["0", 0, null],
    ["-12.50", -12.5, null],
    ["1E+5", 100000, null],
    ["1e-18", 1e-18, "0.000000000000000001"],
    ["123456789012345", 123456789012345, null],
    ["1234567890123456", 1234567890123456, "1234567890123456"],
    ["123456789012345678901234567890", 1.2345678901234568e29, "123456789012345678901234567890"],
    ["1.50000000000000000000", 1.5, null],
    [".5", 0.5, null],
    ["0e5", 0, null],
    // The limits of what a double and its scale restore, as plain text and with an exponent.
    ["0.0000001", 1e-7, null],
    ["0.00000009", 9e-8, "0.00000009"],
    ["999999999999999", 999999999999999, null],
    ["1e14", 1e14, null],
    ["1e15", 1e15, "1000000000000000"],
    ["1.23456789012345e0", 1.23456789012345, null],
    ["1.234567890123456e0", 1.234567890123456, "1.234567890123456"],
  ])("parses %s", (text, real, exact) => {
    expect(parseDecimal(text)).toEqual({ real, exact });
  });

  it.each(["", "NaN", "Infinity", "0x10", "1,234", "1 2", ".", "-", "1.2.3", "e5", "1e99999", "١"])(
    "rejects %j",
    (text) => {
      expect(parseDecimal(text)).toBeUndefined();
    },
  );

  it("reads texts of at most 400 characters", () => {
    expect(parseDecimal("1".padStart(400, "0"))).toEqual({ real: 1, exact: null });
    expect(parseDecimal("1".padStart(401, "0"))).toBeUndefined();
  });

  it("rejects a huge exponent without expanding it", () => {
    expect(parseDecimal("1e-400")?.exact).toBe(`0.${"1".padStart(400, "0")}`);
    expect(parseDecimal("1e-401")).toBeUndefined();
    expect(parseDecimal("1e9999")).toBeUndefined();
    expect(parseDecimal("1e400")).toBeUndefined();
    expect(parseDecimal("9".repeat(1000))).toBeUndefined();
  });

  it("preserves the digits of every decimal, in the double or in the text", () => {
    const decimal = fc.tuple(
      fc.constantFrom("", "-"),
      fc.stringMatching(/^(0|[1-9][0-9]{0,24})$/),
      fc.stringMatching(/^[0-9]{0,20}$/),
    );
    fc.assert(
      fc.property(decimal, ([sign, whole, fraction]) => {
        const text = `${sign}${whole}${fraction === "" ? "" : `.${fraction}`}`;
        const plain = toPlainNotation(text);
        const read = parseDecimal(text);
        expect(read?.real === Number(text)).toBe(true);
        if (read?.exact !== null) expect(read?.exact).toBe(plain);
        else expect(toPlainNotation(read.real.toPrecision(15))).toBe(plain);
      }),
      { numRuns: 1000 },
    );
  });

  it("never throws for any text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.eE+-]{1,20}$/)), (text) => {
        const read = parseDecimal(text);
        expect(read === undefined || Number.isFinite(read.real)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("toPlainNotation", () => {
  it.each([
    ["007", "7"],
    ["00.50", "0.5"],
    ["-0.0", "0"],
    ["+1.5", "1.5"],
    ["12.5e1", "125"],
    ["1250e-2", "12.5"],
    ["5e-3", "0.005"],
  ])("writes %s as %s", (text, plain) => {
    expect(toPlainNotation(text)).toBe(plain);
  });
});

describe("realFromDigits", () => {
  it("equals parseDecimal of the same digits, or leaves the value to it", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 999_999_999_999_999 }), fc.nat(15), (digits, places) => {
        const text = String(digits).padStart(places + 1, "0");
        const split = text.length - places;
        const parsed = parseDecimal(`${text.slice(0, split)}.${text.slice(split)}`);
        expect(realFromDigits(digits, places)).toBe(parsed?.exact === null ? parsed.real : Number.NaN);
      }),
      { numRuns: 2000 },
    );
  });
});
