import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { plainNotation, readDecimal } from "../../src/model/decimal.ts";

describe("readDecimal", () => {
  it.each([
    ["67012.5", 67012.5, null],
    ["0", 0, null],
    ["0.000", 0, null],
    ["-12.50", -12.5, null],
    ["1E+5", 100000, null],
    ["1e-18", 1e-18, "0.000000000000000001"],
    ["0.00000001", 1e-8, "0.00000001"],
    ["123456789012345", 123456789012345, null],
    ["1234567890123456", 1234567890123456, "1234567890123456"],
    ["0.1234567890123456", 0.1234567890123456, "0.1234567890123456"],
    ["123456789012345678901234567890", 1.2345678901234568e29, "123456789012345678901234567890"],
    ["1.50000000000000000000", 1.5, null],
    ["1000000000000000000", 1e18, "1000000000000000000"],
  ])("reads %s", (text, real, exact) => {
    expect(readDecimal(text)).toEqual({ real, exact });
  });

  it.each([
    "",
    " ",
    "NaN",
    "Infinity",
    "-Infinity",
    "0x10",
    "1,234",
    "1 2",
    "--1",
    ".",
    "e5",
    "1e",
    "1e99999",
    "null",
    "١",
  ])("refuses %j", (text) => {
    expect(readDecimal(text)).toBeUndefined();
  });

  it("refuses an exponent bomb without expanding it", () => {
    expect(readDecimal("1e9999")).toBeUndefined();
    expect(readDecimal("1e400")).toBeUndefined();
    expect(readDecimal("9".repeat(1000))).toBeUndefined();
  });

  it("keeps the digits of every decimal, in the double or beside it", () => {
    const decimal = fc.tuple(
      fc.constantFrom("", "-"),
      fc.stringMatching(/^(0|[1-9][0-9]{0,24})$/),
      fc.stringMatching(/^[0-9]{0,20}$/),
    );
    fc.assert(
      fc.property(decimal, ([sign, whole, fraction]) => {
        const text = `${sign}${whole}${fraction === "" ? "" : `.${fraction}`}`;
        const plain = plainNotation(text);
        const read = readDecimal(text);
        expect(read?.real).toBeCloseTo(Number(text), 5);
        if (read?.exact !== null) expect(read?.exact).toBe(plain);
        else expect(plainNotation(read.real.toPrecision(15))).toBe(plain);
      }),
      { numRuns: 5000 },
    );
  });

  it("never throws, whatever the text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.eE+-]{1,20}$/)), (text) => {
        const read = readDecimal(text);
        expect(read === undefined || Number.isFinite(read.real)).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });
});
