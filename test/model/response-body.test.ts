import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  decodeBody,
  MAX_BODY_BYTES,
  malformedBodyFailure,
  noListFailure,
  nullListFailure,
} from "../../src/model/response-body.ts";

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

  it.each([0, 1, 60, 1000, 16 * 1024, 100_000, 3 * 1024 * 1024])("decompresses %i bytes", (length) => {
    expect(decode(gzipped("x".repeat(length)))).toHaveLength(length);
  });

  it("decompresses whatever length the trailer states", () => {
    // The second member of two has its own trailer, which says nothing about the first.
    const twoMembers = Buffer.concat([gzipSync("a".repeat(50_000)), gzipSync("")]);
    expect(decode(new Uint8Array(twoMembers))).toHaveLength(50_000);
  });

  it("reads the trailer at the end of its own bytes, not of the buffer around them", () => {
    const gzip = gzipped("y".repeat(40_000));
    const around = new Uint8Array(gzip.length + 20).fill(0xff);
    around.set(gzip, 10);
    expect(decode(around.subarray(10, 10 + gzip.length))).toHaveLength(40_000);
  });

  it("strips a byte order mark, and nothing that only begins like one", () => {
    const mark = [0xef, 0xbb, 0xbf];
    expect(decode(new Uint8Array([...mark, 0x7b]))).toBe("{");
    expect(decode(gzipped(new Uint8Array([...mark, 0x7b])))).toBe("{");
    for (const start of [
      [0xef, 0xbb, 0xbe],
      [0xef, 0xba, 0xbf],
      [0xee, 0xbb, 0xbf],
    ])
      expect(decodeBody({ bytes: new Uint8Array(start) })).toHaveLength(3);
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

describe("an unreadable body", () => {
  it("is retried, and its failure quotes nothing of the body", () => {
    expect(malformedBodyFailure("not JSON")).toMatchObject({
      family: "retry",
      code: "malformed_body",
      message: "the service's response cannot be read (not JSON)",
      cause: undefined,
    });
  });
});

it("a response without a list is another failure than one that cannot be read", () => {
  expect(noListFailure("an object")).toMatchObject({
    code: "no_list",
    message: expect.stringContaining("an object"),
  });
  expect(nullListFailure()).toMatchObject({ code: "null_list" });
  expect(malformedBodyFailure("x").code).toBe("malformed_body");
});
