import { getEventListeners } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { exitCode, Failure } from "../../../src/model/failure.ts";
import type { ResponseBody } from "../../../src/model/response-body.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient, readPage, startServedClient } from "../../support/service/client-harness.ts";
import { reply, type StubServiceOptions, sendJson } from "../../support/service/stub-service.ts";

const asset = { endpoint: "/asset" };
afterEach(() => void vi.unstubAllEnvs());

const start = (respond: NonNullable<StubServiceOptions["respond"]> = () => 200) =>
  startServedClient({ respond });

describe("error statuses", () => {
  it("B5: a 400 is not retried, and the failure quotes its field errors", async () => {
    const { stub, failureOf } = await start((_, response) =>
      sendJson(
        response,
        {
          status: "BAD_REQUEST",
          message: "Validation error",
          errors: [{ object: "query", field: "size", rejectedValue: "x", message: "must be a number" }],
        },
        400,
      ),
    );
    const failure = await failureOf(asset);
    expect(failure).toMatchObject({ code: "rejected", exit: exitCode.incomplete });
    expect(failure?.message).toContain("size: must be a number");
    expect(stub.requests).toHaveLength(1);
  });

  it("B6: a 404 is not retried, and one missing record raises no alarm", async () => {
    const { stub, failureOf } = await start(() => 404);
    const one = { endpoint: "/asset/{id}", params: { id: "gone" } };
    for (let at = 0; at < 5; at++) expect((await failureOf(one))?.code).toBe("not_found");
    expect(stub.requests).toHaveLength(5);
  });

  it("B6: when every path answers 404, the failure is upstream_version", async () => {
    const { codeOf } = await start(() => 404);
    const codes: (string | undefined)[] = [];
    for (const endpoint of ["/asset", "/market", "/exchange", "/ohlcv"])
      codes.push(await codeOf({ endpoint }));
    expect(codes).toEqual(["not_found", "not_found", "upstream_version", "upstream_version"]);
  });

  it("B6: a path that answers 404 for a hundred records is reported, although others succeed", async () => {
    let isBroken = true;
    const { client, failureOf, codeOf } = await start(({ path }) =>
      path.endsWith("/ohlcv") && isBroken ? 404 : 200,
    );
    const codeOfIndex = (indexId: string) => codeOf({ endpoint: "/ohlcv", query: { indexId } });
    const codes: (string | undefined)[] = [];
    for (let at = 0; at < 120; at++) {
      codes.push(await codeOfIndex(`index-${at}`));
      await client.request(asset, readPage);
    }
    expect(codes.slice(0, 100).every((code) => code === "not_found")).toBe(true);
    expect(codes.slice(100).every((code) => code === "upstream_version")).toBe(true);
    expect(await failureOf({ endpoint: "/ohlcv" })).toMatchObject({ family: "retry" });
    isBroken = false;
    expect(await codeOfIndex("index-0")).toBeUndefined();
    isBroken = true;
    expect(await codeOfIndex("index-1")).toBe("not_found");
  });

  it("B6: hundreds of missing records raise no alarm while the path still finds a known one", async () => {
    let isGone = false;
    const { stub, codeOf } = await start(({ query }) => (query.indexId === "known" && !isGone ? 200 : 404));
    const codeOfIndex = (indexId: string) => codeOf({ endpoint: "/ohlcv", query: { indexId } });
    expect(await codeOfIndex("known")).toBeUndefined();
    const codes = new Set<string | undefined>();
    for (let at = 0; at < 250; at++) codes.add(await codeOfIndex(`index-${at}`));
    expect(codes).toEqual(new Set(["not_found"]));
    expect(stub.requests).toHaveLength(1 + 250 + 2);
    isGone = true;
    for (let at = 250; at < 370; at++) codes.add(await codeOfIndex(`index-${at}`));
    expect(codes).toContain("upstream_version");
  });

  it("B6: repeated 404s of one record count as one record", async () => {
    const { failureOf } = await start(() => 404);
    for (let at = 0; at < 120; at++) {
      const query = { indexId: "one", timestamp: `2026-03-01T12:00:${at % 60}Z`, startAfter: `c${at}` };
      expect((await failureOf({ endpoint: "/ohlcv", query }))?.code).toBe("not_found");
    }
  });

  it("B4: an error body that cannot be converted to text does not end the retries", async () => {
    const { stub, failureOf } = await start((_, response, count) =>
      count < 3
        ? sendJson(response, { errors: [{ field: { toString: 1, valueOf: 1 } }, null, 7] }, 500)
        : reply(response),
    );
    expect(await failureOf(asset)).toBeUndefined();
    expect(stub.requests).toHaveLength(3);
  });

  it("B7: a 409 is retried three times, then the request fails", async () => {
    const { client, stub, failureOf } = await start(() => 409);
    expect((await failureOf(asset))?.code).toBe("conflict");
    expect(stub.requests).toHaveLength(4);
    expect(client.health().condition.open_breakers).toEqual([]);
  });
});

describe("connections", () => {
  it("B12: a response without headers times out", async () => {
    const { clock, stub, send } = await start((_, response, count) => {
      if (count > 1) return reply(response);
      clock.beginWait();
    });
    await send(asset);
    expect(stub.requests).toHaveLength(2);
    expect(stub.requests[1]?.at).toBeGreaterThanOrEqual(60_000);
    expect(stub.requests[1]?.at).toBeLessThan(62_000);
  });

  it("B12: a body with one byte every five seconds times out", async () => {
    const { clock, stub, events, send } = await start((_, response, count) => {
      if (count > 1) return reply(response);
      clock.beginWait();
      response.writeHead(200);
      const drip = () => {
        response.write("{");
        clock.after(5_000, drip);
      };
      drip();
    });
    await send(asset);
    expect(stub.requests[1]?.at).toBeGreaterThanOrEqual(60_000);
    const outcomes = events.flatMap((each) => (each.kind === "request" ? [each.outcome] : []));
    expect(outcomes).toEqual(["ok", "timeout", "ok"]);
  });

  it.each([
    ["a large body on a slow link gets the time it needs", 18, 560_000, 560_000, 90_000],
    ["a body that becomes too slow times out soon after", 500, 560_000, 1_000, 70_000],
    ["an endless body is aborted at the maximum timeout", 500, 100_000, 100_000, 600_000],
  ])("B12: %s", async (_name, chunks, early, late, endsAt) => {
    const { clock, stub, send } = await start((_, response, count) => {
      if (count > 1) return reply(response);
      response.writeHead(200);
      response.write('{"content":[]');
      const more = (sent: number): void => {
        if (response.destroyed) return;
        if (sent === chunks) return void response.end("}");
        // The manual clock must advance only after the bytes were sent, and the next bytes wait for the clock.
        response.write(Buffer.alloc(sent < 12 ? early : late, " "), () => {
          const release = clock.beginWait();
          clock.after(5_000, () => {
            release();
            more(sent + 1);
          });
        });
      };
      more(0);
    });
    await send(asset);
    const ended = stub.requests[1]?.at ?? clock.monotonic();
    expect(ended).toBeGreaterThanOrEqual(endsAt);
    expect(ended).toBeLessThan(endsAt + 30_000);
    expect(stub.requests).toHaveLength(chunks === 18 ? 1 : 2);
  });

  it("B13: an https address is never requested in plain text", async () => {
    const clock = new ManualClock();
    const received: string[] = [];
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (data) => {
        received.push(data.toString("latin1"));
        socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { client } = createTestClient(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, clock);
    const failure = await clock.runUntil(client.request(asset, readPage).catch((error: unknown) => error));
    expect(failure).toMatchObject({ code: "tls_failed", family: "retry" });
    expect(received.length).toBeGreaterThan(0);
    for (const text of received) expect(text).not.toMatch(/HTTP|secret|token/);
    server.close();
  });

  it("B14: a stale keep-alive connection is replaced at once", async () => {
    const { clock, stub, send } = await start(({ socket }, response, count) =>
      count === 2 ? void socket.destroy() : reply(response),
    );
    await send(asset);
    await send(asset);
    expect(stub.requests).toHaveLength(3);
    expect(clock.monotonic()).toBe(0);
  });

  it("B14: a server that resets every connection is retried with backoff", async () => {
    const { clock, stub, failureOf } = await start(({ socket }) => void socket.resetAndDestroy());
    expect((await failureOf(asset))?.code).toBe("connection_lost");
    expect(stub.requests).toHaveLength(17);
    expect(clock.monotonic()).toBeGreaterThan(500);
  });

  it("B16: reports the age of a cached response from its Age or Date header", async () => {
    const { client, clock, events } = await start((_, response, count) => {
      if (count === 3) response.setHeader("age", "90");
      if (count === 4) response.setHeader("date", new Date(clock.now() - 120_000).toUTCString());
      reply(response);
    });
    const readAge = async ({ ageMs, asOf = Number.NaN }: ResponseBody) => [ageMs, asOf - clock.now()];
    const ages: number[][] = [];
    for (let at = 0; at < 5; at++) ages.push(await clock.runUntil(client.request(asset, readAge)));
    expect(ages).toEqual([
      [0, 0],
      [0, 0],
      [90_000, -90_000],
      [120_000, -120_000],
      [0, 0],
    ]);
    expect(events.filter((each) => each.kind === "request" && each.stale)).toHaveLength(2);
    expect(client.server.now()).toBe(clock.now());
  });

  it("counts the bytes of a body whose memory the reader transferred", async () => {
    const { client, clock, events } = await start(() => 200);
    const transfer = async ({ bytes }: ResponseBody) =>
      void structuredClone(bytes, { transfer: [bytes.buffer] });
    await clock.runUntil(client.request(asset, transfer));
    const sizes = events.flatMap((each) =>
      each.kind === "request" && each.endpoint === "/asset" ? [each.bytes] : [],
    );
    expect(sizes).toEqual([expect.any(Number)]);
    expect(sizes[0]).toBeGreaterThan(0);
  });

  it("G3: estimates the service's time, whatever the local clock does", async () => {
    const { client, clock, send } = await start();
    expect(client.server.now()).toBeUndefined();
    await send(asset);
    const serverTime = clock.now();
    clock.stepWallClock(-300_000);
    expect(client.server.now()).toBe(serverTime);
    expect(client.health().skewMs).toBe(-300_000);
    clock.suspend(60_000);
    expect(client.server.now()).toBe(serverTime + 60_000);
  });

  it("an aborted request rejects at once", async () => {
    const { client, clock } = await start(() => {});
    const controller = new AbortController();
    const work = client.request({ ...asset, signal: controller.signal }, readPage);
    await clock.advance(1_000);
    controller.abort(new Error("stopping"));
    await expect(work).rejects.toThrow("stopping");
    expect(clock.busyCount).toBe(0);
  });
});

describe("clean-up", () => {
  it("leaves no listener on a long-lived signal, no timer and no hold", async () => {
    const { client, clock } = await start(({ count }) => (count % 3 === 0 ? 503 : 200));
    const { signal } = new AbortController();
    const requests = Array.from({ length: 40 }, () => client.request({ ...asset, signal }, readPage));
    await clock.runUntil(Promise.allSettled(requests));
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect([clock.timerCount, clock.busyCount]).toEqual([0, 0]);
  });
});

describe("addresses", () => {
  const clock = new ManualClock();
  it.each([
    "http://service.example",
    "http://10.0.0.1",
    "ftp://127.0.0.1",
    "nonsense",
    "https://a:b@service.example",
  ])("%s is rejected before anything is sent", (address) => {
    expect(() => createTestClient(address, clock)).toThrow(Failure);
  });
  it.each(["http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1", "https://service.example"])(
    "%s is accepted",
    (address) => {
      expect(() => createTestClient(address, clock)).not.toThrow();
    },
  );

  it("D2: keeps the path of the base URL and percent-encodes every character of opaque ids", async () => {
    const { clock, stub } = await start();
    const { client } = createTestClient(`${stub.baseUrl}/market/data/`, clock, { authUrl: stub.baseUrl });
    const ids = ["a/b", "100%", "x?y#z", "naïve €", "..;q", "MiXed", "9".repeat(300), "\ud800"];
    for (const id of ids) {
      const request = { endpoint: "/asset/{id}", params: { id }, query: { "odd name": id } };
      await clock.runUntil(client.request(request, readPage));
    }
    const expected = ids.map((id) => encodeURIComponent(id.toWellFormed()));
    expect(stub.requests.map(({ target }) => target)).toEqual(
      expected.map((id) => `/market/data/v3/asset/${id}?odd%20name=${id}`),
    );
  });

  it("uses HTTPS_PROXY for the service, but never for loopback addresses", async () => {
    const proxied: string[] = [];
    const proxy: Server = createServer((_, response) => response.end("plain"));
    proxy.on("connect", (message, socket) => {
      proxied.push(message.url ?? "");
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    vi.stubEnv("HTTPS_PROXY", `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    vi.stubEnv("https_proxy", undefined);
    vi.stubEnv("NO_PROXY", "");
    vi.stubEnv("no_proxy", undefined);
    const { clock, failureOf } = await start();
    const remote = createTestClient("https://service.example", clock).client;
    const failure = remote.request({ ...asset, maxAttempts: 1 }, readPage).catch((error: unknown) => error);
    expect(await clock.runUntil(failure)).toMatchObject({ family: "retry" });
    expect(proxied).toEqual(["service.example:443"]);
    expect(await failureOf(asset)).toBeUndefined();
    expect(proxied).toHaveLength(1);
    proxy.closeAllConnections();
    proxy.close();
  });
});
