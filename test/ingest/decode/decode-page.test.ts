import { describe, expect, it } from "vitest";
import { decodePage } from "../../../src/ingest/decode/decode-page.ts";
import { Failure } from "../../../src/model/failure.ts";
import { parseTimestamp } from "../../../src/model/time.ts";

const tick =
  '{"id":"r1","indexId":"btc","indexType":"GWA","price":"67012.5","volume":"1","timestamp":"2026-03-01T12:00:00Z"}';
const page = (...elements: string[]) => `{"content":[${elements.join(",")}],"nextId":null}`;
const withField = (field: string) => tick.replace("{", `{${field},`);

describe("a page", () => {
  it("returns its records in order, and its cursor", () => {
    const second = tick.replace("r1", "r2").replace("67012.5", "67013");
    const decoded = decodePage("index_ticks", `{"nextId":"r2","content":[${tick},${second}]}`);
    expect(decoded.records.map((record) => record.price?.real)).toEqual([67012.5, 67013]);
    expect(decoded.records[0]).toEqual({
      ...{ indexType: "GWA", indexId: "btc", ts: parseTimestamp("2026-03-01T12:00:00Z") },
      ...{ price: { real: 67012.5, exact: null }, volume: { real: 1, exact: null } },
      ...{ tickVolume: null, name: null, quality: null, extra: null },
    });
    expect(decoded).toMatchObject({ nextId: "r2", rawCount: 2, rejects: [], unknownFields: [] });
  });

  it("is decoded from bytes or text, with or without a byte order mark", () => {
    const text = page(withField('"name":"Bitcoin ₿"'));
    const expected = decodePage("index_ticks", text);
    expect(decodePage("index_ticks", Buffer.from(text))).toEqual(expected);
    expect(decodePage("index_ticks", Buffer.from(`\uFEFF${text}`))).toEqual(expected);
    expect(decodePage("index_ticks", `\uFEFF${text}`)).toEqual(expected);
  });

  it.each([
    ["empty", ""],
    ["a page of a captive portal", "<html>secret-portal</html>"],
    ["a truncated body", page(tick).slice(0, -20)],
    ["bytes cut within a character", Buffer.from('{"content":[],"a":"₿"}').subarray(0, 20)],
  ])("that is %s fails as malformed (retried), without quoting the body", (_, body) => {
    const failure = caught(() => decodePage("index_ticks", body));
    expect(failure).toMatchObject({ code: "malformed_body", family: "retry" });
    expect(`${failure?.stack} ${String(failure?.cause)}`).not.toContain("secret-portal");
  });

  it.each([
    ["a list", "[]", "no_list"],
    ["null", "null", "no_list"],
    ["an object without content", "{}", "no_list"],
    ["content that is not a list", '{"content":{"0":"secret-portal"}}', "no_list"],
    ["content that is null", '{"content":null}', "null_list"],
  ])("H8: that is %s is no page, and not the end of the data", (_, body, code) => {
    const failure = caught(() => decodePage("index_ticks", body));
    expect(failure).toMatchObject({ code, family: "retry" });
    expect(`${failure?.stack} ${String(failure?.cause)}`).not.toContain("secret-portal");
  });

  it.each([
    ["null", undefined],
    ['""', undefined],
    ['"a/b%"', "a/b%"],
    ["12345678901234567890", "12345678901234567890"],
    ["{}", "{}"],
    ["false", "false"],
  ])("whose nextId is %s has a cursor unless it is null or empty", (json, cursor) => {
    expect(decodePage("markets", `{"content":[],"nextId":${json}}`).nextId).toBe(cursor);
  });

  it("counts its own unknown properties", () => {
    const { unknownFields } = decodePage("markets", '{"content":[],"total":12.50}');
    expect(unknownFields).toEqual([{ name: "page.total", count: 1, sample: "12.50" }]);
  });
});

describe("D1: unknown properties", () => {
  it("are stored sorted, so that their order makes no difference", () => {
    const one = decodePage("index_ticks", page(withField('"b":{"y":1.10,"x":[2, "é"]},"a":true')));
    const other = decodePage("index_ticks", page(withField('"a":true ,"b":{"x":[2,"\\u00e9"],"y":1.10}')));
    expect(one.records[0]?.extra).toBe('{"a":true,"b":{"x":[2,"é"],"y":1.10}}');
    expect(other.records).toEqual(one.records);
    expect(one.unknownFields.map(({ name, count }) => [name, count])).toEqual([
      ["b", 1],
      ["a", 1],
    ]);
  });

  it("are counted once per record, with one sample", () => {
    const content = page(withField('"venue":"x"'), withField('"venue":"y"'));
    const { unknownFields } = decodePage("index_ticks", content);
    expect(unknownFields).toEqual([{ name: "venue", count: 2, sample: '"x"' }]);
  });

  it("that occur twice: the last one wins", () => {
    const twice = decodePage("index_ticks", page(withField('"price":1,"new":1.0,"new":2.0')));
    expect(twice.records[0]).toMatchObject({ price: { real: 67012.5 }, extra: '{"new":2.0}' });
    const content = `{"content":[],"content":[${withField('"n":1')}]}`;
    expect(decodePage("index_ticks", content).records[0]?.extra).toBe('{"n":1}');
  });

  it("named __proto__, constructor or toString are plain data", () => {
    const hostile =
      '"__proto__":{"polluted":true,"price":"1"},"constructor":{"prototype":{"polluted":1}},"toString":1';
    const { records } = decodePage("index_ticks", page(withField(hostile)));
    expect(records[0]?.extra).toBe(`{${hostile}}`);
    expect(records[0]?.price?.real).toBe(67012.5);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("nested a hundred thousand levels deep are stored as text", () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    const { records } = decodePage("index_ticks", page(withField(`"bomb":${deep}`), tick));
    expect(records).toHaveLength(2);
    expect(records[0]?.extra?.length).toBeGreaterThan(199_000);
    expect(() => JSON.parse(records[0]?.extra ?? "")).not.toThrow();
    expect(decodePage("index_ticks", page(deep)).rejects[0]?.reason).toBe("not an object");
  });

  it("with ten thousand names use bounded memory", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => `"n${i}":1`).join(",");
    expect(decodePage("index_ticks", page(withField(many))).unknownFields.length).toBeLessThan(600);
  });
});

describe("D2: ids", () => {
  it.each(['"01ARZ3NDEKTSV4RRFFQ69G5FAV"', '"a/b%20c?&"', '"ÄÖ₿"', '"MiXeD"', `"${"x".repeat(300)}"`])(
    "of any form are stored verbatim: %s",
    (json) => {
      const { records } = decodePage("markets", page(`{"id":${json}}`));
      expect(records[0]?.id).toBe(JSON.parse(json));
    },
  );

  it("that are numbers preserve every digit", () => {
    const { records } = decodePage("markets", page('{"id":123456789012345678901,"baseAssetId":1.0}'));
    expect(records[0]).toMatchObject({ id: "123456789012345678901", baseAssetId: "1.0" });
  });

  it.each(["{}", "[]", "true"])("that are %s are rejected", (json) => {
    const { rejects } = decodePage("markets", page(`{"id":${json}}`));
    expect(rejects).toEqual([{ reason: "id is not an id", raw: `{"id":${json}}` }]);
  });
});

describe("D5: records without a part of their key", () => {
  const without = (name: string) => tick.replace(new RegExp(`"${name}":"[^"]*",?`), "").replace(",}", "}");

  it.each(["indexId", "indexType", "timestamp"])("without %s are stored verbatim as rejects", (name) => {
    const raw = without(name).replace("{", '{ "odd" :1.50, ');
    const decoded = decodePage("index_ticks", page(tick, raw, tick));
    expect(decoded.rejects).toEqual([{ reason: `${name} is missing`, raw }]);
    expect(decoded.records).toHaveLength(2);
  });

  it("are accepted if they lack only their own id", () => {
    expect(decodePage("index_ticks", page(without("id"))).records).toHaveLength(1);
  });

  it("are rejected whatever JSON value they are", () => {
    const { rejects, rawCount } = decodePage("index_ticks", page("null", "1.50", '"x"', "[ 1 ]", "true"));
    expect(rejects.map(({ raw }) => raw)).toEqual(["null", "1.50", '"x"', "[ 1 ]", "true"]);
    expect(rawCount).toBe(5);
  });

  it("are truncated if they are very long", () => {
    const { rejects } = decodePage("index_ticks", page(`{"noise":"${"x".repeat(1_000_000)}"}`));
    expect(rejects[0]?.raw).toHaveLength(65_536 + "… (cut: 1000012 characters in all)".length);
  });
});

it("D9: a lookup of 50 MB is decoded completely", () => {
  const asset = (i: number) => `{"id":"a${i}","name":"${"n".repeat(210)}","symbol":"S","status":"ACTIVE"}`;
  const body = Buffer.from(page(Array.from({ length: 200_000 }, (_, i) => asset(i)).join(",")));
  expect(body.length).toBeGreaterThan(50_000_000);
  expect(decodePage("assets", body).records).toHaveLength(200_000);
});

it("D10: new enum values are stored as text", () => {
  const odd = '{"id":"a","status":"PAUSED","type":"STABLE"}';
  const usual = '{"id":"b","status":"ACTIVE","type":"FIAT"}';
  const { records, unknownFields } = decodePage("assets", page(odd, usual));
  expect(records[0]).toMatchObject({ status: "PAUSED", type: "STABLE", quality: null });
  expect(unknownFields.map(({ name }) => name)).toEqual(["type = STABLE", "status = PAUSED"]);
  const lx = decodePage("index_ticks", page(tick.replace("GWA", "NX")));
  expect(lx.records[0]?.indexType).toBe("NX");
  expect(lx.unknownFields).toEqual([{ name: "indexType = NX", count: 1, sample: "NX" }]);
});

function caught(act: () => unknown): Failure | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    return error instanceof Failure ? error : undefined;
  }
}
