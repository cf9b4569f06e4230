import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDecimal, toPlainNotation } from "../../../src/model/decimal.ts";
import { marketCapColumns } from "../../../src/model/stream-columns.ts";
import { formatShort, parseTimestamp } from "../../../src/model/time.ts";
import { RecordWriter } from "../../../src/serve/records/record-text.ts";
import { formatExact } from "../../../src/warehouse/tables/row-tables.ts";

describe("the text of a record", () => {
  it("has exactly the digits that were stored", () => {
    const digits = fc.tuple(fc.bigInt(0n, 10n ** 18n), fc.integer({ min: 0, max: 20 }), fc.boolean());
    fc.assert(
      fc.property(digits, ([value, places, isNegative]) => {
        const text = `${isNegative ? "-" : ""}${value}e-${places}`;
        const decimal = parseDecimal(text);
        expect(decimal && formatExact(decimal.real, decimal.exact ?? undefined)).toBe(toPlainNotation(text));
      }),
      { numRuns: 2000 },
    );
    for (const text of [
      "0",
      "0.0001",
      "9999999.99999999",
      "10000000",
      "99999999999.9999",
      "0.0000001",
      "123456789012345",
    ])
      expect(formatExact(Number(text))).toBe(text);
  });

  it("has the timestamp with three or six digits of the second", () => {
    for (const text of [
      "2026-03-01T12:00:00.000Z",
      "2026-12-31T23:59:59.999Z",
      "2026-03-01T01:02:03.000004Z",
    ])
      expect(formatShort(parseTimestamp(text) ?? 0)).toBe(text);
  });

  it("has each percent change once, as the service sent it: with null, and with properties that have no column", () => {
    const writer = new RecordWriter(marketCapColumns);
    const row = { change_24h: 1.5, price_change_24h: 2 };
    const extra = '{"pricePercentChange":{"change1h":"9","change24h":"2"}}';
    expect(writer.nestedProperties(row, { extra })).toBe(
      ',"marketCapPercentChange":{"change24h":"1.5","change7d":null,"change30d":null}',
    );
  });
});
