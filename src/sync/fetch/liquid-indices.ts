import { decodePage } from "../../ingest/decode/page.ts";
import { Failure } from "../../model/failure.ts";
import { decodeBody } from "../../model/response-body.ts";
import type { Candidate } from "../../model/selector.ts";
import { type HistoryStream, streamTable } from "../../model/streams.ts";
import { formatInstant, MICROS_PER_DAY, type Micros } from "../../model/time.ts";
import type { Requests } from "../../service/client/client.ts";
import { priority } from "../../service/http/request.ts";
import { knownIndices } from "../../warehouse/lookups/lookup-queries.ts";
import type { Connection } from "../../warehouse/sqlite/connection.ts";

/** Enough of the latest records that each of the few indices is among them. */
const PAGE = 100;

/** The ids of the liquid indices that the service has values of. No lookup lists them: their records do. */
export async function learnLiquidIndices(
  client: Requests,
  now: Micros,
  signal: AbortSignal,
): Promise<string[]> {
  const learn = (stream: HistoryStream) => {
    const { endpoint } = streamTable[stream];
    const timestamp = `${formatInstant(now + MICROS_PER_DAY).slice(0, 19)}Z`;
    const query = { indexType: "LX", timestamp, size: PAGE };
    return client.request({ endpoint, query, priority: priority.head, signal }, async (body) => {
      const { records } = decodePage(stream, decodeBody(body));
      const liquid = records.filter(({ indexType }) => indexType === "LX");
      return [...new Set(liquid.map(({ indexId }) => indexId))];
    });
  };
  try {
    return await learn("index_ticks");
  } catch (error) {
    // Who may not see the ticks may still see the bars.
    if (!(error instanceof Failure) || error.code !== "forbidden") throw error;
    return learn("ohlcv");
  }
}

/** Liquid indices as the settings and the warehouse name them, and those just learned. */
export function liquidCandidates(
  given: Readonly<Record<string, string>>,
  reader: Connection | undefined,
  learned: readonly string[],
): Candidate[] {
  const labels = new Map<string, Set<string>>();
  const add = (id: string, label?: string) => {
    const known = labels.get(id) ?? new Set();
    if (label !== undefined && label !== id) known.add(label);
    labels.set(id, known);
  };
  for (const [name, id] of Object.entries(given)) add(id, name);
  for (const { id, name } of reader ? knownIndices(reader, "LX") : []) add(id, name ?? undefined);
  for (const id of learned) add(id);
  return [...labels].map(([id, names]) => ({ id, labels: [...names] }));
}
