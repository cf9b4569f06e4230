import { getEventListeners } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { exitCode, Failure } from "../../../src/model/failure.ts";
import { networkFailure } from "../../../src/service/http/transport.ts";
import { TurnedClock } from "../../support/manual-clock.ts";
import { clientOf, readPage } from "../../support/service/client-harness.ts";
import {
  json,
  type StubOptions,
  type StubService,
  startStub,
  zipped,
} from "../../support/service/stub-service.ts";

const asset = { endpoint: "/asset" };
let stub: StubService | undefined;
afterEach(async () => {
  vi.unstubAllEnvs();
  await stub?.stop();
});

async function start(answer: StubOptions["answer"]) {
  const clock = new TurnedClock();
  stub = await startStub({ clock, ...(answer ? { answer } : {}) });
  const under = clientOf(stub.baseUrl, clock);
  const failureOf = (work: Promise<unknown>) =>
    clock.runUntil(
      work.then(
        () => undefined,
        (error: unknown) => error as Failure,
      ),
    );
  return { clock, stub, failureOf, ...under };
}

const freePort = async () => {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
};

describe("statuses", () => {
  it("B5: a 400 is not retried, and its field errors are kept", async () => {
    const { client, stub, failureOf } = await start((_, response) =>
      json(
        response,
        {
          status: "BAD_REQUEST",
          message: "Validation error",
          errors: [{ object: "query", field: "size", rejectedValue: "x", message: "must be a number" }],
        },
        400,
      ),
    );
    const failure = await failureOf(client.request(asset, readPage));
    expect(failure).toMatchObject({ code: "rejected", exit: exitCode.incomplete });
    expect(failure?.message).toContain("size: must be a number");
    expect(stub.requests).toHaveLength(1);
  });

  it("B6: a 404 is not retried, and one missing record is no alarm", async () => {
    const { client, stub, failureOf } = await start((_, response) => json(response, {}, 404));
    const one = { endpoint: "/asset/{id}", params: { id: "gone" } };
    for (let at = 0; at < 5; at++)
      expect((await failureOf(client.request(one, readPage)))?.code).toBe("not_found");
    expect(stub.requests).toHaveLength(5);
  });

  it("B6: when every path is gone, it is the version and not the records", async () => {
    const { client, failureOf } = await start((_, response) => json(response, {}, 404));
    const codes: (string | undefined)[] = [];
    for (const endpoint of ["/asset", "/market", "/exchange", "/ohlcv"]) {
      codes.push((await failureOf(client.request({ endpoint }, readPage)))?.code);
    }
    expect(codes).toEqual(["not_found", "not_found", "upstream_version", "upstream_version"]);
  });

  it("B6: a path that finds nothing for a hundred records is at fault, though others answer", async () => {
    let isBroken = true;
    const { client, failureOf } = await start(({ path }, response) =>
      path.endsWith("/ohlcv") && isBroken ? json(response, {}, 404) : zipped(response, { content: [] }),
    );
    const codeOf = async (indexId: string, startAfter?: string) =>
      (await failureOf(client.request({ endpoint: "/ohlcv", query: { indexId, startAfter } }, readPage)))
        ?.code;
    const codes: (string | undefined)[] = [];
    for (let at = 0; at < 120; at++) {
      codes.push(await codeOf(`index-${at}`));
      await client.request(asset, readPage);
    }
    expect(codes.slice(0, 100).every((code) => code === "not_found")).toBe(true);
    expect(codes.slice(100).every((code) => code === "upstream_version")).toBe(true);
    expect(await failureOf(client.request({ endpoint: "/ohlcv" }, readPage))).toMatchObject({
      family: "retry",
    });
    isBroken = false;
    expect(await codeOf("index-0")).toBeUndefined();
    isBroken = true;
    expect(await codeOf("index-1")).toBe("not_found");
  });

  it("B6: hundreds of missing records are no alarm while the path still finds what it found before", async () => {
    let isGone = false;
    const { client, stub, failureOf } = await start(({ query }, response) =>
      query.indexId === "known" && !isGone ? zipped(response, { content: [] }) : json(response, {}, 404),
    );
    const codeOf = async (indexId: string) =>
      (await failureOf(client.request({ endpoint: "/ohlcv", query: { indexId } }, readPage)))?.code;
    expect(await codeOf("known")).toBeUndefined();
    const codes = new Set<string | undefined>();
    for (let at = 0; at < 250; at++) codes.add(await codeOf(`index-${at}`));
    expect(codes).toEqual(new Set(["not_found"]));
    expect(stub.requests).toHaveLength(1 + 250 + 2);
    isGone = true;
    for (let at = 250; at < 370; at++) codes.add(await codeOf(`index-${at}`));
    expect(codes).toContain("upstream_version");
  });

  it("B6: one record that is missed again and again stays one record", async () => {
    const { client, failureOf } = await start((_, response) => json(response, {}, 404));
    for (let at = 0; at < 120; at++) {
      const query = { indexId: "one", timestamp: `2026-03-01T12:00:${at % 60}Z`, startAfter: `c${at}` };
      expect((await failureOf(client.request({ endpoint: "/ohlcv", query }, readPage)))?.code).toBe(
        "not_found",
      );
    }
  });

  it("B4: an error body that cannot be made a text does not end the retries", async () => {
    const { client, stub, failureOf } = await start((_, response, count) =>
      count < 3
        ? json(response, { errors: [{ field: { toString: 1, valueOf: 1 } }, null, 7] }, 500)
        : zipped(response, { content: [] }),
    );
    expect(await failureOf(client.request(asset, readPage))).toBeUndefined();
    expect(stub.requests).toHaveLength(3);
  });

  it("B7: a 409 is tried again three times, then it is an error of that stream", async () => {
    const { client, stub, failureOf } = await start((_, response) => json(response, {}, 409));
    expect((await failureOf(client.request(asset, readPage)))?.code).toBe("conflict");
    expect(stub.requests).toHaveLength(4);
    expect(client.health().breaker).toBe("closed");
  });
});

describe("connections", () => {
  it("B12: headers that never come end at the deadline", async () => {
    const { clock, client, stub } = await start((_, response, count) => {
      if (count > 1) return zipped(response, { content: [] });
      clock.waive();
    });
    await clock.runUntil(client.request(asset, readPage));
    expect(stub.requests).toHaveLength(2);
    expect(stub.requests[1]?.at).toBeGreaterThanOrEqual(60_000);
    expect(stub.requests[1]?.at).toBeLessThan(62_000);
  });

  it("B12: a body that drips a byte every five seconds ends at the deadline too", async () => {
    const { clock, client, stub, observed } = await start((_, response, count) => {
      if (count > 1) return zipped(response, { content: [] });
      clock.waive();
      response.writeHead(200);
      const drip = () => {
        response.write("{");
        clock.after(5_000, drip);
      };
      drip();
    });
    await clock.runUntil(client.request(asset, readPage));
    expect(stub.requests[1]?.at).toBeGreaterThanOrEqual(60_000);
    const outcomes = observed
      .filter(({ kind }) => kind === "request")
      .map((each) => each.kind === "request" && each.outcome);
    expect(outcomes).toEqual(["ok", "timeout", "ok"]);
  });

  it.each([
    ["a large body on a slow link has the time that it takes", 18, 560_000, 560_000, 90_000],
    ["a body that slows down to a drip ends soon after", 500, 560_000, 1_000, 70_000],
    ["a body that never ends does end", 500, 100_000, 100_000, 600_000],
  ])("B12: %s", async (_name, chunks, early, late, endsAt) => {
    const { clock, client, stub } = await start((_, response, count) => {
      if (count > 1) return zipped(response, { content: [] });
      response.writeHead(200);
      response.write('{"content":[]');
      const more = (sent: number): void => {
        if (response.destroyed) return;
        if (sent === chunks) return void response.end("}");
        // Turned time waits for the bytes, and the bytes for turned time.
        response.write(Buffer.alloc(sent < 12 ? early : late, " "), () => {
          const release = clock.waive();
          clock.after(5_000, () => {
            release();
            more(sent + 1);
          });
        });
      };
      more(0);
    });
    await clock.runUntil(client.request(asset, readPage));
    const ended = stub.requests[1]?.at ?? clock.monotonic();
    expect(ended).toBeGreaterThanOrEqual(endsAt);
    expect(ended).toBeLessThan(endsAt + 30_000);
    expect(stub.requests).toHaveLength(chunks === 18 ? 1 : 2);
  });

  it("B13: a refused connection is named, backed off from, and heals", async () => {
    const clock = new TurnedClock();
    const port = await freePort();
    const { client } = clientOf(`http://127.0.0.1:${port}`, clock);
    const failure = await clock.runUntil(client.request(asset, readPage).catch((error: unknown) => error));
    expect(failure).toMatchObject({ code: "connection_refused", family: "retry", exit: exitCode.tryLater });
    expect(clock.monotonic()).toBeGreaterThan(1_000);
  });

  it("B13: a server without TLS where TLS is due is never asked in plain text", async () => {
    const clock = new TurnedClock();
    const heard: string[] = [];
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.on("data", (data) => {
        heard.push(data.toString("latin1"));
        socket.end("HTTP/1.1 400 Bad Request\r\n\r\n");
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { client } = clientOf(`https://127.0.0.1:${(server.address() as AddressInfo).port}`, clock);
    const failure = await clock.runUntil(client.request(asset, readPage).catch((error: unknown) => error));
    expect(failure).toMatchObject({ code: "tls_failed", family: "retry" });
    expect(heard.length).toBeGreaterThan(0);
    for (const text of heard) expect(text).not.toMatch(/HTTP|secret|token/);
    server.close();
  });

  it.each([
    ["ENOTFOUND", "dns_failed"],
    ["EAI_AGAIN", "dns_failed"],
    ["UND_ERR_CONNECT_TIMEOUT", "connect_timeout"],
    ["EHOSTUNREACH", "network_unreachable"],
    ["CERT_HAS_EXPIRED", "tls_failed"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "tls_failed"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "tls_failed"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "tls_failed"],
    ["EMFILE", "too_many_files"],
    ["ENFILE", "too_many_files"],
    ["SOMETHING_NEW", "network_failed"],
  ])("B13: %s is called %s, however deep it is wrapped", (code, name) => {
    const inner = Object.assign(new Error("private words"), { code });
    const wrapped = new AggregateError([new Error("outer", { cause: inner })]);
    const failure = networkFailure(wrapped);
    expect(failure).toMatchObject({ code: name, family: "retry" });
    expect(failure.message).not.toContain("private words");
  });

  it("B14: a kept-alive connection that was closed as we wrote is replaced at once", async () => {
    const { clock, client, stub } = await start(({ socket }, response, count) =>
      count === 2 ? void socket.destroy() : zipped(response, { content: [] }),
    );
    await clock.runUntil(client.request(asset, readPage));
    await clock.runUntil(client.request(asset, readPage));
    expect(stub.requests).toHaveLength(3);
    expect(clock.monotonic()).toBe(0);
  });

  it("B14: but only once: a server that keeps resetting is backed off from", async () => {
    const { clock, client, stub, failureOf } = await start(({ socket }) => void socket.resetAndDestroy());
    expect((await failureOf(client.request(asset, readPage)))?.code).toBe("connection_lost");
    expect(stub.requests).toHaveLength(7);
    expect(clock.monotonic()).toBeGreaterThan(1_000);
  });

  it("B16: an answer from a cache says how old it is, by Age or by its Date", async () => {
    const { clock, client, observed } = await start((_, response, count) => {
      if (count === 3) response.setHeader("age", "90");
      if (count === 4) response.setHeader("date", new Date(clock.now() - 120_000).toUTCString());
      zipped(response, { content: [] });
    });
    const ages: [number, number][] = [];
    for (let at = 0; at < 5; at++) {
      ages.push(
        await clock
          .runUntil(
            client.request(
              asset,
              async ({ ageMs, asOf }) => [ageMs, (asOf ?? Number.NaN) - clock.now()] as const,
            ),
          )
          .then(([age, asOf]) => [age, asOf]),
      );
    }
    expect(ages).toEqual([
      [0, 0],
      [0, 0],
      [90_000, -90_000],
      [120_000, -120_000],
      [0, 0],
    ]);
    expect(observed.filter((each) => each.kind === "request" && each.stale)).toHaveLength(2);
    expect(client.serverNow()).toBe(clock.now());
  });

  it("G3: the service's time is learned, whatever the local clock does", async () => {
    const { clock, client } = await start(undefined);
    expect(client.serverNow()).toBeUndefined();
    await clock.runUntil(client.request(asset, readPage));
    const truth = clock.now();
    clock.stepWall(-300_000);
    expect(client.serverNow()).toBe(truth);
    expect(client.health().skewMs).toBe(-300_000);
    clock.suspend(60_000);
    expect(client.serverNow()).toBe(truth + 60_000);
  });

  it("a caller that aborts is let go at once", async () => {
    const { clock, client } = await start(() => {});
    const controller = new AbortController();
    const work = client.request({ ...asset, signal: controller.signal }, readPage);
    await clock.advance(1_000);
    controller.abort(new Error("stopping"));
    await expect(work).rejects.toThrow("stopping");
    expect(clock.held).toBe(0);
  });
});

describe("what a request leaves behind", () => {
  it("is nothing: no listener on a signal that lives long, no timer, no hold", async () => {
    const { clock, client } = await start((_, response, count) =>
      count % 3 === 0 ? json(response, {}, 503) : zipped(response, { content: [] }),
    );
    const { signal } = new AbortController();
    const asks = Array.from({ length: 40 }, () => client.request({ ...asset, signal }, readPage));
    await clock.runUntil(Promise.allSettled(asks));
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect([clock.timers, clock.held]).toEqual([0, 0]);
  });
});

describe("addresses", () => {
  const clock = new TurnedClock();
  it.each([
    "http://service.example",
    "http://10.0.0.1",
    "ftp://127.0.0.1",
    "nonsense",
    "https://a:b@service.example",
  ])("%s is refused before anything is sent", (address) => {
    expect(() => clientOf(address, clock)).toThrow(Failure);
  });
  it.each(["http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1", "https://service.example"])(
    "%s is fine",
    (address) => {
      expect(() => clientOf(address, clock)).not.toThrow();
    },
  );

  it("a path in the base address stays, and D2: opaque ids are percent-encoded, every character of them", async () => {
    const { clock, stub, failureOf } = await start((_, response) => zipped(response, { content: [] }));
    const { client } = clientOf(`${stub.baseUrl}/market/data/`, clock, { authUrl: stub.baseUrl });
    const ids = ["a/b", "100%", "x?y#z", "naïve €", "..;q", "MiXed", "9".repeat(300), "\ud800"];
    for (const id of ids) {
      const ask = { endpoint: "/asset/{id}", params: { id }, query: { "odd name": id } };
      expect(await failureOf(client.request(ask, readPage))).toBeUndefined();
    }
    const expected = ids.map((id) => encodeURIComponent(id.toWellFormed()));
    expect(stub.requests.map(({ target }) => target)).toEqual(
      expected.map((id) => `/market/data/v3/asset/${id}?odd%20name=${id}`),
    );
  });

  it("HTTPS_PROXY is asked for the service, and never for this machine", async () => {
    const asked: string[] = [];
    const proxy: Server = createServer((_, response) => response.end("plain"));
    proxy.on("connect", (message, socket) => {
      asked.push(message.url ?? "");
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    vi.stubEnv("HTTPS_PROXY", `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    vi.stubEnv("https_proxy", undefined);
    vi.stubEnv("NO_PROXY", "");
    vi.stubEnv("no_proxy", undefined);
    const { clock, client, failureOf } = await start(undefined);
    const far = clientOf("https://service.example", clock).client;
    expect(await failureOf(far.request({ ...asset, attempts: 1 }, readPage))).toMatchObject({
      family: "retry",
    });
    expect(asked).toEqual(["service.example:443"]);
    expect(await failureOf(client.request(asset, readPage))).toBeUndefined();
    expect(asked).toHaveLength(1);
    proxy.closeAllConnections();
    proxy.close();
  });
});
