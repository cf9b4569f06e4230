import { parentPort, workerData } from "node:worker_threads";
import { gzipSync } from "node:zlib";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { PAGES_PER_SLICE, type Recording, ROWS_PER_PAGE, sliceEnds } from "./start-recorded-service.ts";

/** A page under the key of its request; or the id of a recorded series. */
export interface RecordedPage {
  readonly key: string;
  readonly bytes?: Uint8Array<ArrayBuffer>;
  readonly id?: string;
}

interface Share {
  readonly recording: Recording;
  /** This thread records every `shares`-th series, beginning with number `share`. */
  readonly share: number;
  readonly shares: number;
}

// A thread of the recorded service: lets the simulator render every page that a backfill will request, and posts it.
const { recording, share, shares } = workerData as Share;
const size = { assets: 3 * recording.series + 10, markets: 4, exchanges: 1 };
const simulator = await startSimulator({ cacheMegabytes: 1, size });
const answer = await fetch(`${simulator.baseUrl}/v3/oauth/token`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    grant_type: "client_credentials",
    client_id: simulator.clientId,
    client_secret: simulator.clientSecret,
    audience: simulator.baseUrl,
  }),
});
const { access_token } = (await answer.json()) as { access_token: string };
const port = parentPort;
if (!port) throw new Error("the page recorder must run as a worker thread");

async function record(path: string, key: string): Promise<string> {
  const headers = { authorization: `Bearer ${access_token}`, "accept-encoding": "identity" };
  const text = await (await fetch(`${simulator.baseUrl}${path}`, { headers })).text();
  const zipped = gzipSync(text, { level: 1 });
  const bytes = new Uint8Array(zipped);
  port?.postMessage({ key, bytes } satisfies RecordedPage, [bytes.buffer]);
  return text;
}

if (share === 0) for (const path of ["/v3/asset", "/v3/market", "/v3/exchange"]) await record(path, path);
const oldest = (sliceEnds(recording).at(-1) ?? 0) / 86_400_000 - 10;
const ids = simulator.universe.assets
  .filter(({ status, firstDay, endDay }) => status === "ACTIVE" && firstDay < oldest && firstDay < endDay)
  .slice(0, recording.series)
  .map(({ id }) => id);
if (ids.length < recording.series) throw new Error(`only ${ids.length} series are old enough`);
for (const id of ids.filter((_, index) => index % shares === share)) {
  port.postMessage({ key: "", id } satisfies RecordedPage);
  for (const end of sliceEnds(recording)) {
    const timestamp = new Date(end).toISOString();
    const first = `/v3/index-ticker?indexType=GWA&indexId=${id}&size=${ROWS_PER_PAGE}&timestamp=${timestamp}`;
    let place = timestamp;
    for (let page = 0; page < PAGES_PER_SLICE; page++) {
      const path = page === 0 ? first : `${first}&startAfter=${place}`;
      const text = await record(path, `${id} ${ROWS_PER_PAGE} ${place}`);
      // Parsing the whole page would take longer than rendering it.
      place = /"nextId":"([^"]+)"\}$/.exec(text.slice(-200))?.[1] ?? "";
    }
  }
}
await simulator.stop();
port.close();
