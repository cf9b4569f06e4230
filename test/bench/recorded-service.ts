import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Worker } from "node:worker_threads";
import type { RecordedPage } from "./page-recorder.ts";
import type { RecordedServiceInfo, Recording } from "./start-recorded-service.ts";

// Runs as its own process: argv[2] is the Recording; writes RecordedServiceInfo to stdout when every page is recorded.
// It only looks up and sends responses, so that it is never the bottleneck.
const recording = JSON.parse(process.argv[2] ?? "{}") as Recording;
const RECORDERS = 2;
const scopes = "read:index-ticker read:ohlcv read:LX read:exchange-ticker read:market-cap read:derivatives";

const pages = new Map<string, Uint8Array>();
const ids: string[] = [];
await Promise.all(Array.from({ length: RECORDERS }, (_, share) => record(share)));

async function record(share: number): Promise<void> {
  const worker = new Worker(new URL("./page-recorder.ts", import.meta.url), {
    workerData: { recording, share, shares: RECORDERS },
  });
  worker.on("message", ({ key, bytes, id }: RecordedPage) => {
    if (id !== undefined) ids.push(id);
    if (bytes) pages.set(key, bytes);
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
    const bytes = pages.get(keyOf(url));
    if (!bytes) {
      // Fail: rendering a page now would falsify the measurement.
      process.stderr.write(`not recorded: ${url.pathname}${url.search}\n`);
      return void response.writeHead(501).end();
    }
    response.writeHead(200, { "content-encoding": "gzip", "content-length": bytes.byteLength }).end(bytes);
  };
  if (latencyMs > 0) setTimeout(send, latencyMs);
  else send();
});

/** A cursor takes precedence over the timestamp. */
function keyOf({ pathname, searchParams }: URL): string {
  const place = searchParams.get("startAfter") ?? searchParams.get("timestamp");
  return place === null ? pathname : `${searchParams.get("indexId")} ${searchParams.get("size")} ${place}`;
}

await once(server.listen(0, "127.0.0.1"), "listening");
const { port } = server.address() as AddressInfo;
const info: RecordedServiceInfo = { baseUrl: `http://127.0.0.1:${port}`, ids };
process.stdout.write(`${JSON.stringify(info)}\n`);
process.once("SIGTERM", () => {
  server.close();
  server.closeAllConnections();
});
