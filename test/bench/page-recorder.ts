import { parentPort, workerData } from "node:worker_threads";
import { gzipSync } from "node:zlib";
import { startSimulator } from "../simulator/simulator.ts";
import {
  CHUNK_ROWS,
  countRecordedPages,
  type Recording,
  ROWS_PER_PAGE,
  sliceEnds,
} from "./start-recorded-service.ts";

/** The response to a lookup, or the next chunk of rows of a series, newest first. Compressed. */
export type RecordedPart =
  | { readonly path: string; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly id: string; readonly bytes: Uint8Array<ArrayBuffer> };

interface Part {
  readonly recording: Recording;
  /** This thread records every `parts`-th series, beginning with number `part`. */
  readonly part: number;
  readonly parts: number;
}

// A thread of the recorded service: lets the simulator render the rows that a backfill will request, and posts them.
const { recording, part, parts } = workerData as Part;
const size = { assets: 3 * recording.series + 10, markets: 4, exchanges: 1 };
const simulator = await startSimulator({ size });
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

const headers = { authorization: `Bearer ${access_token}`, "accept-encoding": "identity" };
const fetchText = async (path: string) => (await fetch(`${simulator.baseUrl}${path}`, { headers })).text();

function post(part: { path: string } | { id: string }, text: string): void {
  const bytes = new Uint8Array(gzipSync(text, { level: 1 }));
  port?.postMessage({ ...part, bytes } satisfies RecordedPart, [bytes.buffer]);
}

if (part === 0)
  for (const path of ["/v3/asset", "/v3/market", "/v3/exchange"]) post({ path }, await fetchText(path));
const oldest = (sliceEnds(recording).at(-1) ?? 0) / 86_400_000 - 10;
const ids = simulator.universe.assets
  .filter(({ status, firstDay, endDay }) => status === "ACTIVE" && firstDay < oldest && firstDay < endDay)
  .slice(0, recording.series)
  .map(({ id }) => id);
if (ids.length < recording.series) throw new Error(`only ${ids.length} series are old enough`);
for (const id of ids.filter((_, index) => index % parts === part)) {
  const first = `/v3/index-ticker?indexType=GWA&indexId=${id}&size=${ROWS_PER_PAGE}&timestamp=${new Date(recording.toMs).toISOString()}`;
  let place = "";
  for (let page = 0; page < countRecordedPages(recording); page++) {
    const text = await fetchText(place === "" ? first : `${first}&startAfter=${place}`);
    // Parsing the whole page would take longer than rendering it.
    const [, rows = "", nextId = ""] = /^\{"content":\[(.*)\],"nextId":"([^"]+)"\}$/s.exec(text) ?? [];
    const records = rows.split(/(?<=\}),(?=\{)/);
    // Each chunk is a gzip member of its own: a page is put together from such members.
    for (let at = 0; at < records.length; at += CHUNK_ROWS)
      post({ id }, `,${records.slice(at, at + CHUNK_ROWS).join(",")}`);
    place = nextId;
  }
}
await simulator.stop();
port.close();
