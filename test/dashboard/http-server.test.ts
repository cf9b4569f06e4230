import { request } from "node:http";
import { connect } from "node:net";
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
      ["/broken", () => Promise.reject(new Error("inner secret"))],
    ]),
  });
  onTestFinished(() => server.close());
  return { server, failures, port: Number(new URL(server.address).port) };
}

function ask(port: number, path: string, options: { host?: string; method?: string } = {}) {
  const { host = "localhost", method = "GET" } = options;
  return new Promise<{ status: number; body: string; headers: Record<string, unknown> }>(
    (resolve, reject) => {
      request({ host: "127.0.0.1", port, path, method, headers: { host } }, (response) => {
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
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      expect((await ask(port, "/", { method })).status).toBe(405);
    }
    expect(await ask(port, "/", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
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

  it("says in one line that its port is taken", async () => {
    const { port } = await serve();
    const second = startHttpServer({
      host: "127.0.0.1",
      port,
      allowedHosts: [],
      failed: () => {},
      pages: new Map([["/", () => plain(200, "")]]),
    });
    await expect(second).rejects.toMatchObject({ code: "http_port", exit: 2 });
  });
});
