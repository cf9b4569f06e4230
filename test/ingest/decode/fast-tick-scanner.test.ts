import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DecodedPage, decodePage } from "../../../src/ingest/decode/decode-page.ts";
import { scanTickPage } from "../../../src/ingest/decode/fast-tick-scanner.ts";
import { Failure } from "../../../src/model/failure.ts";
import type { IndexTick } from "../../../src/model/records.ts";
import { toTicks } from "../../../src/model/tick-columns.ts";

const tick = {
  ...{ id: "0e0b0700-62bb-83ef-93a5-dddb6236957d", indexId: "02155ca9-895a-4a18-a930-ddf777d7ccb1" },
  ...{ indexType: "GWA", price: "80238.5119", volume: "478956.097", timestamp: "2026-11-14T00:00:00.000Z" },
};
const pageOf = (...content: object[]) => Buffer.from(JSON.stringify({ content, nextId: "r9" }));

type DecodeResult = DecodedPage<IndexTick> | { failed: string };

function decodeOrFail(read: () => DecodedPage<IndexTick>): DecodeResult {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { failed: `${error.code} ${error.message}` };
  }
}

/** Decodes the page both ways and compares; returns whether the scanner decoded it. */
function expectSame(bytes: Uint8Array): boolean {
  const decoded = decodeOrFail(() => decodePage("index_ticks", bytes));
  const scanned = scanTickPage(bytes);
  if (scanned !== undefined) {
    const records = toTicks(scanned.columns);
    const nothing = { rejects: [], ahead: 0, unknownFields: [] };
    expect({ ...nothing, records, nextId: scanned.nextId, rawCount: records.length }).toStrictEqual(decoded);
  }
  return scanned !== undefined;
}

const digits = (min: number, max: number) => fc.stringMatching(new RegExp(`^[0-9]{${min},${max}}$`));
const decimal = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(digits(1, 9), digits(1, 6)).map(([whole, part]) => `${whole}.${part}`) },
  { weight: 2, arbitrary: digits(1, 20) },
  fc.tuple(digits(1, 12), digits(1, 20)).map(([whole, part]) => `${whole}.${part}`),
  fc.constantFrom("0", "0.0", "000.50", "0.00000009", "0.0000001", ".5", "5.", "1e3", "1.5E-9", "+2"),
  fc.constantFrom("999999999999999", "1000000000000000", "0.000000000000001", "123456789012345.6"),
);
const two = (max: number) => fc.integer({ min: 0, max }).map((value) => String(value).padStart(2, "0"));
const timestamp = fc
  .tuple(
    fc.constantFrom("2026-11-14", "2026-11-13", "2024-02-29", "2009-01-01", "2089-12-31"),
    two(23),
    two(59),
    two(59),
    fc.oneof(
      fc.constant(""),
      fc.constant(".000"),
      digits(1, 9).map((places) => `.${places}`),
    ),
  )
  .map(([day, hour, minute, second, fraction]) => `${day}T${hour}:${minute}:${second}${fraction}Z`);
const id = fc.oneof(fc.uuid(), fc.stringMatching(/^[ !#-[\]-~]{0,50}$/));

/** Records of one index that have the same properties in the same order. */
const usualContent = fc
  .record({
    indexId: fc.stringMatching(/^[a-z0-9-]{1,40}$/),
    indexType: fc.constantFrom("GWA", "MWA", "LX"),
    names: fc.constantFrom(
      ["id", "indexId", "indexType", "price", "volume", "timestamp"],
      ["id", "indexId", "indexType", "price", "volume", "tickVolume", "timestamp"],
      ["timestamp", "price", "volume", "indexType", "indexId", "id"],
      ["indexType", "timestamp", "price", "indexId"],
    ),
    rows: fc.array(fc.record({ id, price: decimal, volume: decimal, tickVolume: decimal, timestamp }), {
      minLength: 1,
      maxLength: 5,
    }),
  })
  .map(({ indexId, indexType, names, rows }) =>
    rows.map((row) => {
      const properties: Record<string, string> = { ...row, indexId, indexType };
      return names.map((name): [string, unknown] => [name, properties[name]]);
    }),
  );

type Content = [name: string, value: unknown][][];

/** Renames, changes, repeats or removes one property of one record. */
const oddity = fc.record({
  record: fc.nat(),
  property: fc.nat(),
  name: fc.constantFrom(undefined, "id", "price", "name", "event", "odd", "__proto__"),
  value: fc.oneof(
    fc.constantFrom<unknown>(1.5, -1, null, true, {}, ["x"], "", "-1", "-0", "NaN", 'a"b', "a\\b", "é"),
    fc.constantFrom<unknown>("2016-12-31T23:59:60Z", "2026-11-14T24:00:00Z", "2026-02-29T00:00:00Z"),
    fc.constantFrom<unknown>("1970-01-01T00:00:00Z", "2090-01-01T00:00:00Z", "2026-11-14t00:00:00z"),
    fc.constantFrom<unknown>("2026-11-14T00:00:00.Z", "2026-11-14T00:00:00+00:00", "ZZZ"),
  ),
  how: fc.constantFrom("replace", "insert", "remove"),
});

type Oddity = typeof oddity extends fc.Arbitrary<infer O> ? O : never;

function withOddity(content: Content, { record, property, name, value, how }: Oddity): Content {
  const at = record % content.length;
  return content.map((properties, index) => {
    if (index !== at) return properties;
    const place = property % properties.length;
    const [usual = "id"] = properties[place] ?? [];
    const odd: [string, unknown] = [name ?? usual, value];
    return properties.toSpliced(place, how === "insert" ? 0 : 1, ...(how === "remove" ? [] : [odd]));
  });
}

const envelope = fc.constantFrom(
  ...['{"content":#,"nextId":"r9"}', '{"nextId":"r9","content":#}', '{"content":#}'],
  ...['{"content":#,"nextId":null}', '{"content":#,"nextId":""}', '{"content":#,"nextId":"r9"}\n'],
);
const oddEnvelope = fc.constantFrom(
  ...['{"nextId":"a","content":#,"nextId":"b"}', '{"content":[],"content":#}', '{"content":#,"content":[]}'],
  ...['{"content":#,"nextId":7}', '{"content":#,"nextId":"é"}', '{"content":#,"nextId":"\\u0041"}'],
  '{"more":1,"content":#}',
  ...[' {"content":#}', '{"content":#', "#", '{"content":#}}', '{"content":#,}', '\uFEFF{"content":#}'],
);

function formatPage(content: Content, form: string): string {
  const records = content.map(
    (properties) =>
      `{${properties.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(",")}}`,
  );
  return form.replace("#", () => `[${records.join(",")}]`);
}

const usualPage = fc.tuple(usualContent, envelope).map(([content, form]) => formatPage(content, form));
const oddPage = fc
  .tuple(usualContent, fc.array(oddity, { maxLength: 2 }), fc.oneof(envelope, oddEnvelope))
  .map(([content, oddities, form]) => formatPage(oddities.reduce<Content>(withOddity, content), form));

const damage = fc.record({
  how: fc.constantFrom("flip", "set", "insert", "delete", "truncate", "repeat"),
  at: fc.noBias(fc.nat()),
  length: fc.integer({ min: 1, max: 12 }),
  byte: fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(...Buffer.from('"\\,:{}[]. -09eZT\n\u00e9')),
  ),
});

type Damage = typeof damage extends fc.Arbitrary<infer H> ? H : never;

function applyDamage(bytes: Buffer, { how, at, length, byte }: Damage): Buffer {
  const place = bytes.length === 0 ? 0 : at % bytes.length;
  const before = bytes.subarray(0, place);
  const after = bytes.subarray(place);
  if (how === "truncate") return before;
  if (how === "insert") return Buffer.concat([before, Buffer.from([byte]), after]);
  if (how === "delete") return Buffer.concat([before, after.subarray(length)]);
  if (how === "repeat") return Buffer.concat([before, after.subarray(0, length), after]);
  const value = how === "set" ? byte : (after[0] ?? 0) ^ (1 << (byte & 7));
  return Buffer.concat([before, Buffer.from([value]), after.subarray(1)]);
}

describe("the scanner", () => {
  it("decodes pages as the service writes them", () => {
    const more = { id: "r2", price: "1234567890.123456789", timestamp: "2026-11-13T23:59:30Z" };
    const page = pageOf(tick, { ...tick, ...more });
    const scanned = scanTickPage(page);
    expect(scanned && toTicks(scanned.columns).map(({ price }) => price)).toEqual([
      { real: 80238.5119, exact: null },
      { real: 1234567890.1234567, exact: "1234567890.123456789" },
    ]);
    expect(scanned?.nextId).toBe("r9");
    expect(expectSame(page)).toBe(true);
  });

  it("decodes any usual page like the decoder", () => {
    let read = 0;
    fc.assert(
      fc.property(usualPage, (text) => {
        if (expectSame(Buffer.from(text))) read++;
      }),
      { numRuns: 400 },
    );
    expect(read).toBeGreaterThan(320);
  });

  it("decodes unusual pages like the decoder, or not at all", () => {
    fc.assert(
      fc.property(oddPage, (text) => void expectSame(Buffer.from(text))),
      { numRuns: 800 },
    );
  });

  it("decodes pages with broken bytes like the decoder, or not at all", () => {
    fc.assert(
      fc.property(usualPage, fc.array(damage, { minLength: 1, maxLength: 3 }), (text, damages) => {
        expectSame(damages.reduce(applyDamage, Buffer.from(text)));
      }),
      { numRuns: 1500 },
    );
  });

  it("does not decode a page that is cut at any position", () => {
    const whole = pageOf(tick, { ...tick, id: "r2" });
    for (let length = 0; length < whole.length; length++)
      expect(scanTickPage(whole.subarray(0, length))).toBeUndefined();
  });

  it("decodes bytes at any offset of their buffer", () => {
    const page = pageOf(tick, tick);
    for (let offset = 0; offset < 9; offset++) {
      const memory = new Uint8Array(page.length + offset + 20).fill(0x22);
      memory.set(page, offset);
      expect(expectSame(memory.subarray(offset, offset + page.length))).toBe(true);
    }
  });

  it.each([
    ["an unknown property", { ...tick, extra: "1" }],
    ["a name", { ...tick, name: "Bitcoin" }],
    ["a number instead of a string", { ...tick, price: 1.5 }],
    ["a negative decimal", { ...tick, volume: "-1" }],
    ["another index", { ...tick, indexId: "other" }],
    ["an escape in an id", { ...tick, id: 'a"b' }],
    ["non-ASCII letters in an id", { ...tick, id: "é" }],
    ["another order", Object.fromEntries(Object.entries(tick).reverse())],
    ["an implausible timestamp", { ...tick, timestamp: "1970-01-01T00:00:00Z" }],
    ["an invalid minute", { ...tick, timestamp: "2026-11-14T00:60:00Z" }],
    ["a leap second", { ...tick, timestamp: "2016-12-31T23:59:60Z" }],
  ])("leaves a page to the decoder if one record has %s", (_, odd) => {
    expect(scanTickPage(pageOf(tick, odd))).toBeUndefined();
    expect(scanTickPage(pageOf(tick, tick))).toBeDefined();
  });

  it.each([
    ["a property twice", '"price":"1",'],
    ["an id twice", '"id":"r1","id":"r2",'],
    ["an escape that does not exist", '"id":"r1\\q",'],
    ["whitespace", '"id": "r1",'],
    ["a control character in a text", '"id":"r\t",'],
  ])("leaves a page to the decoder if every record has %s", (_, odd) => {
    const { id: _id, ...rest } = tick;
    const text = pageOf(rest, rest).toString().replaceAll('{"indexId', `{${odd}"indexId`);
    expect(scanTickPage(Buffer.from(text))).toBeUndefined();
  });

  it.each(["\\q", "abcdefgh\\qijklmnop", "abcdefgh\tijklmnop", "abcdefgh\u0001ijk"])(
    "leaves a page to the decoder if a later id is %j",
    (id) => {
      const text = pageOf(tick, { ...tick, id: "#" }).toString();
      expect(scanTickPage(Buffer.from(text.replace("#", id)))).toBeUndefined();
    },
  );
});
