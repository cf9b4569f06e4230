import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDecimal, toPlainNotation } from "../../src/model/decimal.ts";

describe("parseDecimal", () => {
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
  ])("parses %s", (text, real, exact) => {
    expect(parseDecimal(text)).toEqual({ real, exact });
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
  ])("rejects %j", (text) => {
    expect(parseDecimal(text)).toBeUndefined();
  });

  it("rejects a huge exponent without expanding it", () => {
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
        expect(read?.real).toBeCloseTo(Number(text), 5);
        if (read?.exact !== null) expect(read?.exact).toBe(plain);
        else expect(toPlainNotation(read.real.toPrecision(15))).toBe(plain);
      }),
      { numRuns: 5000 },
    );
  });

  it("never throws for any text", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9.eE+-]{1,20}$/)), (text) => {
        const read = parseDecimal(text);
        expect(read === undefined || Number.isFinite(read.real)).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });
});
