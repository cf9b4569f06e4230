import { describe, expect, it } from "vitest";
import { toCellText, toCsvLine, toJsonKey, toJsonObject } from "../../src/model/row-text.ts";

describe("a line of CSV", () => {
  it("quotes what would end a cell, and doubles quotes", () => {
    expect(toCsvLine(["BTC", 'the "big" one', "a,b", "two\r\nlines", "one\nbreak", "one\rreturn"])).toBe(
      'BTC,"the ""big"" one","a,b","two\r\nlines","one\nbreak","one\rreturn"\r\n',
    );
  });

  it("leaves missing values empty, and prints bytes in hexadecimal and integers with all their digits", () => {
    expect(toCsvLine([null, undefined, Buffer.from([1, 255]), 9007199254740993n, 0.5])).toBe(
      ",,01ff,9007199254740993,0.5\r\n",
    );
    expect(toCellText(0)).toBe("0");
  });
});

describe("a row as JSON", () => {
  const toJson = (row: Record<string, unknown>) =>
    toJsonObject(Object.keys(row).map(toJsonKey), Object.values(row));

  it("equals JSON.stringify on the object", () => {
    const texts = [
      "",
      "plain",
      "ä€😀",
      'a "quote"',
      "back\\slash",
      "line\nbreak",
      "\u0000",
      "\ud800 half",
      "\udfff",
    ];
    for (const text of texts)
      expect(toJson({ text, "a key": text })).toBe(JSON.stringify({ text, "a key": text }));
    for (const row of [{}, { a: null }, { a: 1.5, b: -0.25 }, { a: true, b: [1, "x"] }, { a: Number.NaN }])
      expect(toJson(row)).toBe(JSON.stringify(row));
  });

  it("prints what JSON has no type for: all digits of an integer, bytes in hexadecimal, null for what is missing", () => {
    expect(
      toJson({ big: 9007199254740993n, bytes: Buffer.from([1, 255]), none: undefined, odd: () => 1 }),
    ).toBe('{"big":9007199254740993,"bytes":"01ff","none":null,"odd":null}');
    expect(toJson({ infinite: Number.POSITIVE_INFINITY })).toBe('{"infinite":null}');
  });
});
