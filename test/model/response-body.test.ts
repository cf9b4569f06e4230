import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { decodeBody, MAX_BODY_BYTES } from "../../src/model/response-body.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const gzipped = (content: Uint8Array | string) => new Uint8Array(gzipSync(content));
const decode = (body: Uint8Array<ArrayBuffer>, maxBytes?: number) =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(decodeBody({ bytes: body }, maxBytes));
const failWith = (reason: string) =>
  expect.objectContaining({ code: "malformed_body", message: expect.stringContaining(reason) as string });

describe("decodeBody", () => {
  it("returns plain bytes as they are", () => {
    expect(decode(bytes('{"content":[]}'))).toBe('{"content":[]}');
    expect(decode(bytes(""))).toBe("");
  });

  it("detects gzip by both of its magic bytes", () => {
    expect(decode(gzipped('{"content":[]}'))).toBe('{"content":[]}');
    expect(decode(new Uint8Array([0x1f, 0x41]))).toBe("\u001fA");
    expect(decodeBody({ bytes: new Uint8Array([0x41, 0x8b]) })).toEqual(new Uint8Array([0x41, 0x8b]));
  });

  it("strips a byte order mark, and nothing that only begins like one", () => {
    const mark = [0xef, 0xbb, 0xbf];
    expect(decode(new Uint8Array([...mark, 0x7b]))).toBe("{");
    expect(decode(gzipped(new Uint8Array([...mark, 0x7b])))).toBe("{");
    for (const start of ["efbbbe", "efbabf", "eebbbf"])
      expect(decodeBody({ bytes: new Uint8Array(Buffer.from(start, "hex")) })).toHaveLength(3);
  });

  it("never returns a part of a page", () => {
    const whole = gzipped("z".repeat(1000));
    for (const length of [2, 3, 4, 5, whole.length - 9, whole.length - 1])
      expect(() => decode(whole.slice(0, length))).toThrow(failWith("broken or truncated gzip"));
    expect(() => decode(new Uint8Array([0x1f, 0x8b, 1, 2, 3, 4]))).toThrow(failWith("gzip"));
  });

  it("refuses more than the limit, plain or once decompressed", () => {
    expect(decode(bytes("12345"), 5)).toBe("12345");
    expect(() => decode(bytes("123456"), 5)).toThrow(failWith("larger than the limit)"));
    expect(decode(gzipped("12345"), 5)).toBe("12345");
    expect(() => decode(gzipped("123456"), 5)).toThrow(failWith("larger than the limit once decompressed"));
  });

  it("allows 64 MiB by default", () => {
    expect(MAX_BODY_BYTES).toBe(67_108_864);
    expect(decodeBody({ bytes: new Uint8Array(MAX_BODY_BYTES) })).toHaveLength(MAX_BODY_BYTES);
    expect(() => decodeBody({ bytes: new Uint8Array(MAX_BODY_BYTES + 1) })).toThrow(failWith("the limit"));
  });
});
