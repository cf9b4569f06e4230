import { type Agent, Agent as HttpAgent, request } from "node:http";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";

const PAGE_ROWS = 2000;
const DAY_MS = 86_400_000;

interface Transfer {
  readonly rows: number;
  readonly seconds: number;
  readonly bytes: number;
}

/**
 * Measures how fast the simulator serves index ticks over HTTP, for new and for cached pages. Server and client share one
 * process and one core; the client only counts bytes, so it adds little.
 */
export async function benchSimulator(print: (line: string) => void): Promise<void> {
  const simulator = await startSimulator({ cacheMegabytes: 512 });
  const agent = new HttpAgent({ keepAlive: true, maxSockets: 8 });
  try {
    const token = await requestAccessToken(simulator);
    const assets = simulator.universe.assets.filter(
      ({ status, firstDay, endDay }) => status === "ACTIVE" && firstDay < endDay,
    );
    const fetchPages = (pages: readonly string[], gzip: boolean) =>
      fetchAll(simulator, agent, token, pages, gzip);
    const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    // Distinct assets and days: no page is requested twice within a run.
    const pages = (firstDay: number) =>
      Array.from({ length: 300 }, (_, at) => {
        const asset = assets[at % assets.length];
        const timestamp = new Date(
          midnight - (firstDay + Math.floor(at / assets.length)) * DAY_MS,
        ).toISOString();
        return `/v3/index-ticker?indexType=GWA&indexId=${asset?.id}&size=${PAGE_ROWS}&timestamp=${timestamp}`;
      });
    await fetchPages(pages(150).slice(0, 60), true);
    for (const [how, firstDay, gzip] of [
      ["identity", 1, false],
      ["gzip", 60, true],
    ] as const) {
      const list = pages(firstDay);
      print(line(`simulator, new pages, ${how}`, await fetchPages(list, gzip)));
      const repeated = [...list, ...list, ...list];
      print(line(`simulator, cached pages, ${how}`, await fetchPages(repeated, gzip)));
    }
    // Only indexes with enough history, so that every page is full; other days give other pages.
    const [first] = assets.filter(({ firstDay }) => firstDay < midnight / DAY_MS - 2 * PAGE_ROWS);
    const barPages = Array.from({ length: 200 }, (_, at) => {
      const timestamp = new Date(midnight - at * DAY_MS).toISOString();
      return `/v3/ohlcv?indexType=GWA&indexId=${first?.id}&size=${PAGE_ROWS}&timestamp=${timestamp}`;
    });
    await fetchPages(barPages.slice(0, 50), false);
    const bars = await fetchPages(barPages.slice(50), false);
    print(line("simulator, new pages of daily bars, identity", bars));
  } finally {
    agent.destroy();
    await simulator.stop();
  }
}

function line(what: string, { rows, seconds, bytes }: Transfer): string {
  const perSecond = Math.round(rows / seconds).toLocaleString("en-US");
  return `${what}: ${perSecond} rows/s (${rows} rows, ${(bytes / 2 ** 20).toFixed(0)} MiB, ${seconds.toFixed(2)} s, client in the same process)`;
}

async function fetchAll(
  simulator: Simulator,
  agent: Agent,
  token: string,
  pages: readonly string[],
  gzip: boolean,
): Promise<Transfer> {
  const startedAt = performance.now();
  const queue = [...pages];
  let bytes = 0;
  const fetchQueued = async () => {
    for (let page = queue.pop(); page !== undefined; page = queue.pop()) {
      const received = await fetchPageBytes(simulator.baseUrl + page, agent, token, gzip);
      bytes += received;
    }
  };
  await Promise.all(Array.from({ length: 8 }, fetchQueued));
  return { rows: pages.length * PAGE_ROWS, seconds: (performance.now() - startedAt) / 1000, bytes };
}

function fetchPageBytes(url: string, agent: Agent, token: string, gzip: boolean): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, ...(gzip ? { "accept-encoding": "gzip" } : {}) };
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  request(url, { agent, headers }, (response) => {
    let bytes = 0;
    response.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    response.on("end", () => {
      if (response.statusCode === 200) resolve(bytes);
      else reject(new Error(`status ${response.statusCode}`));
    });
    response.on("error", reject);
  })
    .on("error", reject)
    .end();
  return promise;
}

async function requestAccessToken({ baseUrl, clientId, clientSecret }: Simulator): Promise<string> {
  const response = await fetch(`${baseUrl}/v3/oauth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      grant_type: "client_credentials",
      client_id: clientId,
      client_secret: clientSecret,
      audience: baseUrl,
    }),
  });
  const { access_token } = (await response.json()) as { access_token: string };
  return access_token;
}
