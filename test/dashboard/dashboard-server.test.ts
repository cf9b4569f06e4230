import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  jsonResponse,
  type RequestHandler,
  startDashboardServer,
  textResponse,
} from "../../src/dashboard/dashboard-server.ts";
import { isAllowedHost } from "../../src/runtime/http-server.ts";
import { sendRequest } from "../support/dashboard/dashboard-harness.ts";

const SCRIPT = "let a; ".repeat(200);
const LARGE = Buffer.alloc(32 * 2 ** 20, "a");
const echo = { answer: async (body: string) => ({ format: "csv" as const, result: Readable.from([body]) }) };

async function serve(idleTimeoutMs?: number) {
  const failures: unknown[] = [];
  let made = 0;
  const large = () => {
    made++;
    return { type: "text/plain", body: LARGE };
  };
  const server = await startDashboardServer({
    ...{ host: "127.0.0.1", port: 0, allowedHosts: ["md.example"], queries: echo },
    onError: (error) => failures.push(error),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeoutMs }),
    routes: new Map<string, RequestHandler>([
      ["/large", large],
      ["/long-made", () => setTimeout(4 * (idleTimeoutMs ?? 0), textResponse(200, "made"))],
      ["/", () => ({ type: "text/html", body: "<p>hello" })],
      ["/api/status", (query) => jsonResponse({ from: query.get("from") })],
      ["/script.js", () => ({ type: "text/javascript", body: SCRIPT, etag: 'W/"1"' })],
      ["/broken", () => Promise.reject(new Error("inner secret"))],
    ]),
  });
  onTestFinished(() => server.close());
  return { server, failures, made: () => made, port: Number(new URL(server.origin).port) };
}

function open(port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  return socket.on("error", () => {});
}

/** Resolves when the connection closes, with or without an error. */
function waitForClose(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** Sends bytes and returns the reply, once the server has closed the connection. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = open(port);
  let text = "";
  socket.setEncoding("latin1").on("data", (part) => {
    text += String(part);
  });
  socket.write(bytes);
  await waitForClose(socket);
  return text;
}

/** A client that does not read notices a closed connection only by writing to it. */
async function waitForReset(socket: Socket, everyMs: number): Promise<void> {
  const knock = setInterval(() => socket.write("\r\n"), everyMs);
  await waitForClose(socket);
  clearInterval(knock);
}

describe("the dashboard's server", () => {
  it("serves its pages, with headers that forbid foreign scripts", async () => {
    const { port } = await serve();
    const page = await sendRequest(port, "/");
    expect(page).toMatchObject({ status: 200, body: "<p>hello" });
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(JSON.parse((await sendRequest(port, "/api/status?from=x")).body)).toEqual({ from: "x" });
    expect((await sendRequest(port, "/nowhere")).status).toBe(404);
  });

  it("checks the Host header on every path before routing", async () => {
    const { port } = await serve();
    for (const path of ["/", "/api/status", "/nowhere"])
      expect((await sendRequest(port, path, { host: "evil.example" })).status).toBe(421);
    for (const host of ["localhost:9464", "127.0.0.1", "[::1]:80", "md.example", "MD.example:80"])
      expect((await sendRequest(port, "/", { host })).status).toBe(200);
    expect(isAllowedHost(undefined, [])).toBe(false);
    expect(isAllowedHost("localhost.evil.example", [])).toBe(false);
    expect(isAllowedHost("127.0.0.1.evil.example", [])).toBe(false);
  });

  it("serves GET only", async () => {
    const { port } = await serve();
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND"])
      expect((await sendRequest(port, "/", { method })).status).toBe(405);
    expect(await sendRequest(port, "/", { method: "HEAD" })).toMatchObject({ status: 200, body: "" });
  });

  it("accepts POST for listed paths only, as JSON, from its own pages", async () => {
    const { port } = await serve();
    const ask = (headers: Record<string, string>, rest: { host?: string; body?: string } = {}) =>
      sendRequest(port, "/api/query", { method: "POST", headers, body: "{}", ...rest });
    const json = { "content-type": "application/json" };
    const own = { ...json, origin: "http://localhost" };
    expect(await ask(own)).toMatchObject({ status: 200, body: "{}" });
    expect((await ask({ ...json, origin: "https://md.example" }, { host: "md.example" })).status).toBe(200);
    expect((await ask(json)).status).toBe(403);
    for (const origin of ["http://evil.example", "http://localhost:81", "null", "x"])
      expect((await ask({ ...json, origin })).status).toBe(403);
    expect((await ask(own, { host: "evil.example" })).status).toBe(421);
    expect((await ask({ origin: "http://localhost", "content-type": "text/plain" })).status).toBe(415);
    expect((await ask(own, { body: " ".repeat(300_000) })).status).toBe(413);
    const got = await sendRequest(port, "/api/query");
    expect([got.status, got.headers.allow]).toEqual([405, "POST"]);
    expect((await sendRequest(port, "/", { method: "POST", headers: own })).status).toBe(405);
  });

  it("serves only the listed paths, however a path is disguised", async () => {
    const { port, failures } = await serve();
    const ways = [
      ...["/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/api/../", "/./", "//evil.example/"],
      ...["http://evil.example/", "/api/status%00.html", "/api/status/", "/__proto__", "*"],
      `/${"a".repeat(4_000)}`,
    ];
    for (const path of ways) expect([path, (await sendRequest(port, path)).status]).toEqual([path, 404]);
    expect((await sendRequest(port, `/?${"a".repeat(20_000)}`)).status).toBe(431);
    expect((await sendRequest(port, "/?from=%E0%A4%A&%00=<script>")).status).toBe(200);
    expect(failures).toEqual([]);
  });

  it("lets browsers cache static files, and compresses them on request", async () => {
    const { port } = await serve();
    const plainly = await sendRequest(port, "/script.js");
    expect(plainly).toMatchObject({ status: 200, body: SCRIPT });
    const { etag } = plainly.headers as { etag: string };
    const known = await sendRequest(port, "/script.js", { headers: { "if-none-match": etag } });
    expect(known).toMatchObject({ status: 304, body: "" });
    const packed = await sendRequest(port, "/script.js", { headers: { "accept-encoding": "gzip, br" } });
    expect(packed.headers).toMatchObject({ "content-encoding": "gzip", vary: "accept-encoding" });
    expect((await sendRequest(port, "/api/status")).headers["cache-control"]).toBe("no-store");
  });

  it("reports the reason of a failed page to the log, not to the client", async () => {
    const { port, failures } = await serve();
    const page = await sendRequest(port, "/broken");
    expect(page.status).toBe(500);
    expect(page.body).not.toContain("inner secret");
    expect(failures).toHaveLength(1);
  });

  it("closes at once, even with open connections", async () => {
    const { server, port } = await serve();
    const idle = open(port).resume();
    await once(idle, "connect");
    const closed = waitForClose(idle);
    await server.close();
    await closed;
  });

  it("closes connections that send nothing, never finish a request, or do not read their response", async () => {
    const { port, failures } = await serve(200);
    const silent = open(port);
    const slow = open(port);
    slow.write("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    const drip = setInterval(() => slow.write("a"), 50);
    const bodiless = open(port);
    bodiless.write("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n");
    const ended = [silent, slow, bodiless].map((socket) => waitForClose(socket.resume()));
    const unread = open(port).pause();
    unread.write("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await Promise.all([...ended, waitForReset(unread, 1_500)]);
    clearInterval(drip);

    // But a slow page does not time out.
    expect((await sendRequest(port, "/long-made")).body).toBe("made\n");
    expect(failures).toEqual([]);
  });

  it("accepts a new request, however many idle connections there are", async () => {
    const { port } = await serve();
    const first = open(port).resume();
    const isFirstGone = waitForClose(first);
    for (let i = 0; i < 300; i++) await once(open(port), "connect");
    expect((await sendRequest(port, "/")).status).toBe(200);
    await isFirstGone;
  });

  it("answers pipelined requests in order, and closes a connection that sends requests without reading", async () => {
    const { port, made, failures } = await serve(200);
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const reply = await exchange(port, ["/api/status?from=1", "/", "/api/status?from=2"].map(get).join(""));
    expect(reply.match(/\{.*\}|<p>hello/g)).toEqual(['{"from":"1"}', "<p>hello", '{"from":"2"}']);
    const greedy = open(port).pause();
    greedy.write(get("/large").repeat(1_000));
    await waitForReset(greedy, 100);
    expect(made()).toBeLessThan(20);
    expect(failures).toEqual([]);
  });

  it("answers malformed requests with the right status, and checks the Host header first", async () => {
    const { port, failures } = await serve(200);
    const status = async (bytes: string) => /^HTTP\/1\.1 (\d+)/.exec(await exchange(port, bytes))?.[1];
    const toHere = "Host: localhost\r\n";
    const body = "a".repeat(200_000);
    const withBody = `${toHere}Content-Length: ${body.length}\r\n\r\n${body}`;
    const long = "a".repeat(20_000);
    const odd: [string, string][] = [
      ["421", "GET / HTTP/1.0\r\n\r\n"],
      ["200", `GET / HTTP/1.0\r\n${toHere}\r\n`],
      ["400", "GET / HTTP/1.1\r\n\r\n"],
      ["421", "DELETE /nowhere HTTP/1.1\r\nHost: evil.example\r\n\r\n"],
      ["431", `GET / HTTP/1.1\r\n${toHere}X-Long: ${long}\r\n\r\n`],
      ["431", `GET /${long} HTTP/1.1\r\n${toHere}\r\n`],
      ["405", `POST / HTTP/1.1\r\n${withBody}`],
      ["200", `GET / HTTP/1.1\r\n${withBody}`],
      ["200", `GET / HTTP/1.1\r\n${toHere}Upgrade: websocket\r\nConnection: upgrade\r\n\r\n`],
      ["400", "\x16\x03\x01 nonsense\r\n\r\n"],
    ];
    await Promise.all(
      odd.map(async ([expected, bytes]) =>
        expect([bytes.slice(0, 60), await status(bytes)]).toEqual([bytes.slice(0, 60), expected]),
      ),
    );
    expect(failures).toEqual([]);
  });

  it("fails with one line if its port is in use", async () => {
    const { port } = await serve();
    const second = startDashboardServer({
      ...{ host: "127.0.0.1", port, allowedHosts: [], onError: () => {}, routes: new Map(), queries: echo },
    });
    await expect(second).rejects.toMatchObject({ code: "http_port", exit: 75 });
  });
});
