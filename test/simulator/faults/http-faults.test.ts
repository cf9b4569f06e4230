import { Agent } from "node:http";
import { brotliDecompressSync, createGunzip, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FaultClient, type RequestOutcome } from "../../support/simulator/fault-client.ts";

let client: FaultClient;
beforeAll(async () => {
  client = await FaultClient.start();
});
afterAll(() => client.simulator.stop());

async function requestWithFault(
  fault: string,
  path = "/asset",
  headers?: Record<string, string>,
): Promise<RequestOutcome> {
  client.simulator.setFaults(`GET ${path.split("?")[0]} ${fault}`);
  const outcome = await client.clock.runUntil(client.get(path, headers ? { headers } : {}));
  expect(client.faultCounts()).toEqual([1]);
  client.simulator.setFaults("");
  return outcome;
}

const zipped = { "accept-encoding": "gzip" };

describe("faults of status and headers", () => {
  it.each([400, 401, 403, 404, 409, 429, 500, 502, 503, 504])(
    "status %i sends the error body",
    async (code) => {
      const { status, text } = await requestWithFault(`status ${code}`);
      expect(status).toBe(code);
      expect(JSON.parse(text)).toMatchObject({ message: expect.any(String), errors: [] });
      expect(JSON.parse(text).status).toMatch(/^[A-Z_]+$/);
    },
  );

  it.each([
    ["seconds wait=7s", "7"],
    ["imf wait=50s", "Sun, 01 Mar 2026 12:01:00 GMT"],
    ["rfc850 wait=50s", "Sunday, 01-Mar-26 12:01:00 GMT"],
    ["asctime wait=50s", "Sun Mar  1 12:01:00 2026"],
    ["past wait=10s", "Sun, 01 Mar 2026 12:00:00 GMT"],
    ["garbage", "when the moon is full"],
    ["negative", "-7"],
    ["exponent", "1e9"],
    ["none", undefined],
  ])("rate-limit responds with 429 and Retry-After: %s", async (form, expected) => {
    const { status, headers } = await requestWithFault(`rate-limit retry-after=${form}`);
    expect(status).toBe(429);
    expect(headers["retry-after"]).toBe(expected);
    expect(headers.date).toBe("Sun, 01 Mar 2026 12:00:10 GMT");
  });

  it("redirect sends another address", async () => {
    const { status, headers } = await requestWithFault("redirect http://elsewhere.example/ code=308");
    expect([status, headers.location]).toEqual([308, "http://elsewhere.example/"]);
  });
});

describe("faults of the load", () => {
  const countStatuses = (outcomes: readonly RequestOutcome[]) =>
    outcomes.map(({ status }) => status).toSorted((a, b) => a - b);
  const sendTogether = (count: number) =>
    client.clock.runUntil(Promise.all(Array.from({ length: count }, (_, n) => client.get(`/asset?n=${n}`))));

  it.each(["second", "sliding", "bucket"])(
    "request-limit rejects what exceeds the rate: %s",
    async (window) => {
      client.simulator.setFaults(
        `GET * request-limit 3 window=${window} retry-after=seconds wait=2s to=5s\nGET * request-limit 1 from=5s`,
      );
      const first = await sendTogether(5);
      expect(countStatuses(first)).toEqual([200, 200, 200, 429, 429]);
      expect(first.find(({ status }) => status === 429)?.headers["retry-after"]).toBe("2");
      await client.clock.advance(1_000);
      expect(countStatuses(await sendTogether(3))).toEqual([200, 200, 200]);
      await client.clock.advance(5_000);
      expect(countStatuses(await sendTogether(2))).toEqual([200, 429]);
      client.simulator.setFaults("");
    },
  );

  it("overload fails while more requests are in flight", async () => {
    client.simulator.setFaults("GET * overload 2\nGET * latency 1s");
    expect(countStatuses(await sendTogether(5))).toEqual([200, 200, 503, 503, 503]);
    expect(countStatuses(await sendTogether(2))).toEqual([200, 200]);
    client.simulator.setFaults("");
  });
});

describe("faults of the body", () => {
  it("html sends 200 with the page of a captive portal", async () => {
    const { status, headers, text } = await requestWithFault("html");
    expect([status, headers["content-type"]]).toEqual([200, "text/html"]);
    expect(text).toContain("<!doctype html>");
  });

  it("empty-body sends 200 without a body, no-content sends 204", async () => {
    expect(await requestWithFault("empty-body")).toMatchObject({ status: 200, text: "", isWhole: true });
    expect(await requestWithFault("no-content")).toMatchObject({ status: 204, text: "", isWhole: true });
  });

  it("bom sends a byte order mark before valid JSON", async () => {
    const { text } = await requestWithFault("bom");
    expect(text.charCodeAt(0)).toBe(0xfeff);
    expect(JSON.parse(text.slice(1)).content.length).toBeGreaterThan(5);
  });

  it("content-type sends valid JSON with another content type", async () => {
    const { headers, text } = await requestWithFault("content-type text/html");
    expect(headers["content-type"]).toBe("text/html");
    expect(JSON.parse(text).content.length).toBeGreaterThan(5);
  });

  it.each([
    ["array", []],
    ["string", "content"],
    ["number", 42],
    ["null", null],
    ["no-content", { nextId: null }],
    ["content-object", { content: {} }],
    ["content-null", { content: null }],
    ["content-string", { content: "[]" }],
  ])("envelope %s sends JSON of another shape", async (shape, json) => {
    expect(JSON.parse((await requestWithFault(`envelope ${shape}`)).text)).toEqual(json);
  });

  it.each(["length", "chunked", "reset"])("cut %s aborts the transfer", async (how) => {
    const outcome = await requestWithFault(`cut ${how} at=100`);
    expect(outcome).toMatchObject({
      status: 200,
      isWhole: false,
      error: expect.stringMatching(/ECONNRESET|aborted/),
    });
    // A reset may arrive before the bytes that were sent earlier.
    if (how !== "reset") expect(outcome.body.length).toBe(100);
  });

  it("cut close truncates a body without a content-length, so only the JSON is incomplete", async () => {
    const outcome = await requestWithFault("cut close at=100");
    expect(outcome).toMatchObject({ status: 200, isWhole: true });
    expect(outcome.body.length).toBe(100);
    expect(outcome.headers["content-length"]).toBeUndefined();
  });

  it("cut utf8 sends a correct content-length and ends in the middle of a character", async () => {
    const outcome = await requestWithFault("cut utf8 at=100");
    expect(outcome).toMatchObject({ status: 200, isWhole: true });
    expect(outcome.body.at(-1)).toBe(0xc3);
    expect(outcome.headers["content-length"]).toBe("101");
  });
});

describe("faults of the encoding", () => {
  it("encoding cut: the content-length is correct, the gzip stream is truncated", async () => {
    const outcome = await requestWithFault("encoding cut", "/asset", zipped);
    expect(outcome).toMatchObject({ status: 200, isWhole: true });
    expect(outcome.headers["content-encoding"]).toBe("gzip");
    expect(() => gunzipSync(outcome.body)).toThrow("unexpected end of file");
  });

  it("encoding crc: the checksum of the gzip stream is wrong", async () => {
    const { body } = await requestWithFault("encoding crc", "/asset", zipped);
    expect(() => gunzipSync(body)).toThrow("incorrect data check");
  });

  it("encoding plain: a plain body is labelled gzip", async () => {
    const { headers, text } = await requestWithFault("encoding plain", "/asset", zipped);
    expect(headers["content-encoding"]).toBe("gzip");
    expect(JSON.parse(text).content.length).toBeGreaterThan(5);
  });

  it("encoding br: brotli that the client does not accept", async () => {
    const { headers, body } = await requestWithFault("encoding br", "/asset", zipped);
    expect(headers["content-encoding"]).toBe("br");
    expect(JSON.parse(brotliDecompressSync(body).toString()).content.length).toBeGreaterThan(5);
  });

  it("encoding bomb: a small body expands a thousandfold", async () => {
    const { headers, body } = await requestWithFault("encoding bomb mb=5000", "/asset", zipped);
    expect(headers["content-encoding"]).toBe("gzip");
    expect(body.length).toBeLessThan(6e6);
    let decoded = 0;
    const gunzip = createGunzip();
    const { promise, resolve } = Promise.withResolvers<void>();
    gunzip.on("data", (chunk: Buffer) => {
      decoded += chunk.length;
      if (decoded > 100 * 2 ** 20) resolve();
    });
    gunzip.end(body);
    await promise;
    gunzip.destroy();
  });
});

describe("faults of time and connection", () => {
  it("latency delays the complete response", async () => {
    const start = client.clock.monotonic();
    expect(await requestWithFault("latency 90s")).toMatchObject({ status: 200, isWhole: true });
    expect(client.clock.monotonic() - start).toBe(90_000);
  });

  it("slow-headers sends the status line at once and the rest after a delay", async () => {
    const start = client.clock.monotonic();
    const outcome = await requestWithFault("slow-headers 30s");
    expect(JSON.parse(outcome.text).content.length).toBeGreaterThan(5);
    expect(client.clock.monotonic() - start).toBe(30_000);
  });

  it("drip sends the body a few bytes at a time", async () => {
    const start = client.clock.monotonic();
    const outcome = await requestWithFault("drip every=5s bytes=100");
    expect(JSON.parse(outcome.text).content.length).toBeGreaterThan(5);
    expect(client.clock.monotonic() - start).toBe((Math.ceil(outcome.body.length / 100) - 1) * 5000);
  });

  it.each(["start", "body"])(
    "stall at=%s keeps the client waiting forever, while a manual clock can advance",
    async (at) => {
      client.simulator.setFaults(`GET /asset stall at=${at}`);
      const agent = new Agent({ timeout: 0 });
      const hold = client.clock.beginWork();
      const answer = client.get("/asset", { agent });
      await client.clock.runUntil(client.clock.sleep(3_600_000));
      expect(client.faultCounts()).toEqual([1]);
      agent.destroy();
      expect((await answer).isWhole).toBe(false);
      hold();
      await client.clock.advance(1);
      expect(client.clock.busyCount).toBe(0);
      client.simulator.setFaults("");
    },
  );

  it.each(["reset", "hang-up"])("%s sends no response", async (name) => {
    expect(await requestWithFault(name)).toMatchObject({ status: 0, error: "ECONNRESET" });
  });

  it("reset socket=reused resets a reused connection but not a new one", async () => {
    client.simulator.setFaults("GET /asset reset socket=reused");
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await client.get("/asset", { agent })).status).toBe(200);
    expect((await client.get("/asset", { agent })).error).toBe("ECONNRESET");
    expect((await client.get("/asset", { agent })).status).toBe(200);
    agent.destroy();
    client.simulator.setFaults("");
  });

  it("refuse closes the port between from and to, for old and new connections", async () => {
    client.simulator.setFaults("port refuse from=60s to=120s");
    const agent = new Agent({ keepAlive: true });
    expect((await client.get("/asset", { agent })).status).toBe(200);
    await client.clock.runUntil(client.clock.sleep(60_000));
    expect((await client.get("/asset", { agent })).error).toMatch(/ECONNREFUSED|ECONNRESET/);
    expect((await client.get("/asset")).error).toBe("ECONNREFUSED");
    await client.clock.runUntil(client.clock.sleep(60_000));
    expect((await client.get("/asset")).status).toBe(200);
    expect(client.faultCounts()).toEqual([1]);
    agent.destroy();
    client.simulator.setFaults("");
  });

  it("refuse without from closes the port at once", async () => {
    client.simulator.setFaults("port refuse to=60s");
    await client.clock.advance(0);
    expect((await client.get("/asset")).error).toBe("ECONNREFUSED");
    await client.clock.runUntil(client.clock.sleep(60_000));
    expect((await client.get("/asset")).status).toBe(200);
    client.simulator.setFaults("");
  });

  it("does not affect the controls", async () => {
    const control = `${client.simulator.baseUrl}/simulator/faults`;
    await fetch(control, { method: "POST", body: "* * status 503" });
    expect((await client.get("/asset")).status).toBe(503);
    expect(client.simulator.faultCounts).toEqual([{ line: 1, text: "* * status 503", struck: 1 }]);
    const refused = await fetch(control, { method: "POST", body: "GET /asset statis 503" });
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('did you mean \\"status\\"?'),
    ]);
    expect((await client.get("/asset")).status).toBe(503);
    client.simulator.setFaults("");
  });

  it("responds normally after the script is removed", async () => {
    expect(await client.get("/asset")).toMatchObject({ status: 200, isWhole: true });
    expect(client.simulator.faultCounts).toEqual([]);
  });
});
