import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import { gunzipSync, gzipSync } from "node:zlib";
import type { RecordedPart } from "./page-recorder.ts";
import {
  CADENCE_MS,
  CHUNK_ROWS,
  type RecordedServiceInfo,
  type Recording,
} from "./start-recorded-service.ts";

// Runs as its own process: argv[2] is the Recording; writes RecordedServiceInfo to stdout when every row is recorded.
// It puts pages together from compressed chunks, so that it is never the bottleneck, wherever a page begins.
const recording = JSON.parse(process.argv[2] ?? "{}") as Recording;
const RECORDERS = 2;
const scopes = "read:index-ticker read:ohlcv read:LX read:exchange-ticker read:market-cap read:derivatives";

const lookups = new Map<string, Uint8Array>();
/** The chunks of each series, newest first. */
const chunks = new Map<string, Uint8Array[]>();
await Promise.all(Array.from({ length: RECORDERS }, (_, part) => record(part)));

async function record(part: number): Promise<void> {
  const worker = new Worker(new URL("./page-recorder.ts", import.meta.url), {
    workerData: { recording, part, parts: RECORDERS },
  });
  worker.on("message", (part: RecordedPart) => {
    if ("path" in part) lookups.set(part.path, part.bytes);
    else {
      const own = chunks.get(part.id) ?? [];
      own.push(part.bytes);
      chunks.set(part.id, own);
    }
  });
  await once(worker, "exit");
}

let latencyMs = 0;
const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const url = new URL(request.url ?? "/", "http://recorded");
  request.resume();
  if (url.pathname === "/latency") {
    latencyMs = Number(url.searchParams.get("ms"));
    return void response.end();
  }
  const send = () => {
    response.setHeader("content-type", "application/json");
    if (url.pathname === "/v3/oauth/token") {
      const token = { access_token: "recorded", expires_in: 86_400, token_type: "Bearer", scope: scopes };
      return void response.end(JSON.stringify(token));
    }
    const bytes = lookups.get(url.pathname) ?? findPage(url);
    if (!bytes) {
      process.stderr.write(`not recorded: ${url.pathname}${url.search}\n`);
      return void response.writeHead(501).end();
    }
    response.writeHead(200, { "content-encoding": "gzip", "content-length": bytes.byteLength }).end(bytes);
  };
  if (latencyMs > 0) setTimeout(send, latencyMs);
  else send();
});

/** Pages served before: a real service would not cut them on the cores of the measured program. */
const servedPages = new Map<string, Uint8Array>();
const MAX_SERVED_PAGES = 4_000;

function findPage({ search, searchParams }: URL): Uint8Array | undefined {
  const served = servedPages.get(search);
  if (served) return served;
  const page = cutPage(searchParams);
  if (page && servedPages.size < MAX_SERVED_PAGES) servedPages.set(search, page);
  return page;
}

/** A page of compressed members: chunks as recorded, and what is cut off from the first and the last. */
function cutPage(query: URLSearchParams): Uint8Array | undefined {
  const own = chunks.get(query.get("indexId") ?? "");
  if (!own) return undefined;
  const cursor = query.get("startAfter");
  const first =
    cursor === null
      ? Math.max(0, Math.ceil((recording.toMs - Date.parse(query.get("timestamp") ?? "")) / CADENCE_MS))
      : Number(cursor) + 1;
  const end = Math.min(first + Number(query.get("size")), own.length * CHUNK_ROWS);
  if (first >= end) return undefined;
  const [firstChunk, lastChunk] = [Math.floor(first / CHUNK_ROWS), Math.floor((end - 1) / CHUNK_ROWS)];
  const tail = `],"nextId":"${end - 1}"}`;
  const rowsOf = (chunk: number) => {
    const rows = gunzipSync(own[chunk] as Uint8Array)
      .toString()
      .slice(1)
      .split(/(?<=\}),(?=\{)/);
    const at = chunk * CHUNK_ROWS;
    return rows.slice(Math.max(0, first - at), Math.max(0, end - at)).join(",");
  };
  const compress = (text: string) => gzipSync(text, { level: 1 });
  const head = `{"content":[${rowsOf(firstChunk)}`;
  if (firstChunk === lastChunk) return compress(`${head}${tail}`);
  return Buffer.concat([
    compress(head),
    ...own.slice(firstChunk + 1, lastChunk),
    compress(`,${rowsOf(lastChunk)}${tail}`),
  ]);
}

await once(server.listen(0, "127.0.0.1"), "listening");
const { port } = server.address() as AddressInfo;
const info: RecordedServiceInfo = { baseUrl: `http://127.0.0.1:${port}`, ids: [...chunks.keys()] };
process.stdout.write(`${JSON.stringify(info)}\n`);
process.once("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
});
