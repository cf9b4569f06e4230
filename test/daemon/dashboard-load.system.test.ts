import { get } from "node:http";
import { connect, type Socket } from "node:net";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { expect, it, onTestFinished } from "vitest";
import type { LoadOptions, LoadResult } from "../support/daemon/http-load.ts";
import { installDaemon } from "../support/daemon/installed-daemon.ts";
import { timeLimit } from "../support/time-limit.ts";
import { waitUntil } from "../support/wait-until.ts";

const MEBIBYTE = 2 ** 20;

async function followingDaemon() {
  const installation = await installDaemon({ refreshSeconds: 2 });
  const daemon = installation.start();
  await daemon.waitUntilFilled();
  const reader = new Database(installation.warehouse, { readonly: true });
  onTestFinished(() => void reader.close());
  const newest = reader.prepare("SELECT max(ts) FROM index_ticks").pluck();
  return { daemon, address: await daemon.address(), newestTick: () => Number(newest.get()) / 1000 };
}

/** Like a health check: on its own connection. */
function read(address: string, page: string): Promise<{ status: number; text: string; ms: number }> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    get(new URL(page, address), { agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, text, ms: performance.now() - startedAt }),
      );
    }).on("error", reject);
  });
}

async function metrics(address: string): Promise<(name: string) => number> {
  const { text } = await read(address, "/metrics");
  return (name) =>
    Number(
      text
        .split("\n")
        .find((line) => line.startsWith(`mds_sync_${name} `))
        ?.split(" ")[1],
    );
}

function sendLoad(options: LoadOptions): Promise<LoadResult> {
  const worker = new Worker(new URL("../support/daemon/http-load.ts", import.meta.url), {
    workerData: options,
  });
  onTestFinished(() => void worker.terminate());
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

/** Opens abusive connections: silent ones, ones that never finish their request, and ones that never read the response. */
function openAbusiveConnections(port: number, each: number, greedy: number): void {
  const open = (): Socket => {
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    return socket.on("error", () => {});
  };
  for (let i = 0; i < each; i++) {
    open();
    const slow = open();
    slow.write("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    const drip = setInterval(() => slow.write("a"), 1_000);
    slow.once("close", () => clearInterval(drip));
    const unread = open().pause();
    unread.write("GET /bars.js HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(12));
  }
  for (let i = 0; i < greedy; i++)
    open().pause().write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_500));
}

/** Pages that are left open: each reads its stream of events. */
async function openPages(address: string, count: number): Promise<{ commits(): number }> {
  let commits = 0;
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  for (let i = 0; i < count; i++) {
    const { body } = await fetch(new URL("/api/events", address), { signal: gone.signal });
    const read = async () => {
      for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? [])
        commits += chunk.split("event: commit").length - 1;
    };
    read().catch(() => {});
  }
  return { commits: () => commits };
}

/** Queries that take many minutes: the daemon runs as many as it allows, and refuses the rest. */
async function sendRunawayQueries(address: string, count: number): Promise<number[]> {
  const sql =
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1e10) SELECT count(*) FROM c";
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  const answers: number[] = [];
  for (let i = 0; i < count; i++) {
    fetch(new URL("/api/query", address), {
      method: "POST",
      headers: { "content-type": "application/json", origin: new URL(address).origin },
      body: JSON.stringify({ sql }),
      signal: gone.signal,
    }).then(
      ({ status }) => answers.push(status),
      () => {},
    );
  }
  return answers;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.POSITIVE_INFINITY;
}

it("G11: a dashboard under heavy load does not delay ticks, uses little memory, answers well-behaved clients, and does not block the stop", async () => {
  const { daemon, address, newestTick } = await followingDaemon();
  const port = Number(new URL(address).port);
  const before = await metrics(address);
  const pages = await openPages(address, 50);
  const refused = await sendRunawayQueries(address, 6);
  // The pages that are open hear of the ticks, and only three of the long queries run.
  await waitUntil(() => pages.commits() > 50 && refused.length >= 3);
  expect(refused.slice(0, 3)).toEqual([503, 503, 503]);
  openAbusiveConnections(port, 50, 3);
  const load = sendLoad({
    port,
    paths: [
      "/",
      "/metrics",
      "/api/status",
      "/api/daemon",
      "/healthz",
      "/api/missing",
      "/api/series?name={turn}",
      "/market",
      "/api/market",
      "/api/quotes?pair={turn}",
      "/api/derivatives?asset={turn}",
    ],
    clients: 200,
    requestsPerSecond: 1_000,
    seconds: 1,
  });
  let loadResult: LoadResult | undefined;
  void load.then((done) => {
    loadResult = done;
  });
  const answeredIn: number[] = [];
  let oldestMs = 0;
  while (!loadResult) {
    for (const page of ["/healthz", "/metrics", "/api/status"]) {
      const { status, ms } = await read(address, page);
      expect([page, status]).toEqual([page, 200]);
      answeredIn.push(ms);
    }
    oldestMs = Math.max(oldestMs, Date.now() - newestTick());
    await new Promise((later) => setTimeout(later, 100));
  }
  // Other tests run in parallel, so the limit is the timeout of a typical health check.
  expect(median(answeredIn)).toBeLessThan(timeLimit(3_000));
  expect(oldestMs).toBeLessThan(timeLimit(10_000));
  const isUsual = (outcome: string) => outcome === "200" || outcome === "503";
  expect(Object.keys(loadResult.outcomes).filter((outcome) => !isUsual(outcome))).toEqual([]);
  expect(loadResult.outcomes[200]).toBeGreaterThan(250);
  let since = (_: string) => 0;
  await waitUntil(async () => {
    const after = await metrics(address);
    since = (name) => after(name) - before(name);
    return since("live_lag_seconds_count") > 2;
  });
  expect(since("live_lag_seconds_sum") / since("live_lag_seconds_count")).toBeLessThan(timeLimit(2));
  expect(since("resident_memory_bytes")).toBeLessThan(200 * MEBIBYTE);

  // More connections than the limit, and health checks still get through.
  openAbusiveConnections(port, 150, 3);
  expect(await read(address, "/healthz")).toMatchObject({ status: 200, text: "ok\n" });
  await daemon.stop();
  expect(daemon.stderr()).not.toContain("dashboard page failed");
});
