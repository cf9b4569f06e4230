import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import type { WalkPageCommitResult } from "../../src/ingest/commit/walk-page.ts";
import { IngestThread } from "../../src/ingest/thread/ingest-thread.ts";
import { decodeBody, type ResponseBody } from "../../src/model/response-body.ts";
import type { Series } from "../../src/model/streams.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../src/service/client/client.ts";
import { walkHistoryPages } from "../../src/service/pagination/history-walk.ts";
import { runBareLoop, type Throughput } from "./bare-loop.ts";
import { median } from "./figures.ts";
import type { PageServerInfo } from "./page-server.ts";

const ROUNDS = 3;
const SERIES = 8;
const PAGES = 40;
const CONCURRENCY = 8;

/** From bytes on the loopback to committed rows, beside the bare loop and a naive script, in alternating rounds. */
export async function benchIngest(print: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const { info, stop } = await startPageServer(SERIES, PAGES);
  const client = createClient(info);
  try {
    const bodies = await fetchBodies(client, info);
    const bare: number[] = [];
    const full: number[] = [];
    const naive: number[] = [];
    let stall = 0;
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(runBareLoop(join(folder, `bare-${round}`), bodies).rowsPerSecond);
      const path = await runFullPath(join(folder, `full-${round}`), client, info);
      full.push(path.rowsPerSecond);
      stall = Math.max(stall, path.stallMs);
      naive.push((await runNaiveScript(join(folder, `naive-${round}`), info)).rowsPerSecond);
    }
    const base = median(bare);
    const line = (what: string, values: number[]) =>
      `${what}: ${(median(values) / base).toFixed(2)} (${Math.round(median(values)).toLocaleString("en-US")} rows/s)`;
    print(line("bare loop (JSON.parse + 50-row inserts on bytes in memory)", bare));
    print(line(`full path, loopback to commit, concurrency ${CONCURRENCY}`, full));
    print(line("naive fetch-and-insert script on the same pages", naive));
    print(`full path relative to the naive script: ${(median(full) / median(naive)).toFixed(1)} ×`);
    print(`longest stall of the main thread: ${stall.toFixed(0)} ms`);
  } finally {
    await client.close();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function startPageServer(
  series: number,
  pages: number,
): Promise<{ info: PageServerInfo; stop(): Promise<void> }> {
  const script = resolve(import.meta.dirname, "page-server.ts");
  const child = spawn(process.execPath, [script, String(series), String(pages)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    info: JSON.parse(line) as PageServerInfo,
    async stop() {
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

export function createClient(info: PageServerInfo): ServiceClient {
  return createServiceClient({
    baseUrl: info.baseUrl,
    authUrl: info.baseUrl,
    clientId: info.clientId,
    readSecret: async () => info.clientSecret,
    concurrency: CONCURRENCY,
    maxRequestsPerSecond: 0,
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    onEvent: () => {},
  });
}

const walkOptions = (info: PageServerInfo, id: string) => ({
  endpoint: "/index-ticker" as const,
  filters: { indexType: "GWA", indexId: id },
  from: info.fromMs * 1000,
  until: info.toMs * 1000,
});

/** All pages as uncompressed JSON, series by series, for the bare loop. */
async function fetchBodies(client: ServiceClient, info: PageServerInfo): Promise<Uint8Array[]> {
  const bodies: Uint8Array[] = [];
  for (const id of info.ids) {
    const read = async (body: ResponseBody) => {
      const plain = decodeBody(body);
      bodies.push(plain);
      const { content, nextId } = JSON.parse(Buffer.from(plain).toString());
      const moment = (row?: { timestamp: string }) => (row ? Date.parse(row.timestamp) * 1000 : undefined);
      return {
        rows: content.length,
        nextId: nextId ?? undefined,
        oldest: moment(content.at(-1)),
        newest: moment(content[0]),
        isDescending: true,
      };
    };
    for await (const _ of walkHistoryPages(client, walkOptions(info, id), read));
  }
  return bodies;
}

async function runFullPath(
  path: string,
  client: ServiceClient,
  info: PageServerInfo,
): Promise<Throughput & { stallMs: number }> {
  const ingest = await IngestThread.start({ path, clock: systemClock, log: silentLog });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const startedAt = performance.now();
  delay.enable();
  const rows = await Promise.all(info.ids.map((id) => fillSeries(client, ingest, info, id)));
  const seconds = (performance.now() - startedAt) / 1000;
  delay.disable();
  await ingest.close();
  return { rowsPerSecond: rows.reduce((a, b) => a + b) / seconds, stallMs: delay.max / 1e6 };
}

export async function fillSeries(
  client: ServiceClient,
  ingest: IngestThread,
  info: PageServerInfo,
  id: string,
): Promise<number> {
  const series: Series = { stream: "index_ticks", indexType: "GWA", indexId: id };
  const walk = walkOptions(info, id);
  const gap = { from: walk.from, to: walk.until };
  const read = (body: ResponseBody) => ingest.call("readPage", { stream: series.stream, series }, [body]);
  let commit: Promise<WalkPageCommitResult> | undefined;
  let rows = 0;
  for await (const { page, position } of walkHistoryPages(client, walk, read)) {
    const { alarm } = (await commit) ?? {};
    if (alarm) throw new Error(`the walk of the benchmark failed: ${alarm}`);
    rows += page.rows;
    commit = ingest.call("commitWalkPage", {
      pageId: page.pageId,
      series,
      position: { gap: gap, provenFrom: position.provenFrom },
      isLast: position.end === "exhausted",
      rules: {
        settleDelay: 60_000_000,
        period: 30_000_000,
        quietMargin: 3_600_000_000,
        windowStart: Number.MIN_SAFE_INTEGER,
        floor: Number.MIN_SAFE_INTEGER,
      },
      confirmation: { answers: 3, over: 600_000_000 },
      isHead: false,
      isSilenceConfirmed: false,
      request: "",
    });
  }
  await commit;
  return rows;
}

/** A simple script: fetch, then insert row by row into a table keyed by the record's id, with an index by series. */
async function runNaiveScript(path: string, info: PageServerInfo): Promise<Throughput> {
  const answer = await fetch(`${info.baseUrl}/v3/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      grant_type: "client_credentials",
      client_id: info.clientId,
      client_secret: info.clientSecret,
      audience: info.baseUrl,
    }),
  });
  const { access_token } = (await answer.json()) as { access_token: string };
  const database = new Database(path);
  database.pragma("journal_mode = WAL");
  database.exec(
    "CREATE TABLE ticks (id TEXT PRIMARY KEY, index_id TEXT, index_type TEXT, timestamp TEXT, price TEXT, volume TEXT);\n    CREATE INDEX ticks_by_series ON ticks (index_id, timestamp)",
  );
  const insert = database.prepare("INSERT OR REPLACE INTO ticks VALUES (?, ?, ?, ?, ?, ?)");
  const insertPage = database.transaction((content: Record<string, string>[]) => {
    for (const row of content)
      insert.run(row.id, row.indexId, row.indexType, row.timestamp, row.price, row.volume);
  });
  let rows = 0;
  const startedAt = performance.now();
  for (const id of info.ids) {
    const first = `${info.baseUrl}/v3/index-ticker?indexType=GWA&indexId=${id}&size=2000&timestamp=${new Date(info.toMs).toISOString()}`;
    let cursor = "";
    for (let page = 0; page < PAGES; page++) {
      const response = await fetch(first + cursor, { headers: { authorization: `Bearer ${access_token}` } });
      const { content, nextId } = (await response.json()) as {
        content: Record<string, string>[];
        nextId: string;
      };
      insertPage(content);
      rows += content.length;
      cursor = `&startAfter=${nextId}`;
    }
  }
  const seconds = (performance.now() - startedAt) / 1000;
  database.close();
  return { rowsPerSecond: rows / seconds };
}

if (import.meta.main) await benchIngest((line) => process.stdout.write(`${line}\n`));
