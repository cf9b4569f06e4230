import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { exitCode, type Failure } from "../../../src/model/failure.ts";
import { findRoute, toNetworkFailure } from "../../../src/service/http/network-failures.ts";
import { UNUSED_PORT } from "../../support/free-port.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { createTestClient, readPage, startServedClient } from "../../support/service/client-harness.ts";
import { hang } from "../../support/service/stub-service.ts";

const asset = { endpoint: "/asset" };
afterEach(() => void vi.unstubAllEnvs());

describe("network failures", () => {
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
  ])("B13: %s becomes %s, however deep it is wrapped", (code, name) => {
    const inner = Object.assign(new Error("private words"), { code });
    const wrapped = new AggregateError([new Error("outer", { cause: inner })]);
    const failure = toNetworkFailure(wrapped, { address: "service.example:443", proxy: undefined });
    expect(failure).toMatchObject({ code: name, family: "retry", remedy: expect.any(String) });
    expect(failure.message).not.toContain("private words");
    if (name !== "too_many_files") expect(failure.message).toContain("service.example:443");
  });

  const stubProxy = (url: string) => {
    for (const name of ["https_proxy", "http_proxy", "HTTP_PROXY", "no_proxy"]) vi.stubEnv(name, undefined);
    vi.stubEnv("NO_PROXY", "");
    vi.stubEnv("HTTPS_PROXY", url);
  };
  const failureFrom = async (address: string) => {
    const manual = new ManualClock();
    const { client } = createTestClient(address, manual);
    const request = client.request({ ...asset, maxAttempts: 1 }, readPage);
    return manual.runUntil(request.then(() => undefined).catch((error: unknown) => error as Failure));
  };

  it("B13: a proxy that refuses is named with its variable, without its password", async () => {
    stubProxy(`http://someone:a-password@127.0.0.1:${UNUSED_PORT}`);
    const failure = await failureFrom("https://service.example");
    expect(failure?.code).toBe("connection_refused");
    expect(failure?.message).toContain(`the proxy 127.0.0.1:${UNUSED_PORT} refused the connection`);
    expect(failure?.remedy).toContain("unset HTTPS_PROXY");
    expect(failure?.summary).not.toContain("password");
  });

  it.each([
    [407, "put the user and password of the proxy into HTTPS_PROXY"],
    [502, "check whether the proxy may connect to it, or unset HTTPS_PROXY"],
  ])("B13: a proxy that answers %i is named, with the service's address", async (status, remedy) => {
    const proxy: Server = createServer();
    proxy.on("connect", (_, socket) => void socket.end(`HTTP/1.1 ${status} No\r\n\r\n`));
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const { port } = proxy.address() as AddressInfo;
    stubProxy(`http://127.0.0.1:${port}`);
    const failure = await failureFrom("https://service.example");
    proxy.closeAllConnections();
    proxy.close();
    expect(failure).toMatchObject({ code: "proxy_failed", family: "retry" });
    expect(failure?.message).toBe(
      `the proxy 127.0.0.1:${port} did not connect to service.example:443 (${status})`,
    );
    expect(failure?.remedy).toContain(remedy);
  });

  it("B13: a refused connection, a host without TLS and a slow one are named by their address", async () => {
    const refused = await failureFrom(`http://127.0.0.1:${UNUSED_PORT}`);
    expect(refused?.message).toContain(`127.0.0.1:${UNUSED_PORT} refused the connection (ECONNREFUSED)`);
    expect(refused).toMatchObject({ code: "connection_refused", family: "retry", exit: exitCode.tryLater });
    expect(refused?.remedy).toContain("check the address and port");

    const { clock, stub, logLines, failureOf } = await startServedClient({
      respond: (_, response) => hang(clock, response),
    });
    const { host } = new URL(stub.baseUrl);
    const plain = await failureFrom(`https://${host}`);
    expect(plain).toMatchObject({ code: "tls_failed" });
    expect(plain?.summary).toMatch(new RegExp(`${host}: the TLS handshake failed .*speak TLS`));

    const slow = await failureOf({ ...asset, maxAttempts: 8 });
    expect(slow?.message).toBe(`${host} did not answer within 60 seconds`);
    const opened = logLines.find(({ message }) => message === "circuit breaker opened");
    expect(opened?.fields).toMatchObject({
      endpoint: "/asset",
      address: host,
      cause: `${host} did not answer within 60 seconds`,
      remedy: expect.any(String),
    });
  });

  it.each([
    ["service.example", true],
    [".example", true],
    ["*.example", true],
    ["*", true],
    ["other.example, service.example:443", true],
    ["service.example:80", false],
    ["ample", false],
    ["", false],
  ])("B13: NO_PROXY=%s exempts the service from the proxy: %s", (noProxy, isExempt) => {
    const env = { HTTPS_PROXY: "http://proxy.example:3128", NO_PROXY: noProxy };
    const { address, proxy } = findRoute(new URL("https://service.example/path"), env);
    expect(address).toBe("service.example:443");
    expect(proxy).toEqual(isExempt ? undefined : { address: "proxy.example:3128", variable: "HTTPS_PROXY" });
  });
});
