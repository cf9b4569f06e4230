import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, it, onTestFinished } from "vitest";
import { isOurName, json, type PageMaker, plain, startHttpServer } from "../../src/dashboard/http-server.ts";

const LARGE = Buffer.alloc(32 * 2 ** 20, "a");

async function serve(patienceMs?: number) {
  const failures: unknown[] = [];
  let made = 0;
  const server = await startHttpServer({
    host: "127.0.0.1",
    port: 0,
    allowedHosts: ["md.example"],
    failed: (error) => failures.push(error),
    ...(patienceMs === undefined ? {} : { patienceMs }),
    pages: new Map<string, PageMaker>([
      [
        "/large",
        () => {
          made++;
          return { type: "text/plain", body: LARGE };
        },
      ],
      [
        "/long-made",
        () => new Promise((made) => setTimeout(() => made(plain(200, "made")), 4 * (patienceMs ?? 0))),
      ],
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
  return { server, failures, made: () => made, port: Number(new URL(server.address).port) };
}

function open(port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  return socket.on("error", () => {});
}

/** Whether it ends in order or with an error. */
function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once("close", () => resolve()));
}

/** What comes back to these bytes until the server ends the connection. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = open(port);
  let text = "";
  socket.setEncoding("latin1").on("data", (part) => {
    text += String(part);
  });
  socket.write(bytes);
  await closing(socket);
  return text;
}

/** Who does not read learns only by writing that nobody is there any more. */
async function untilGone(socket: Socket, everyMs: number): Promise<void> {
  const knock = setInterval(() => socket.write("\r\n"), everyMs);
  await closing(socket);
  clearInterval(knock);
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

  it("ends connections that ask nothing, never finish asking, or do not take what they asked for", async () => {
    const { port, failures } = await serve(200);
    const silent = open(port);
    const slow = open(port);
    slow.write("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    const drip = setInterval(() => slow.write("a"), 50);
    const bodiless = open(port);
    bodiless.write("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n");
    const ended = [silent, slow, bodiless].map((socket) => closing(socket.resume()));
    const unread = open(port).pause();
    unread.write("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await Promise.all([...ended, untilGone(unread, 1_500)]);
    clearInterval(drip);

    // But a page that is long in the making is waited for.
    expect((await ask(port, "/long-made")).body).toBe("made\n");
    expect(failures).toEqual([]);
  });

  it("lets somebody in who asks, however many hold a connection and do not", async () => {
    const { port } = await serve();
    const first = open(port).resume();
    const isFirstGone = closing(first);
    for (let i = 0; i < 300; i++) await once(open(port), "connect");
    expect((await ask(port, "/")).status).toBe(200);
    await isFirstGone;
  });

  it("answers questions that come at once in their order, and ends a connection that goes on asking and reads nothing", async () => {
    const { port, made, failures } = await serve(200);
    const question = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const said = await exchange(
      port,
      ["/api/status?from=1", "/", "/api/status?from=2"].map(question).join(""),
    );
    expect(said.match(/\{.*\}|<p>hello/g)).toEqual(['{"from":"1"}', "<p>hello", '{"from":"2"}']);
    const greedy = open(port).pause();
    greedy.write(question("/large").repeat(1_000));
    await untilGone(greedy, 100);
    expect(made()).toBeLessThan(20);
    expect(failures).toEqual([]);
  });

  it("says what is wrong with odd questions, and checks the name first", async () => {
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
