import type { ServerResponse } from "node:http";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { decodeBody } from "../../../src/model/response-body.ts";
import { startServedClient } from "../../support/service/client-harness.ts";
import { type ReceivedRequest, sendGzip } from "../../support/service/stub-service.ts";

const asset = { endpoint: "/asset" };
const good = { content: [{ id: "é" }] };
const text = JSON.stringify(good);

type BadResponse = (response: ServerResponse, request: ReceivedRequest) => void;

/** Sends the bad response `times` times, then a good one. */
const startBadService = (bad: BadResponse, times = 1) =>
  startServedClient({
    respond: (request, response, count) =>
      count > times ? sendGzip(response, good) : bad(response, request),
  });

const respondWith =
  (body: Uint8Array | string, headers: Record<string, string> = {}, status = 200): BadResponse =>
  (response) => {
    response.writeHead(status, headers);
    response.end(body);
  };

const gzip = { "content-encoding": "gzip" };
const whole = gzipSync(text);
const badCrc = Buffer.from(whole);
badCrc.writeUInt8(badCrc.readUInt8(badCrc.length - 6) ^ 0xff, badCrc.length - 6);

describe("requests again when the body is unreadable", () => {
  const cases: [string, BadResponse][] = [
    ["B8: cut JSON, close-delimited", respondWith(text.slice(0, -3), { connection: "close" })],
    [
      "B8: cut within a UTF-8 character",
      respondWith(Buffer.from(text).subarray(0, Buffer.from(text).indexOf(0xa9))),
    ],
    [
      "B8: fewer bytes than Content-Length",
      (response) => {
        response.writeHead(200, { "content-length": "1000" });
        response.write(text, () => response.destroy());
      },
    ],
    [
      "B8: a reset in the middle",
      (response, { socket }) => {
        response.writeHead(200);
        response.write(text.slice(0, 5), () => socket.resetAndDestroy());
      },
    ],
    ["B9: truncated gzip", respondWith(whole.subarray(0, whole.length - 9), gzip)],
    ["B9: gzip without its trailer", respondWith(whole.subarray(0, whole.length - 8), gzip)],
    ["B10: gzip with a wrong checksum", respondWith(badCrc, gzip)],
    ["B10: brotli without a content-encoding header", respondWith(brotliCompressSync(text))],
    [
      "B10: brotli that the client did not accept",
      respondWith(brotliCompressSync(text), { "content-encoding": "br" }),
    ],
    ["B11: HTML of a captive portal", respondWith("<html>sign in</html>", { "content-type": "text/html" })],
    ["B11: an empty body", respondWith("")],
    ["B11: 204", respondWith("", {}, 204)],
    ["B11: JSON without content", respondWith("{}")],
    ["B11: content is not an array", respondWith('{"content":{}}')],
    ["B11: null", respondWith("null")],
  ];
  it.each(cases)("%s", async (_, bad) => {
    const { stub, send } = await startBadService(bad);
    expect((await send(asset)).content).toEqual(good.content);
    expect(stub.requests).toHaveLength(2);
  });

  it("B11: a permanent captive portal ends in an error, never in an end of data", async () => {
    const { failureOf } = await startBadService(respondWith("<html>sign in</html>"), 100);
    expect(await failureOf(asset)).toMatchObject({ code: "malformed_body", family: "retry" });
  });
});

describe("bodies whose headers are wrong", () => {
  const cases: [string, BadResponse][] = [
    ["B10: content-encoding gzip, body plain", respondWith(text, gzip)],
    ["gzip body without content-encoding", respondWith(whole)],
    ["B11: starts with a byte order mark", respondWith(`\ufeff${text}`)],
    ["B11: JSON with content-type text/html", respondWith(text, { "content-type": "text/html" })],
  ];
  it.each(cases)("%s: is read anyway", async (_, bad) => {
    const { stub, send } = await startBadService(bad);
    expect((await send(asset)).content).toEqual(good.content);
    expect(stub.requests).toHaveLength(1);
  });
});

describe("decodeBody", () => {
  const body = (bytes: Uint8Array) => ({ bytes: new Uint8Array(bytes) });

  it("B10: a gzip bomb is stopped at the limit without allocating its size", () => {
    const bomb = body(gzipSync(Buffer.alloc(64 * 1024 * 1024)));
    const before = process.memoryUsage().rss;
    expect(() => decodeBody(bomb, 1024 * 1024)).toThrow(Failure);
    expect(process.memoryUsage().rss - before).toBeLessThan(32 * 1024 * 1024);
  });

  it("the limit also applies to plain bytes", () => {
    expect(() => decodeBody(body(Buffer.alloc(11)), 10)).toThrow(/limit/);
    expect(decodeBody(body(Buffer.alloc(10)), 10)).toHaveLength(10);
  });

  it("the bytes of a body own their buffer, so that it can be transferred to another thread", async () => {
    const { client, clock } = await startBadService(() => {}, 0);
    const bytes = await clock.runUntil(client.request(asset, async (received) => received.bytes));
    expect([bytes.byteOffset, bytes.byteLength]).toEqual([0, gzipSync(text).byteLength]);
    expect(bytes.buffer.byteLength).toBe(bytes.byteLength);
  });
});
