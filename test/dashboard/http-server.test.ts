import { request } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { isOurName, json, type PageMaker, plain, startHttpServer } from "../../src/dashboard/http-server.ts";

async function serve() {
  const failures: unknown[] = [];
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    allowedHosts: ["md.example"],
    failed: (error) => failures.push(error),
    pages: new Map<string, PageMaker>([
      ["/", () => ({ type: "text/html", body: "<p>hello" })],
      ["/api/status", (query) => json({ from: query.get("from") })],
      [
        "/script.js",
        () => ({ type: "text/javascript", body: "let a;", gzipped: gzipSync("let a;"), etag: 'W/"1"' }),
      ],
      ["/broken", () => Promise.reject(new Error("inner secret"))],
    ]),
  });
  onTestFinished(() => server.close());
  return { server, failures, port: Number(new URL(server.address).port) };
}

function ask(
  port: number,
  path: string,
  options: { host?: string; method?: string; headers?: Record<string, string> } = {},
) {
  const { host = "localhost", method = "GET", headers = {} } = options;
  return new Promise<{ status: number; body: string; headers: Record<string, unknown> }>(
    (resolve, reject) => {
      request({ host: "127.0.0.1", port, path, method, headers: { host, ...headers } }, (response) => {
        let body = "";
        response.on("data", (chunk) => {
          body += String(chunk);
        });
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, body, headers: response.headers }),
        );
      })
        .on("error", reject)
        .end();
    },
  );
}

describe("the dashboard's server", () => {
  it("serves its pages, with headers that let no script in from elsewhere", async () => {
    const { port } = await serve();
    const page = await ask(port, "/");
    expect(page).toMatchObject({ status: 200, body: "<p>hello" });
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(JSON.parse((await ask(port, "/api/status?from=x")).body)).toEqual({ from: "x" });
    expect((await ask(port, "/nowhere")).status).toBe(404);
  });

  it("checks the Host header on every path before routing", async () => {
    const { port } = await serve();
    for (const path of ["/", "/api/status", "/nowhere"]) {
      expect((await ask(port, path, { host: "evil.example" })).status).toBe(421);
    }
    for (const host of ["localhost:9464", "127.0.0.1", "[::1]:80", "md.example", "MD.example:80"]) {
      expect((await ask(port, "/", { host })).status).toBe(200);
    }
    expect(isOurName(undefined, [])).toBe(false);
    expect(isOurName("localhost.evil.example", [])).toBe(false);
    expect(isOurName("127.0.0.1.evil.example", [])).toBe(false);
  });

  it("serves GET only", async () => {
    const { port } = await serve();
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND"]) {
      expect((await ask(port, "/", { method })).status).toBe(405);
    }
    expect(await ask(port, "/", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  });

  it("knows paths only as they are listed, and no way around them", async () => {
    const { port, failures } = await serve();
    const ways = [
      "/..%2f..%2fetc/passwd",
      "/%2e%2e/%2e%2e/etc/passwd",
      "/api/../",
      "/./",
      "//evil.example/",
      "http://evil.example/",
      "/api/status%00.html",
      "/api/status/",
      "/__proto__",
      "*",
      `/${"a".repeat(4_000)}`,
    ];
    for (const path of ways) expect([path, (await ask(port, path)).status]).toEqual([path, 404]);
    expect((await ask(port, `/?${"a".repeat(20_000)}`)).status).toBe(431);
    expect((await ask(port, "/?from=%E0%A4%A&%00=<script>")).status).toBe(200);
    expect(failures).toEqual([]);
  });

  it("sends what never changes once, and packed to those who can unpack it", async () => {
    const { port } = await serve();
    const plainly = await ask(port, "/script.js");
    expect(plainly).toMatchObject({ status: 200, body: "let a;" });
    const { etag } = plainly.headers as { etag: string };
    const known = await ask(port, "/script.js", { headers: { "if-none-match": etag } });
    expect(known).toMatchObject({ status: 304, body: "" });
    const packed = await ask(port, "/script.js", { headers: { "accept-encoding": "gzip, br" } });
    expect(packed.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
    expect((await ask(port, "/api/status")).headers["cache-control"]).toBe("no-store");
  });

  it("tells the log, not the visitor, why a page failed", async () => {
    const { port, failures } = await serve();
    const page = await ask(port, "/broken");
    expect(page.status).toBe(500);
    expect(page.body).not.toContain("inner secret");
    expect(failures).toHaveLength(1);
  });

  it("closes at once, whoever still holds a connection", async () => {
    const { server, port } = await serve();
    const idle = connect(port, "127.0.0.1");
    await new Promise((resolve) => idle.once("connect", resolve));
    const closed = new Promise((resolve) => idle.once("close", resolve));
    await server.close();
    await closed;
  });

  it("answers while many others hold a connection and say nothing, or half of a request", async () => {
    const { port } = await serve();
    const idle = await Promise.all(
      Array.from({ length: 150 }, async (_, i) => {
        const socket = connect(port, "127.0.0.1");
        await new Promise((resolve) => socket.once("connect", resolve));
        if (i % 2 === 0) socket.write("GET / HTTP/1.1\r\nHost: loc");
        return socket.on("error", () => {});
      }),
    );
    expect((await ask(port, "/")).status).toBe(200);
    for (const socket of idle) socket.destroy();
  });

  it("says in one line that its port is taken", async () => {
    const { port } = await serve();
    const second = startHttpServer({
      host: "127.0.0.1",
      port,
      allowedHosts: [],
      failed: () => {},
      pages: new Map([["/", () => plain(200, "")]]),
    });
    await expect(second).rejects.toMatchObject({ code: "http_port", exit: 75 });
  });
});
