import { createServer } from "node:http";
import { gunzipSync, gzipSync } from "node:zlib";
import { type Simulator, startSimulator } from "../simulator/simulator.ts";
import { listen } from "../support/listen.ts";
import {
  CADENCE_MS,
  CHUNK_ROWS,
  countRecordedPages,
  type RecordedServiceInfo,
  type Recording,
  ROWS_PER_PAGE,
  sliceEnds,
} from "./start-recorded-service.ts";

// Runs as its own process: argv[2] is the Recording; writes RecordedServiceInfo to stdout when every row is recorded.
// It puts pages together from compressed chunks, so that it is never the bottleneck, wherever a page begins.
const recording = JSON.parse(process.argv[2] ?? "{}") as Recording;
const scopes = "read:index-ticker read:ohlcv read:LX read:exchange-ticker read:market-cap read:derivatives";
const compress = (text: string) => gzipSync(text, { level: 1 });

const lookups = new Map<string, Uint8Array>();
/** The chunks of each series, newest first. Each is a gzip member of its own: a page is put together from such members. */
const chunks = new Map<string, Uint8Array[]>();

/** Lets the simulator render the rows that a backfill will request. */
async function record({ baseUrl, clientId, clientSecret, universe }: Simulator): Promise<void> {
  const answer = await fetch(`${baseUrl}/v3/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      grant_type: "client_credentials",
      client_id: clientId,
      client_secret: clientSecret,
      audience: baseUrl,
    }),
  });
  const { access_token } = (await answer.json()) as { access_token: string };
  const headers = { authorization: `Bearer ${access_token}`, "accept-encoding": "identity" };
  const fetchText = async (path: string) => (await fetch(`${baseUrl}${path}`, { headers })).text();
  for (const path of ["/v3/asset", "/v3/market", "/v3/exchange"])
    lookups.set(path, compress(await fetchText(path)));
  const oldest = (sliceEnds(recording).at(-1) ?? 0) / 86_400_000 - 10;
  const ids = universe.assets
    .filter(({ status, firstDay, endDay }) => status === "ACTIVE" && firstDay < oldest && firstDay < endDay)
    .slice(0, recording.series)
    .map(({ id }) => id);
  if (ids.length < recording.series) throw new Error(`only ${ids.length} series are old enough`);
  for (const id of ids) {
    const own: Uint8Array[] = [];
    const first = `/v3/index-ticker?indexType=GWA&indexId=${id}&size=${ROWS_PER_PAGE}&timestamp=${new Date(recording.toMs).toISOString()}`;
    let position = "";
    for (let page = 0; page < countRecordedPages(recording); page++) {
      const text = await fetchText(`${first}${position}`);
      // Parsing the whole page would take longer than rendering it.
      const [, rows = "", nextId = ""] = /^\{"content":\[(.*)\],"nextId":"([^"]+)"\}$/s.exec(text) ?? [];
      const records = rows.split(/(?<=\}),(?=\{)/);
      for (let at = 0; at < records.length; at += CHUNK_ROWS)
        own.push(compress(`,${records.slice(at, at + CHUNK_ROWS).join(",")}`));
      position = `&startAfter=${nextId}`;
    }
    chunks.set(id, own);
  }
}

const size = { assets: 3 * recording.series + 10, markets: 4, exchanges: 1 };
const simulator = await startSimulator({ size });
await record(simulator);
await simulator.stop();

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
  const head = `{"content":[${rowsOf(firstChunk)}`;
  if (firstChunk === lastChunk) return compress(`${head}${tail}`);
  return Buffer.concat([
    compress(head),
    ...own.slice(firstChunk + 1, lastChunk),
    compress(`,${rowsOf(lastChunk)}${tail}`),
  ]);
}

const port = await listen(server);
const info: RecordedServiceInfo = { baseUrl: `http://127.0.0.1:${port}`, ids: [...chunks.keys()] };
process.stdout.write(`${JSON.stringify(info)}\n`);
process.once("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
});
