import type { ServerResponse } from "node:http";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { decodeBody } from "../../../src/model/response-body.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import { type SeenRequest, type StubService, startStub, zipped } from "../../support/service/stub-service.ts";

const asset = { endpoint: "/asset" };
const good = { content: [{ id: "é" }] };
const text = JSON.stringify(good);
let stub: StubService | undefined;
afterEach(async () => stub?.stop());

type Bad = (response: ServerResponse, request: SeenRequest) => void;

/** Answers the first time as told, then well. */
async function onceBad(bad: Bad, times = 1) {
  const clock = new TurnedClock();
  stub = await startStub({
    clock,
    answer: (request, response, count) => (count > times ? zipped(response, good) : bad(response, request)),
  });
  return { clock, stub, ...clientOf(stub.baseUrl, clock) };
}

const send =
  (body: Uint8Array | string, headers: Record<string, string> = {}, status = 200): Bad =>
  (response) => {
    response.writeHead(status, headers);
    response.end(body);
  };

const gzip = { "content-encoding": "gzip" };
const whole = gzipSync(text);
const badCrc = Buffer.from(whole);
badCrc.writeUInt8(badCrc.readUInt8(badCrc.length - 6) ^ 0xff, badCrc.length - 6);

describe("bodies that cannot be read are asked for again, whole", () => {
  const cases: [string, Bad][] = [
    ["B8: cut JSON, close-delimited", send(text.slice(0, -3), { connection: "close" })],
    [
      "B8: cut within a UTF-8 character",
      send(Buffer.from(text).subarray(0, Buffer.from(text).indexOf(0xa9))),
    ],
    [
      "B8: fewer bytes than Content-Length says",
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
    ["B9: truncated gzip", send(whole.subarray(0, whole.length - 9), gzip)],
    ["B9: gzip without its trailer", send(whole.subarray(0, whole.length - 8), gzip)],
    ["B10: gzip with a wrong checksum", send(badCrc, gzip)],
    ["B10: brotli that was not announced", send(brotliCompressSync(text))],
    ["B10: brotli that was not asked for", send(brotliCompressSync(text), { "content-encoding": "br" })],
    ["B11: a portal's HTML", send("<html>sign in</html>", { "content-type": "text/html" })],
    ["B11: an empty body", send("")],
    ["B11: 204", send("", {}, 204)],
    ["B11: JSON without content", send("{}")],
    ["B11: content that is no array", send('{"content":{}}')],
    ["B11: null", send("null")],
  ];
  it.each(cases)("%s", async (_, bad) => {
    const { clock, stub, client } = await onceBad(bad);
    const page = await clock.runUntil(client.request(asset, readPage));
    expect(page.content).toEqual(good.content);
    expect(stub.requests).toHaveLength(2);
  });

  it("B11: a portal that stays is an error in the end, never an end of data", async () => {
    const { clock, client } = await onceBad(send("<html>sign in</html>"), 100);
    const failure = await clock.runUntil(client.request(asset, readPage).catch((error: unknown) => error));
    expect(failure).toMatchObject({ code: "malformed_body", family: "retry" });
  });
});

describe("bodies that say something else than they are", () => {
  const cases: [string, Bad][] = [
    ["B10: says gzip and is plain", send(text, gzip)],
    ["is gzip and does not say so", send(whole)],
    ["B11: starts with a byte order mark", send(`\ufeff${text}`)],
    ["B11: calls its JSON HTML", send(text, { "content-type": "text/html" })],
  ];
  it.each(cases)("%s: read all the same", async (_, bad) => {
    const { clock, stub, client } = await onceBad(bad);
    expect((await clock.runUntil(client.request(asset, readPage))).content).toEqual(good.content);
    expect(stub.requests).toHaveLength(1);
  });
});

describe("decodeBody", () => {
  const body = (bytes: Uint8Array) => ({ bytes: new Uint8Array(bytes) });

  it("B10: a bomb is stopped at the cap, without the memory that it wants", () => {
    const bomb = body(gzipSync(Buffer.alloc(200 * 1024 * 1024)));
    const before = process.memoryUsage().rss;
    expect(() => decodeBody(bomb, 1024 * 1024)).toThrow(Failure);
    expect(process.memoryUsage().rss - before).toBeLessThan(32 * 1024 * 1024);
  });

  it("the cap holds for plain bytes too", () => {
    expect(() => decodeBody(body(Buffer.alloc(11)), 10)).toThrow(/cap/);
    expect(decodeBody(body(Buffer.alloc(10)), 10)).toHaveLength(10);
  });

  it("the bytes of a body own their buffer, so that they can be handed to another thread", async () => {
    const { clock, client } = await onceBad(() => {}, 0);
    const sizes = await clock.runUntil(
      client.request(asset, async ({ bytes }) => [
        bytes.byteOffset,
        bytes.byteLength,
        bytes.buffer.byteLength,
      ]),
    );
    expect(sizes).toEqual([0, zippedSize(), zippedSize()]);
  });

  const zippedSize = () => gzipSync(JSON.stringify(good)).byteLength;
});
