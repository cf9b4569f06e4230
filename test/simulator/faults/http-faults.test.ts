import { Agent } from "node:http";
import { brotliDecompressSync, createGunzip, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FaultClient, type RequestOutcome } from "../../support/simulator/fault-client.ts";

let client: FaultClient;
beforeAll(async () => {
  client = await FaultClient.start();
});
afterAll(() => client.simulator.stop());

async function under(
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
    "status %i comes with the error body",
    async (code) => {
      const { status, text } = await under(`status ${code}`);
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
    ["far", "Wed, 27 Feb 2036 12:00:10 GMT"],
    ["garbage", "when the moon is full"],
    ["negative", "-7"],
    ["huge", "1000000000"],
    ["exponent", "1e9"],
    ["none", undefined],
  ])("rate-limit answers 429 with Retry-After: %s", async (form, said) => {
    const { status, headers } = await under(`rate-limit retry-after=${form}`);
    expect(status).toBe(429);
    expect(headers["retry-after"]).toBe(said);
    expect(headers.date).toBe("Sun, 01 Mar 2026 12:00:10 GMT");
  });

  it("redirect names another address", async () => {
    const { status, headers } = await under("redirect http://elsewhere.example/ code=308");
    expect([status, headers.location]).toEqual([308, "http://elsewhere.example/"]);
  });
});

describe("faults of the body", () => {
  it("html is a captive portal's 200", async () => {
    const { status, headers, text } = await under("html");
    expect([status, headers["content-type"]]).toEqual([200, "text/html"]);
    expect(text).toContain("<!doctype html>");
  });

  it("empty-body is 200 without a byte, no-content is 204", async () => {
    expect(await under("empty-body")).toMatchObject({ status: 200, text: "", isWhole: true });
    expect(await under("no-content")).toMatchObject({ status: 204, text: "", isWhole: true });
  });

  it("bom precedes JSON that is right", async () => {
    const { text } = await under("bom");
    expect(text.charCodeAt(0)).toBe(0xfeff);
    expect(JSON.parse(text.slice(1)).content.length).toBeGreaterThan(5);
  });

  it("content-type mislabels JSON that is right", async () => {
    const { headers, text } = await under("content-type text/html");
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
  ])("envelope %s is JSON of another shape", async (shape, json) => {
    expect(JSON.parse((await under(`envelope ${shape}`)).text)).toEqual(json);
  });

  it.each(["length", "chunked", "reset"])("cut %s breaks the transfer off", async (how) => {
    const outcome = await under(`cut ${how} at=100`);
    expect(outcome).toMatchObject({
      status: 200,
      isWhole: false,
      error: expect.stringMatching(/ECONNRESET|aborted/),
    });
    // A reset may overtake the bytes before it.
    if (how !== "reset") expect(outcome.body.length).toBe(100);
  });

  it("cut close ends a body without a length: only the JSON shows that it is not whole", async () => {
    const outcome = await under("cut close at=100");
    expect(outcome).toMatchObject({ status: 200, isWhole: true });
    expect(outcome.body.length).toBe(100);
    expect(outcome.headers["content-length"]).toBeUndefined();
  });

  it("cut utf8 ends honestly, in the middle of a character", async () => {
    const outcome = await under("cut utf8 at=100");
    expect(outcome).toMatchObject({ status: 200, isWhole: true });
    expect(outcome.body.at(-1)).toBe(0xc3);
    expect(outcome.headers["content-length"]).toBe("101");
  });
});

describe("faults of the encoding", () => {
  it("encoding cut: the length is honest, the gzip stream lacks its end", async () => {
    const outcome = await under("encoding cut", "/asset", zipped);
    expect(outcome).toMatchObject({ status: 200, isWhole: true });
    expect(outcome.headers["content-encoding"]).toBe("gzip");
    expect(() => gunzipSync(outcome.body)).toThrow("unexpected end of file");
  });

  it("encoding crc: the checksum of the gzip stream is wrong", async () => {
    const { body } = await under("encoding crc", "/asset", zipped);
    expect(() => gunzipSync(body)).toThrow("incorrect data check");
  });

  it("encoding plain: gzip is announced over a plain body", async () => {
    const { headers, text } = await under("encoding plain", "/asset", zipped);
    expect(headers["content-encoding"]).toBe("gzip");
    expect(JSON.parse(text).content.length).toBeGreaterThan(5);
  });

  it("encoding br: brotli that nobody asked for", async () => {
    const { headers, body } = await under("encoding br", "/asset", zipped);
    expect(headers["content-encoding"]).toBe("br");
    expect(JSON.parse(brotliDecompressSync(body).toString()).content.length).toBeGreaterThan(5);
  });

  it("encoding bomb: a small body that grows a thousandfold", async () => {
    const { headers, body } = await under("encoding bomb mb=5000", "/asset", zipped);
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
  it("latency answers whole, but later", async () => {
    const start = client.clock.monotonic();
    expect(await under("latency 90s")).toMatchObject({ status: 200, isWhole: true });
    expect(client.clock.monotonic() - start).toBe(90_000);
  });

  it("slow-headers sends the status at once and the rest after so long", async () => {
    const start = client.clock.monotonic();
    const outcome = await under("slow-headers 30s");
    expect(JSON.parse(outcome.text).content.length).toBeGreaterThan(5);
    expect(client.clock.monotonic() - start).toBe(30_000);
  });

  it("drip sends the body a few bytes at a time", async () => {
    const start = client.clock.monotonic();
    const outcome = await under("drip every=5s bytes=100");
    expect(JSON.parse(outcome.text).content.length).toBeGreaterThan(5);
    expect(client.clock.monotonic() - start).toBe((Math.ceil(outcome.body.length / 100) - 1) * 5000);
  });

  it.each(["start", "body"])(
    "stall at=%s keeps the client waiting for ever, and turned time moves meanwhile",
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

  it.each(["reset", "hang-up"])("%s gives no answer", async (word) => {
    expect(await under(word)).toMatchObject({ status: 0, error: "ECONNRESET" });
  });

  it("reset socket=reused spares a fresh connection and breaks a kept one", async () => {
    client.simulator.setFaults("GET /asset reset socket=reused");
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect((await client.get("/asset", { agent })).status).toBe(200);
    expect((await client.get("/asset", { agent })).error).toBe("ECONNRESET");
    expect((await client.get("/asset", { agent })).status).toBe(200);
    agent.destroy();
    client.simulator.setFaults("");
  });

  it("refuse closes the port between from and to, for connections old and new", async () => {
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

  it("refuse without a beginning closes the port at once", async () => {
    client.simulator.setFaults("port refuse to=60s");
    await client.clock.advance(0);
    expect((await client.get("/asset")).error).toBe("ECONNREFUSED");
    await client.clock.runUntil(client.clock.sleep(60_000));
    expect((await client.get("/asset")).status).toBe(200);
    client.simulator.setFaults("");
  });

  it("leaves the controls alone, and tells over them how often each line struck", async () => {
    const control = `${client.simulator.baseUrl}/simulator/faults`;
    await fetch(control, { method: "POST", body: "* * status 503" });
    expect((await client.get("/asset")).status).toBe(503);
    expect(await (await fetch(control)).json()).toEqual([{ line: 1, text: "* * status 503", struck: 1 }]);
    const refused = await fetch(control, { method: "POST", body: "GET /asset statis 503" });
    expect([refused.status, await refused.text()]).toEqual([
      400,
      expect.stringContaining('did you mean \\"status\\"?'),
    ]);
    expect((await client.get("/asset")).status).toBe(503);
    client.simulator.setFaults("");
  });

  it("answers as ever when the script is taken away", async () => {
    expect(await client.get("/asset")).toMatchObject({ status: 200, isWhole: true });
    expect(client.simulator.faultCounts).toEqual([]);
  });
});
