import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { systemClock } from "../../src/runtime/clock.ts";
import { silentLog } from "../../src/runtime/log.ts";
import { createServiceClient, type ServiceClient } from "../../src/service/client/client.ts";
import { encodeResponse, type PlainResponse } from "../../src/simulator/rest/http-types.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";

/** Where the page server listens, and what it serves. It renders pages beforehand, so that it is never the bottleneck. */
export interface PageServerInfo {
  readonly baseUrl: string;
  readonly wsUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly ids: readonly string[];
  /** The range of the rendered pages, milliseconds since 1970. */
  readonly fromMs: number;
  readonly toMs: number;
}

const PAGE_MS = 2000 * 30_000;
const DAY_MS = 86_400_000;

export async function startPageServer(
  series: number,
  pages: number,
): Promise<{ info: PageServerInfo; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [import.meta.filename, String(series), String(pages)], {
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
    concurrency: 8,
    maxRequestsPerSecond: 0,
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    onEvent: () => {},
  });
}

// Runs as its own process: argv has the number of series and of pages of each; writes PageServerInfo to stdout.
if (import.meta.main) {
  const [series = 8, pages = 40] = process.argv.slice(2).map(Number);
  /** By index, size and position: the page as it is sent. */
  const rendered = new Map<string, PlainResponse>();
  const { baseUrl, wsUrl, tokens, world, stop } = await startSimulator({
    interceptor: {
      respond({ request, response, rawResponse }, proceed) {
        const { query } = request;
        if (!query.has("indexId")) {
          proceed();
          return;
        }
        const key = [
          query.get("indexId"),
          query.get("size"),
          query.get("startAfter") ?? query.get("timestamp"),
        ].join(" ");
        const page = rendered.get(key) ?? encodeResponse(request, response);
        rendered.set(key, page);
        rawResponse.writeHead(page.status, page.headers);
        rawResponse.end(page.body);
      },
    },
  });
  const { clientId, clientSecret } = tokens.settings;
  const ids = world.universe.assets
    .filter(({ status, firstDay, endDay }) => status === "ACTIVE" && firstDay < endDay)
    .slice(0, series)
    .map(({ id }) => id);
  const toMs = Math.floor(Date.now() / DAY_MS - 1) * DAY_MS;
  const fromMs = toMs - pages * PAGE_MS;
  const credentials = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
  const answer = await fetch(`${baseUrl}/v3/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...credentials, audience: baseUrl }),
  });
  const { access_token } = (await answer.json()) as { access_token: string };
  const headers = { authorization: `Bearer ${access_token}`, "accept-encoding": "gzip" };
  for (const id of ids) {
    const first = `${baseUrl}/v3/index-ticker?indexType=GWA&indexId=${id}&size=2000&timestamp=${new Date(toMs).toISOString()}`;
    let place = "";
    for (let page = 0; page <= pages; page++) {
      const text = await (await fetch(first + place, { headers })).text();
      place = `&startAfter=${/"nextId":"([^"]+)"\}$/.exec(text)?.[1]}`;
    }
  }
  const info: PageServerInfo = { baseUrl, wsUrl, clientId, clientSecret, ids, fromMs, toMs };
  process.stdout.write(`${JSON.stringify(info)}\n`);
  process.once("SIGTERM", () => void stop());
}
