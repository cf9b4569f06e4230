import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import type { WalkPageCommit } from "../../src/ingest/commit/walk-page.ts";
import { Ingest } from "../../src/ingest/thread/ingest-thread.ts";
import { type Body, decodeBody } from "../../src/model/response-body.ts";
import type { Series } from "../../src/model/streams.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../src/service/client/client.ts";
import { walkBackwards } from "../../src/service/pagination/history-walk.ts";
import { bareLoop, type Round } from "./bare-loop.ts";
import { median } from "./figures.ts";
import type { Offer } from "./page-server.ts";

const ROUNDS = 3;
const SERIES = 8;
const PAGES = 40;
const CONCURRENCY = 8;

/** From bytes on the loopback to committed rows, against the bare loop and a naive script, in alternating rounds. */
export async function benchIngest(print: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "mds-bench-"));
  const { offer, stop } = await startPageServer(SERIES, PAGES);
  const client = createClient(offer);
  try {
    const bodies = await fetchBodies(client, offer);
    const bare: number[] = [];
    const whole: number[] = [];
    const naive: number[] = [];
    let stall = 0;
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(bareLoop(join(folder, `bare-${round}`), bodies).rowsASecond);
      const path = await wholePath(join(folder, `whole-${round}`), client, offer);
      whole.push(path.rowsASecond);
      stall = Math.max(stall, path.stallMs);
      naive.push((await naiveScript(join(folder, `naive-${round}`), offer)).rowsASecond);
    }
    const base = median(bare);
    const line = (what: string, values: number[]) =>
      `${what}: ${(median(values) / base).toFixed(2)} (${Math.round(median(values)).toLocaleString("en-US")} rows/s)`;
    print(line("bare loop (JSON.parse + 50-row inserts on bytes in memory)", bare));
    print(line(`whole path, loopback to commit, concurrency ${CONCURRENCY}`, whole));
    print(line("naive fetch-and-insert script on the same pages", naive));
    print(`whole path against the naive script: ${(median(whole) / median(naive)).toFixed(1)} ×`);
    print(`longest stall of the main thread meanwhile: ${stall.toFixed(0)} ms`);
  } finally {
    await client.close();
    await stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function startPageServer(
  series: number,
  pages: number,
): Promise<{ offer: Offer; stop(): Promise<void> }> {
  const script = resolve(import.meta.dirname, "page-server.ts");
  const child = spawn(process.execPath, [script, String(series), String(pages)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    offer: JSON.parse(line) as Offer,
    async stop() {
      child.kill("SIGTERM");
      await once(child, "exit");
    },
  };
}

export function createClient(offer: Offer): ServiceClient {
  return createServiceClient({
    baseUrl: offer.baseUrl,
    authUrl: offer.baseUrl,
    wsUrl: offer.wsUrl,
    clientId: offer.clientId,
    readSecret: async () => offer.clientSecret,
    concurrency: CONCURRENCY,
    maxRequestsPerSecond: 0,
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    observe: () => {},
  });
}

const walkOf = (offer: Offer, id: string) => ({
  endpoint: "/index-ticker" as const,
  filters: { indexType: "GWA", indexId: id },
  from: offer.fromMs * 1000,
  until: offer.toMs * 1000,
});

/** All pages as plain JSON, series by series: what the bare loop reads. */
async function fetchBodies(client: ServiceClient, offer: Offer): Promise<Uint8Array[]> {
  const bodies: Uint8Array[] = [];
  for (const id of offer.ids) {
    const read = async (body: Body) => {
      const plain = decodeBody(body);
      bodies.push(plain);
      const { content, nextId } = JSON.parse(Buffer.from(plain).toString());
      const moment = (row?: { timestamp: string }) => (row ? Date.parse(row.timestamp) * 1000 : undefined);
      return {
        rows: content.length,
        nextId: nextId ?? undefined,
        oldest: moment(content.at(-1)),
        newest: moment(content[0]),
        descending: true,
      };
    };
    for await (const _ of walkBackwards(client, walkOf(offer, id), read));
  }
  return bodies;
}

async function wholePath(
  path: string,
  client: ServiceClient,
  offer: Offer,
): Promise<Round & { stallMs: number }> {
  const ingest = await Ingest.start({ path, clock: systemClock, log: silentLog });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const begun = performance.now();
  delay.enable();
  const rows = await Promise.all(offer.ids.map((id) => fillSeries(client, ingest, offer, id)));
  const seconds = (performance.now() - begun) / 1000;
  delay.disable();
  await ingest.close();
  return { rowsASecond: rows.reduce((a, b) => a + b) / seconds, stallMs: delay.max / 1e6 };
}

export async function fillSeries(
  client: ServiceClient,
  ingest: Ingest,
  offer: Offer,
  id: string,
): Promise<number> {
  const series: Series = { stream: "index_ticks", indexType: "GWA", indexId: id };
  const walk = walkOf(offer, id);
  const hole = { from: walk.from, to: walk.until };
  const read = (body: Body) => ingest.call("readPage", { stream: series.stream, series }, [body]);
  let commit: Promise<WalkPageCommit> | undefined;
  let rows = 0;
  for await (const { page, position } of walkBackwards(client, walk, read)) {
    const { alarm } = (await commit) ?? {};
    if (alarm) throw new Error(`the benchmark's walk met ${alarm}`);
    rows += page.rows;
    commit = ingest.call("commitWalkPage", {
      held: page.held,
      series,
      position: { hole, upper: position.ceiling },
      ends: position.end === "served_out",
      settleDelay: 60_000_000,
      request: "",
    });
  }
  await commit;
  return rows;
}

/** What people write first: fetch, then a row at a time into a table keyed by the record's id, with an index to find a series by. */
async function naiveScript(path: string, offer: Offer): Promise<Round> {
  const answer = await fetch(`${offer.baseUrl}/v3/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      grant_type: "client_credentials",
      client_id: offer.clientId,
      client_secret: offer.clientSecret,
      audience: offer.baseUrl,
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
  const begun = performance.now();
  for (const id of offer.ids) {
    const first = `${offer.baseUrl}/v3/index-ticker?indexType=GWA&indexId=${id}&size=2000&timestamp=${new Date(offer.toMs).toISOString()}`;
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
  const seconds = (performance.now() - begun) / 1000;
  database.close();
  return { rowsASecond: rows / seconds };
}

if (import.meta.main) await benchIngest((line) => process.stdout.write(`${line}\n`));
